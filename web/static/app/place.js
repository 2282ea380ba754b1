// One person's place at one lecture: watching it, and what one can do about it.

import { announce, callOff, callOut, hush, unlockSound } from './alerts.js';
import { problem } from './lists.js';
import { drop, heldBefore, recall, remember, rememberHeld } from './memory.js';
import { go } from './router.js';
import { client, forget, isSignedOut } from './session.js';
import { connecting, noPlace, set, state } from './state.js';
import { texts } from './texts.js';
import { POSITION_FIELDS } from '../sdk.js';

/**
 * @typedef {import('../sdk.js').QueuePosition} QueuePosition
 * @typedef {import('./state.js').Action} Action
 */

const LECTURE = `query ($id: ID!) { lecture(id: $id) {
  id title description capacity enrolledCount seatsLeft lineState waiting opensAt closesAt
} }`;

/** @typedef {{ stop: () => void, timer?: ReturnType<typeof setTimeout> }} Watch */

/** One for the lecture of the page, and for each at which a place is held, by their ids. @type {Map<string, Watch>} */
const watches = new Map();

// A socket carries twenty subscriptions, and nobody waits at as many lectures.
const MOST_WATCHES = 12;

// Whoever pressed the button before signing in has pressed it.
let joinAfterSignIn = '';

/** @type {ReturnType<typeof setTimeout> | undefined} */
let refresh;

/** @param {string} lectureId */
export async function openPlace(lectureId) {
  leavePlace();
  const { [lectureId]: held, ...elsewhere } = state.elsewhere;
  set({ ...noPlace(), lectureId, elsewhere });
  if (held) set({ link: held.link });
  if (held?.position) set({ lecture: held.position.lecture, position: held.position, readAt: held.readAt });
  set({ first: recall('first', lectureId) ?? null });
  if (!held || ['ended', 'failed'].includes(held.link.state)) watchPlace(lectureId);
  if (state.viewer && joinAfterSignIn === lectureId) join();
  if (state.viewer) joinAfterSignIn = '';
  await loadLecture();
}

/** The page is left, but not the line: a place that is held is still watched. */
export function leavePlace() {
  const { lectureId, position, link, readAt } = state;
  clearTimeout(refresh);
  if (!lectureId) return;
  set({ ...noPlace(), lectureId: '' });
  if (position && isHeld(position)) put(lectureId, { title: position.lecture.title, position, link, readAt });
  else unwatch(lectureId);
}

/** Watches what this device has seen the viewer hold, on whatever page that was. */
export function resumePlaces() {
  for (const id of watches.keys()) unwatch(id);
  callOff();
  hush();
  const titles = Object.entries(heldBefore()).slice(-MOST_WATCHES);
  set({ elsewhere: Object.fromEntries(titles.map(([id, title]) => [id, { title, position: null, link: connecting, readAt: 0 }])) });
  for (const [id] of titles) watchPlace(id);
}

/** The lecture itself: once for those whose place is watched, now and then for the others. */
export async function loadLecture() {
  const { lectureId } = state;
  clearTimeout(refresh);
  try {
    const { lecture } = await client.query(LECTURE, { id: lectureId });
    if (state.lectureId !== lectureId) return;
    set({ lecture, lectureError: null, now: client.serverNow() });
  } catch (error) {
    if (state.lectureId !== lectureId) return;
    if (isSignedOut(error)) {
      forget();
      loadLecture();
      return;
    }
    set({ lectureError: problem(error) });
  }
  if (state.viewer) return;
  const opening = state.lecture?.lineState === 'UPCOMING' ? Date.parse(state.lecture.opensAt ?? '') - client.serverNow() : Infinity;
  refresh = setTimeout(loadLecture, Math.max(1000, Math.min(10_000, opening)) + 2000 * Math.random());
}

/** @param {string} id */
function watchPlace(id) {
  unwatch(id);
  if (!state.viewer || !id) return;
  /** @type {Watch} */
  const watch = { stop() {} };
  watches.set(id, watch);
  watch.stop = client.watchPosition(id, (position) => took(id, position), { onStatus: (link) => linked(id, link) });
}

/** @param {string} id */
function unwatch(id) {
  const watch = watches.get(id);
  watch?.stop();
  clearTimeout(watch?.timer);
  watches.delete(id);
}

/** @param {string} id @param {import('./state.js').Held | null} held */
function put(id, held) {
  const { [id]: _, ...others } = state.elsewhere;
  set({ elsewhere: held ? { ...others, [id]: held } : others });
}

/** @param {QueuePosition} position */
const isHeld = ({ status }) => status === 'WAITING' || status === 'ADMITTED';

/** @param {string} id */
const positionAt = (id) => (id === state.lectureId ? state.position : state.elsewhere[id]?.position ?? null);

