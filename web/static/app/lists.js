// The lists: lectures and receipts, a page at a time.

import { SeatlineError } from '../sdk.js';
import { client, forget, isSignedOut } from './session.js';
import { emptyList, set, state } from './state.js';

/** @typedef {import('./state.js').List} List */

const PAGE = 20;

const LECTURES = `query ($search: String, $after: String, $first: Int) {
  lectures(first: $first, search: $search, after: $after) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { id title capacity enrolledCount seatsLeft lineState waiting opensAt closesAt }
  }
}`;

const RECEIPTS = `query ($after: String, $first: Int) {
  receipts(first: $first, after: $after) {
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

/**
 * A list with its next page, its first page, or as many as are shown anew: whoever
 * comes back to a list finds what they had left.
 *
 * @param {List} list
 * @param {'first' | 'again' | 'more'} which
 * @param {(page: { first: number, after: string | null }) => Promise<any>} load
 */
async function longer(list, which, load) {
  const wanted = which === 'again' ? Math.max(PAGE, list.nodes.length) : PAGE;
  let next = list;
  for (let got = 0; got < wanted;) {
    const anew = which !== 'more' && got === 0;
    const first = Math.min(100, wanted - got); // The server gives no more at once.
    next = withPage(next, await load({ first, after: anew ? null : next.after }), anew);
    got += first;
    if (!next.after) break;
  }
  return next;
}

/** @type {AbortController | undefined} */
let running;

/** @param {'first' | 'again' | 'more'} which */
export async function loadLectures(which) {
  running?.abort();
  const mine = (running = new AbortController());
  // Some keyboards type syllables in pieces.
  const search = state.search.trim().normalize('NFC') || null;
  try {
    const lectures = await longer(state.lectures, which, async (page) =>
      (await client.query(LECTURES, { search, ...page }, { signal: mine.signal })).lectures);
    if (mine === running) set({ lectures, now: client.serverNow() });
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
  typing = setTimeout(loadLectures, 250, 'first');
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
    if (document.visibilityState === 'visible' && state.lectures.nodes.length <= 20) await loadLectures('again');
    keepLectures();
  }, wait);
}

/** @param {'first' | 'again' | 'more'} which */
export async function loadReceipts(which) {
  const { viewer } = state;
  try {
    const receipts = await longer(state.receipts, which, async (page) => (await client.query(RECEIPTS, page)).receipts);
    if (state.viewer === viewer) set({ receipts });
  } catch (error) {
    if (isSignedOut(error)) forget();
    else set({ receipts: { ...(state.receipts ?? emptyList()), loading: false, error: problem(error) } });
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let receiptsRefresh;

/** Keeps receipts true while one looks at them: an enrolment may be cancelled elsewhere. */
export function keepReceipts() {
  clearTimeout(receiptsRefresh);
  if (state.route.page !== 'receipts' || !state.viewer) return;
  receiptsRefresh = setTimeout(lookAtReceipts, 15_000 * (1 + Math.random()));
}

async function lookAtReceipts() {
  if (state.route.page === 'receipts' && state.viewer && document.visibilityState === 'visible') await loadReceipts('again');
  keepReceipts();
}

document.addEventListener('visibilitychange', lookAtReceipts);
