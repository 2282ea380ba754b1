import { ApolloClient, ApolloLink, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import WebSocket from 'ws';

import { socket } from './graphql-ws.mjs';

globalThis.WebSocket ??= WebSocket; // the link looks for a browser's

/** Apollo Client: subscriptions by graphql-ws, all else by fetch. */
export function connect(options, say) {
  const ws = socket(options, say);
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(ws),
      new HttpLink({ uri: options.url, headers: options.login }),
    ),
  });
  return {
    subscribe({ query, variables }, sink) {
      let failed = false;
      const show = ({ data, error }) => {
        failed = error !== undefined;
        if (failed) sink.error(CombinedGraphQLErrors.is(error) ? error.errors : error);
        else sink.next({ data });
      };
      const end = () => failed || sink.complete();
      const document = gql(query);
      switch (document.definitions[0].operation) {
        case OperationTypeNode.QUERY:
          client.query({ query: document, variables, errorPolicy: 'all', fetchPolicy: 'no-cache' }).then(show).then(end);
          return () => {};
        case OperationTypeNode.MUTATION:
          client.mutate({ mutation: document, variables, errorPolicy: 'all' }).then(show).then(end);
          return () => {};
      }
      const events = client.subscribe({ query: document, variables, fetchPolicy: 'no-cache' });
      const subscription = events.subscribe({ next: show, complete: end });
      return () => subscription.unsubscribe();
    },
    close() {
      client.stop();
      return ws.dispose();
    },
  };
}
