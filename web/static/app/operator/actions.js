// What operators do to a lecture, and what they watch of it.

import { problem, withPage } from '../lists.js';
import { bearer, client, forget, isSignedOut } from '../session.js';
import { SeatlineError } from '../../sdk.js';
import { emptyList, set, state } from '../state.js';

const FIELDS = `id title description capacity enrolledCount seatsLeft lineState waiting opensAt closesAt
settings { paused admitPerSecond burst ticketTtlSeconds overbookPercent message }`;

const STATS = `subscription ($id: ID!) { lineStats(lectureId: $id) {
  lineState waiting parked held inFlight seatsLeft enrolledCount capacity admitPerSecond admittedPerMinute claimRate serverTime
  lecture { ${FIELDS} }
} }`;

const ROSTER = `query ($id: ID!, $search: String, $after: String) {
  enrollments(lectureId: $id, first: 50, search: $search, after: $after) {
    totalCount pageInfo { hasNextPage endCursor } nodes { id number userKey enrolledAt }
  }
}`;

// How much of the past is drawn.
const WINDOW_MS = 10 * 60_000;

let stop = () => {};
let boardId = '';
let rosterSearch = '';

/** When the lecture was read, by the server's clock: a tick that is older knows less. */
let readAt = 0;

/** What was drawn of the boards that one has left. @type {Map<string, import('../state.js').LineStats[]>} */
const pasts = new Map();

/** @param {string} id */
export function openBoard(id) {
  closeBoard();
  boardId = id;
  rosterSearch = '';
  readAt = 0;
  set({ run: null, stats: pasts.get(id) ?? [], statsLink: 'connecting', roster: emptyList(), formError: null, edited: {}, formSaid: null });
  stop = client.subscribe(STATS, { id }, {
    next: ({ data }) => data && tookStats(data.lineStats),
    error: (error) => (isSignedOut(error) ? forget() : set({ statsLink: 'failed', formError: error })),
    complete: () => set({ statsLink: 'ended' }),
    link: ({ state }) => state !== 'idle' && state !== 'open' && set({ statsLink: state }),
  });
  loadRoster('anew');
  loadRun();
}

async function loadRun() {
  const id = boardId;
  try {
    const { lecture } = await client.query(`query ($id: ID!) { lecture(id: $id) { ${FIELDS} } }`, { id });
    if (boardId !== id) return;
    if (lecture) tookRun(lecture);
    else set({ route: { ...state.route, page: 'missing' } });
  } catch (error) {
    if (boardId === id) set({ formError: problem(error) });
  }
}

/** @param {import('../state.js').RunLecture} run @param {Partial<import('../state.js').State>} [more] */
function tookRun(run, more) {
  readAt = client.serverNow();
  set({ run, ...more });
}

export const openedBoard = () => boardId;

export function closeBoard() {
  if (boardId) pasts.set(boardId, state.stats);
  stop();
  stop = () => {};
  boardId = '';
}

/** @param {import('../state.js').LineStats} tick */
function tookStats({ lecture, ...stats }) {
  const now = Date.parse(stats.serverTime);
  const before = state.stats.at(-1);
  // One a second is all that can be told apart; the latest always counts.
  const kept = state.stats.filter(({ serverTime }, i) => {
    const at = Date.parse(serverTime);
    const previous = state.stats[i - 1];
    return at > now - WINDOW_MS && (!previous || at - Date.parse(previous.serverTime) >= 900);
  });
  // Another operator may have changed what is shown here.
  set({ stats: [...kept, stats], statsLink: 'live', ...(lecture && now >= readAt && { run: lecture }) });
  if (before && before.enrolledCount !== stats.enrolledCount) loadRoster('anew');
}

/** @param {import('../state.js').SeatlineError | null} formError */
export const showFormError = (formError) => set({ formError, formSaid: null });

/** @param {Record<string, unknown>} input */
export async function createLecture(input) {
  const { createLecture } = await client.mutate(`mutation ($input: CreateLectureInput!) { createLecture(input: $input) { id } }`, { input });
  return /** @type {string} */ (createLecture.id);
}

/** @param {Record<string, unknown>} input @param {() => Record<string, string>} [edited] What is still being changed afterwards. */
export async function updateLecture(input, edited = () => state.edited) {
  const id = boardId;
  set({ formError: null, formSaid: null });
  try {
    const { updateLecture } = await client.mutate(
      `mutation ($id: ID!, $input: UpdateLectureInput!) { updateLecture(id: $id, input: $input) { ${FIELDS} } }`, { id, input },
      { retries: 2 },
    );
    if (boardId === id) tookRun(updateLecture, { edited: edited(), formSaid: 'saved' });
  } catch (error) {
    showFormError(problem(error));
  }
}

/** @param {'anew' | 'more'} which */
export async function loadRoster(which) {
  const id = boardId;
  const anew = which === 'anew';
  try {
    const variables = { id, search: rosterSearch.trim() || null, after: anew ? null : state.roster.after };
    const { enrollments } = await client.query(ROSTER, variables);
    if (boardId === id) set({ roster: withPage(state.roster, enrollments, anew) });
  } catch (error) {
    if (boardId === id) set({ roster: { ...state.roster, loading: false, error: problem(error) } });
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

/** @param {string} search */
export function searchRoster(search) {
  rosterSearch = search;
  clearTimeout(typing);
  typing = setTimeout(loadRoster, 250, 'anew');
}

/** @param {string} userKey */
export async function removeEnrollment(userKey) {
  try {
    await client.mutate('mutation ($id: ID!, $userKey: String!) { removeEnrollment(lectureId: $id, userKey: $userKey) { id } }',
      { id: boardId, userKey }, { retries: 2 });
    await loadRoster('anew');
  } catch (error) {
    showFormError(problem(error));
  }
}

/** A link cannot send a token, so the file is fetched and handed over. */
export async function downloadRoster() {
  const path = `/lectures/${encodeURIComponent(boardId)}/enrollments.csv?bom=true`;
  try {
    const response = await fetch(path, { headers: { Authorization: `Bearer ${bearer()}` } });
    if (!response.ok) throw new SeatlineError(response.status === 401 ? 'UNAUTHENTICATED' : 'UNAVAILABLE', `status ${response.status}`);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await response.blob());
    link.download = `lecture-${boardId}-enrollments.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    showFormError(error instanceof SeatlineError ? error : new SeatlineError('NETWORK', 'no answer', { cause: error }));
  }
}
