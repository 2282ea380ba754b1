// The lists: lectures and receipts, a page at a time.

import { SeatlineError } from '../sdk.js';
import { client, forget, isSignedOut } from './session.js';
import { emptyList, set, state } from './state.js';

/** @typedef {import('./state.js').List} List */

const LECTURES = `query ($search: String, $after: String) {
  lectures(first: 20, search: $search, after: $after) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { id title capacity enrolledCount seatsLeft lineState waiting opensAt closesAt }
  }
}`;

const RECEIPTS = `query ($after: String) {
  receipts(first: 20, after: $after) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { id number userKey enrolledAt cancelledAt lecture { id title } }
  }
}`;

/** @param {unknown} error */
export const problem = (error) => (error instanceof SeatlineError ? error : new SeatlineError('INTERNAL', String(error)));

/**
 * What is known of a list with one more page, or with the first page anew.
 *
 * @param {List} list
 * @param {any} connection
 * @param {boolean} anew
 * @returns {List}
 */
export function withPage(list, connection, anew) {
  return {
    loading: false,
    nodes: anew ? connection.nodes : [...list.nodes, ...connection.nodes],
    after: connection.pageInfo.hasNextPage ? connection.pageInfo.endCursor : null,
    total: connection.totalCount,
    error: null,
  };
}

/** @type {AbortController | undefined} */
let running;

/** @param {'anew' | 'more'} which */
export async function loadLectures(which) {
  running?.abort();
  const mine = (running = new AbortController());
  const anew = which === 'anew';
  try {
    const variables = { search: state.search.trim() || null, after: anew ? null : state.lectures.after };
    const { lectures } = await client.query(LECTURES, variables, { signal: mine.signal });
    if (mine === running) set({ lectures: withPage(state.lectures, lectures, anew), now: client.serverNow() });
  } catch (error) {
    if (mine !== running) return;
    if (isSignedOut(error)) {
      forget();
      loadLectures(which);
      return;
    }
    set({ lectures: { ...state.lectures, loading: false, error: problem(error) } });
  }
}

/** @param {string} search */
export function searchLectures(search) {
  set({ search });
  clearTimeout(typing);
  typing = setTimeout(loadLectures, 250, 'anew');
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let refresh;

/**
 * Keeps the list true while one looks at it: every ten seconds or so, and when a
 * lecture opens. Everybody looks at the same instant then, so each waits a moment
 * of their own.
 */
export function keepLectures() {
  clearTimeout(refresh);
  if (state.route.page !== 'lectures' && state.route.page !== 'operate') return;
  const opening = state.lectures.nodes
    .filter(({ lineState, opensAt }) => lineState === 'UPCOMING' && opensAt)
    .map(({ opensAt }) => Date.parse(opensAt) - client.serverNow());
  const wait = Math.max(1000, Math.min(10_000, ...opening)) + 2000 * Math.random();
  refresh = setTimeout(async () => {
    // More pages than one stay as they are: replacing them would move what one reads.
    if (document.visibilityState === 'visible' && state.lectures.nodes.length <= 20) await loadLectures('anew');
    keepLectures();
  }, wait);
}

/** @param {'anew' | 'more'} which */
export async function loadReceipts(which) {
  const anew = which === 'anew';
  try {
    const { receipts } = await client.query(RECEIPTS, { after: anew ? null : state.receipts.after });
    set({ receipts: withPage(state.receipts, receipts, anew) });
  } catch (error) {
    if (isSignedOut(error)) forget();
    else set({ receipts: { ...(state.receipts ?? emptyList()), loading: false, error: problem(error) } });
  }
}