/** @param {string} id @param {import('../sdk.js').WatchStatus} link */
function linked(id, link) {
  const held = state.elsewhere[id];
  if (id === state.lectureId) set({ link });
  else if (held) put(id, { ...held, link });
  if (link.state === 'offline') announce(texts[state.lang].links.offline, true);
  if (link.state === 'ended') lookLater(id);
  if (link.state !== 'failed') return;
  if (isSignedOut(link.error)) {
    forget();
  } else if (link.error?.code === 'NOT_FOUND') {
    if (id === state.lectureId) set({ lecture: null });
    else put(id, null);
  }
}

// The server ends a watch when the story is over, but a line that has closed may be
// opened again, and an enrolment cancelled elsewhere.
/** @param {string} id */
function lookLater(id) {
  const watch = watches.get(id);
  if (!watch) return;
  clearTimeout(watch.timer);
  const enrolled = positionAt(id)?.status === 'ENROLLED';
  watch.timer = setTimeout(look, (enrolled ? 15_000 : 5000) * (1 + Math.random()), id);
}

const LOOK = `query ($id: ID!) { queuePosition(lectureId: $id) { ${POSITION_FIELDS} } }`;

/** @param {string} id */
async function look(id) {
  const watch = watches.get(id);
  const before = positionAt(id);
  if (!watch || state.busy) return lookLater(id);
  // Whoever does not look at a receipt is shown a true one on coming back.
  if (before?.status === 'ENROLLED' && document.visibilityState === 'hidden') return lookLater(id);
  try {
    const { queuePosition } = await client.query(LOOK, { id }, { retries: 0 });
    if (watches.get(id) !== watch || state.busy) return;
    took(id, queuePosition);
    const { status, lineState } = queuePosition;
    if (id === state.lectureId && before?.status === 'ENROLLED' && status !== 'ENROLLED') set({ notice: { tone: 'bad', key: 'enrollmentOver' } });
    if (status !== 'ENROLLED' && lineState !== 'CLOSED') watchPlace(id);
  } catch (error) {
    if (isSignedOut(error)) forget();
  } finally {
    if (watches.get(id) === watch) lookLater(id);
  }
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible') return;
  for (const [id, { timer }] of watches) if (timer !== undefined) look(id);
});

/** Takes a reading over, unless a later one was there before it. @param {string} id @param {QueuePosition} position */
function took(id, position) {
  const before = positionAt(id);
  // By more than a minute it is no late reading but another clock.
  const late = before ? Date.parse(before.serverTime) - Date.parse(position.serverTime) : 0;
  if (late > 0 && late < 60_000) return;
  let first = null;
  if (position.status === 'WAITING' && position.position !== null) {
    first = recall('first', id) ?? position.position;
    if (first < position.position || recall('first', id) === undefined) remember('first', id, (first = position.position));
    if (position.placeToken) remember('place', id, position.placeToken);
  } else {
    drop('first', id);
    // The proof is for a line that is lost, which can happen to a ticket as well.
    if (position.status !== 'ADMITTED' && position.reason !== 'LINE_LOST') drop('place', id);
  }
  rememberHeld(id, position);
  const readAt = client.serverNow();
  if (id === state.lectureId) {
    set({
      position, first, readAt, now: readAt,
      lecture: { ...state.lecture, ...position.lecture },
      ...(before && before.status !== position.status && state.notice && !state.busy ? { notice: null } : {}),
    });
  } else if (isHeld(position) || position.reason) {
    put(id, { link: connecting, ...state.elsewhere[id], title: position.lecture.title, position, readAt });
    set({ now: readAt });
  } else {
    put(id, null);
    unwatch(id);
  }
  tell(id, before, position);
  if (position.reason === 'LINE_LOST' && recall('place', id) && !state.busy) restore(id, recall('place', id));
}

/** @param {string} id @param {QueuePosition | null} before @param {QueuePosition} position */
function tell(id, before, position) {
  const t = texts[state.lang];
  const changed = before?.status !== position.status;
  // Away from its page, a place says which lecture it is at.
  const say = (/** @type {string} */ words, /** @type {boolean} */ matters) =>
    announce(id === state.lectureId ? words : `${position.lecture.title}. ${words}`, matters);
  if (position.status === 'ADMITTED') {
    if (!changed) return;
    callOut(id, position.lecture.title);
    say(`${t.yourTurn}. ${t.heldForYou}`, true);
    return;
  }
  callOff(id);
  if (position.status === 'WAITING' && position.position !== null) {
    const stateChanged = before?.lineState !== position.lineState;
    const closed = position.lineState === 'CLOSED';
    const place = `${t.yourPlace}: ${position.position}. `;
    say(`${closed ? '' : place}${stateChanged ? t.waitingStates[position.lineState] : ''}`, changed || stateChanged);
    return;
  }
  if (changed) hush();
  if (changed && before && position.status === 'EXPIRED') {
    say(t.expired[position.reason ?? 'TICKET_EXPIRED'].join('. '), true);
  } else if (changed && position.status === 'ENROLLED') {
    say(t.enrolled, true);
  } else if (before?.status === 'ENROLLED' && changed && state.busy !== 'cancel') {
    say(t.notices.enrollmentOver, true);
  }
}

