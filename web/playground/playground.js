// GraphiQL on Seatline's API, with the whole flow in its first tabs.

import { examples } from './examples.js';

const SESSION = 'seatline.playground.session';
const OPERATOR = 'seatline.playground.operator';

/** @typedef {{ token: string, name: string }} Session */

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @returns {Session | null} The guest that the first example signed in. */
const session = () => JSON.parse(sessionStorage.getItem(SESSION) ?? 'null');

/** @param {Session | null} guest */
function remember(guest) {
  if (guest) sessionStorage.setItem(SESSION, JSON.stringify(guest));
  else sessionStorage.removeItem(SESSION);
  showIdentity();
}

function showIdentity() {
  const guest = session();
  element('identity').textContent = guest ? `Signed in as ${guest.name}` : 'Signed out';
  element('sign-out').hidden = !guest;
}

/** What GraphiQL keeps of its tabs. */
const TABS = ['tabState', 'query', 'variables', 'headers', 'operationName'].map((name) => `graphiql:${name}`);

/** Starts with the examples, whatever was in the tabs. */
function startOver() {
  root?.unmount(); // or it would write down once more what is in them
  for (const key of TABS) sessionStorage.removeItem(key);
  start();
}

/** Takes the token out of an operator's link, and the link's trace out of the address. */
function takeTokenFromLink() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  sessionStorage.setItem(OPERATOR, token);
  history.replaceState(null, '', location.pathname);
  startOver();
}

/**
 * Which operation is meant. GraphiQL parses what is typed a moment later, so what it
 * says right after typing is about the text before.
 *
 * @param {FetcherParams} params
 */
function readOperation(params) {
  try {
    const documentAST = GraphiQL.GraphQL.parse(params.query);
    const operations = documentAST.definitions.filter((definition) => definition.kind === 'OperationDefinition');
    const named = operations.some((operation) => operation.name?.value === params.operationName);
    return { documentAST, operationName: named ? params.operationName : operations[0]?.name?.value };
  } catch {
    return { documentAST: undefined, operationName: params.operationName }; // the server says what is wrong with it
  }
}

/** @param {Record<string, string>} headers */
const hasAuthorization = (headers) => Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');

/** What subscriptions failed with. */
const shown = new Set();

/**
 * GraphiQL shows what a subscription fails with. Its iterator rejects a second promise
 * with the same, which nobody waits for and which is no news.
 *
 * @param {AsyncIterable<unknown>} results
 */
function showFailures(results) {
  const iterator = results[Symbol.asyncIterator]();
  return {
    [Symbol.asyncIterator]() { return this; },
    next: () => iterator.next().catch((error) => {
      shown.add(error);
      throw error;
    }),
    return: () => iterator.return?.(),
  };
}

function createFetcher() {
  const url = new URL('/graphql', location.href);
  const socket = new URL(url);
  socket.protocol = url.protocol.replace('http', 'ws');
  const send = GraphiQL.createFetcher({ url: url.href, subscriptionUrl: socket.href, enableIncrementalDelivery: false });

  // The headers go into the request, or into the socket's connectionParams.
  return async (/** @type {FetcherParams} */ params, /** @type {FetcherOptions} */ options = {}) => {
    const { documentAST, operationName } = readOperation(params);
    const headers = { ...options.headers };
    const guest = session();
    if (guest && !hasAuthorization(headers)) headers['Authorization'] = `Bearer ${guest.token}`;
    const answer = await send({ ...params, operationName }, { ...options, documentAST, headers });
    if (answer && Symbol.asyncIterator in answer) return showFailures(answer);
    const started = answer?.data?.startSession;
    if (started?.token) remember({ token: started.token, name: started.viewer?.name ?? 'a guest' });
    return answer;
  };
}

/** @type {{ render: (node: unknown) => void, unmount: () => void } | undefined} */
let root;

function start() {
  if (typeof GraphiQL === 'undefined') {
    element('notice').textContent = 'GraphiQL could not be loaded. To have it come with the binary, run “make assets” and build again.';
    return;
  }
  const tabs = examples(sessionStorage.getItem(OPERATOR));
  if (tabs[0] && !sessionStorage.getItem('graphiql:tabState')) {
    // Of the first tab GraphiQL would show the query alone.
    sessionStorage.setItem('graphiql:query', tabs[0].query);
    sessionStorage.setItem('graphiql:variables', tabs[0].variables);
  }
  root = ReactDOM.createRoot(element('graphiql'));
  root.render(React.createElement(GraphiQL, {
    fetcher: createFetcher(),
    defaultTabs: tabs,
    defaultEditorToolsVisibility: 'variables',
    storage: sessionStorage,
    shouldPersistHeaders: true,
    showPersistHeadersSettings: false,
  }));
}

addEventListener('unhandledrejection', (event) => {
  if (shown.has(event.reason)) event.preventDefault();
});
element('examples').addEventListener('click', startOver);
element('sign-out').addEventListener('click', () => remember(null));
addEventListener('hashchange', takeTokenFromLink);
showIdentity();
takeTokenFromLink();
if (!root) start();
