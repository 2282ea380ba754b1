import { Client, fetchExchange, subscriptionExchange } from '@urql/core';
import { Kind, parse } from 'graphql';
import { filter, onEnd, pipe, subscribe } from 'wonka';

import { socket } from './graphql-ws.mjs';

/** urql: subscriptions by graphql-ws, all else by fetch. */
export function connect(options, say) {
  const ws = socket(options, say);
  const client = new Client({
    url: options.url,
    preferGetMethod: false,
    fetchOptions: { headers: options.login },
    exchanges: [
      subscriptionExchange({
        forwardSubscription: ({ query, variables }) => ({
          subscribe: (sink) => ({ unsubscribe: ws.subscribe({ query, variables }, sink) }),
        }),
      }),
      fetchExchange,
    ],
  });
  return {
    subscribe({ query, variables = {} }, sink) {
      let failed = false;
      const show = ({ data, error }) => {
        failed = error !== undefined;
        if (failed) sink.error(error.networkError ?? error.graphQLErrors);
        else sink.next({ data });
      };
      const end = () => failed || sink.complete();
      const { operation } = parse(query).definitions.find(({ kind }) => kind === Kind.OPERATION_DEFINITION);
      if (operation !== 'subscription') {
        client[operation](query, variables).toPromise().then(show).then(end);
        return () => {};
      }
      // At the end of a subscription it repeats the last result, marked as the last.
      const isNew = ({ error, hasNext }) => error || hasNext;
      return pipe(client.subscription(query, variables), onEnd(end), filter(isNew), subscribe(show)).unsubscribe;
    },
    close: () => ws.dispose(),
  };
}