/**
 * Does one thing at a time: a second click while it runs is the same click.
 *
 * @param {Action} action
 * @param {(lectureId: string) => Promise<void>} work
 */
async function doing(action, work) {
  if (state.busy) return;
  const { lectureId } = state;
  set({ busy: action, notice: null, retries: 0 });
  try {
    await work(lectureId);
  } catch (error) {
    if (isSignedOut(error)) forget();
    else if (state.lectureId === lectureId) set({ notice: { tone: 'bad', key: 'failed', error: problem(error) } });
  } finally {
    if (state.lectureId === lectureId) set({ busy: null, retries: 0 });
  }
}

const patiently = {
  retries: 4,
  /** @param {unknown} _ @param {number} attempt */
  onRetry: (_, attempt) => set({ retries: attempt }),
};

const JOIN = `mutation ($lectureId: ID!, $placeToken: String) {
  joinQueue(lectureId: $lectureId, placeToken: $placeToken) { ${POSITION_FIELDS} }
}`;

export function join() {
  unlockSound();
  if (!state.viewer) {
    joinAfterSignIn = state.lectureId;
    go(`/signin?next=${encodeURIComponent(`/lectures/${state.lectureId}`)}`);
    return Promise.resolve();
  }
  return doing('join', async (lectureId) => {
    const placeToken = recall('place', lectureId) ?? null;
    const { joinQueue } = await client.mutate(JOIN, { lectureId, placeToken }, patiently);
    took(lectureId, joinQueue);
    if (state.lectureId === lectureId && ['ended', 'failed'].includes(state.link.state)) watchPlace(lectureId);
  });
}

/** @type {Set<string>} */
const restoring = new Set();

/** Brings the place back after the line was lost, without being asked. @param {string} lectureId @param {string} placeToken */
async function restore(lectureId, placeToken) {
  const work = async () => {
    const { joinQueue } = await client.mutate(JOIN, { lectureId, placeToken }, patiently);
    took(lectureId, joinQueue);
    if (state.lectureId === lectureId && joinQueue.status === 'WAITING') set({ notice: { tone: 'good', key: 'restored' } });
  };
  if (state.lectureId === lectureId) return doing('join', work);
  if (restoring.has(lectureId)) return;
  restoring.add(lectureId);
  // Where it fails, the banner says what has happened and leads to the button.
  await work().catch((error) => isSignedOut(error) && forget());
  restoring.delete(lectureId);
}

/** @type {Record<import('../sdk.js').EnrollStatus, import('./state.js').Notice | null>} */
const OUTCOMES = {
  ENROLLED: null,
  ALREADY_ENROLLED: { tone: 'good', key: 'alreadyEnrolled' },
  NOT_ADMITTED: { tone: 'plain', key: 'notAdmitted' },
  TICKET_EXPIRED: { tone: 'bad', key: 'ticketExpired' },
  SOLD_OUT: { tone: 'bad', key: 'soldOut' },
  CLOSED: { tone: 'bad', key: 'closed' },
};

export function enroll() {
  return doing('enroll', async (lectureId) => {
    const { enroll: outcome } = await client.mutate(
      `mutation ($lectureId: ID!) { enroll(lectureId: $lectureId) { status position { ${POSITION_FIELDS} } } }`,
      { lectureId }, patiently,
    );
    took(lectureId, outcome.position);
    /** @type {import('../sdk.js').EnrollStatus} */
    const status = outcome.status;
    if (state.lectureId === lectureId) set({ notice: OUTCOMES[status] });
  });
}

export function leave() {
  return doing('leave', async (lectureId) => {
    const { leaveQueue } = await client.mutate(
      `mutation ($lectureId: ID!) { leaveQueue(lectureId: $lectureId) { ${POSITION_FIELDS} } }`,
      { lectureId }, patiently,
    );
    took(lectureId, leaveQueue);
    if (state.lectureId === lectureId && leaveQueue.status === 'NOT_QUEUED') set({ notice: { tone: 'plain', key: 'left' } });
  });
}

/** @param {string} lectureId */
export const cancelEnrollment = (lectureId) =>
  client.mutate('mutation ($id: ID!) { cancelEnrollment(lectureId: $id) { id cancelledAt } }', { id: lectureId }, { retries: 4 });

export function cancel() {
  return doing('cancel', async (lectureId) => {
    await cancelEnrollment(lectureId);
    if (state.lectureId !== lectureId) return;
    set({ ...noPlace(), busy: 'cancel', lecture: state.lecture });
    watchPlace(lectureId);
    await loadLecture();
    set({ notice: { tone: 'plain', key: 'cancelled' } });
  });
}
