import { createClient } from 'graphql-sse';

/** The client with a connection for each operation. */
export function connect({ url, login }, say) {
  let refused;
  const client = createClient({
    url,
    headers: login,
    retryAttempts: Infinity,
    on: { connecting: () => say('connecting') },
    // The client takes every status for a fault of the network, and what is thrown
    // here for one that is not.
    async fetchFn(...request) {
      const response = await fetch(...request);
      if (response.status === 401) refused = response;
      return response;
    },
    async retry(retries) {
      if (refused) throw Object.assign(new Error('refused'), { code: refused.status });
      say('closed');
      await new Promise((resolve) => setTimeout(resolve, Math.min(500 * 2 ** retries, 5000) * (0.5 + Math.random())));
    },
  });
  return { subscribe: (operation, sink) => client.subscribe(operation, sink), close: () => client.dispose() };
}
