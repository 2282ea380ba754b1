import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

/** The stock client, set to come back whenever it may. */
export function socket({ url, login }, say) {
  return createClient({
    url: url.replace(/^http/, 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: login,
    retryAttempts: Infinity,
    shouldRetry: () => true,
    on: {
      connecting: () => say('connecting'),
      closed: (event) => say('closed', event.code),
    },
  });
}

export function connect(options, say) {
  const client = socket(options, say);
  return { subscribe: (operation, sink) => client.subscribe(operation, sink), close: () => client.dispose() };
}
