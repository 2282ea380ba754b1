import { SubscriptionClient } from 'subscriptions-transport-ws';
import WebSocket from 'ws';

export function connect({ url, login }, say) {
  let sink; // of the operation that runs
  const client = new SubscriptionClient(
    url.replace(/^http/, 'ws'),
    {
      reconnect: true,
      connectionParams: login,
      // The client would knock again and say nothing to the operation: who uses it
      // has to stop it.
      connectionCallback(refused) {
        if (!refused) return;
        client.close();
        sink.error(refused);
      },
    },
    WebSocket,
  );
  client.onConnecting(() => say('connecting'));
  client.onReconnecting(() => say('connecting'));
  client.onDisconnected(() => say('closed'));
  return {
    subscribe(operation, observer) {
      sink = observer;
      const subscription = client.request(operation).subscribe({
        next: observer.next,
        error: (errors) => observer.error([].concat(errors)), // it unwraps a list of one
        complete: observer.complete,
      });
      return () => subscription.unsubscribe();
    },
    close: () => client.close(),
  };
}
