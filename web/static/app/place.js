// One person's place at one lecture: watching it, and what one can do about it.

import { announce, callOff, callOut, unlockSound } from './alerts.js';
import { problem } from './lists.js';
import { go } from './router.js';
import { client, forget, isSignedOut } from './session.js';
import { noPlace, set, state } from './state.js';
import { kept } from './storage.js';
import { texts } from './texts.js';
import { POSITION_FIELDS } from '../sdk.js';

/**
 * @typedef {import('../sdk.js').QueuePosition} QueuePosition
 * @typedef {import('./state.js').Action} Action
 */

const LECTURE = `query ($id: ID!) { lecture(id: $id) {
  id title description capacity enrolledCount seatsLeft lineState waiting opensAt closesAt
} }`;

let stopWatching = () => {};

// Whoever pressed the button before signing in has pressed it.
let joinAfterSignIn = '';

/** @type {ReturnType<typeof setTimeout> | undefined} */
let refresh;

/** @param {string} lectureId */
export async function openPlace(lectureId) {
  closePlace();
  set({ ...noPlace(), lectureId });
  set({ first: recall('first') ?? null });
  watchPlace();
  if (state.viewer && joinAfterSignIn === lectureId) join();
  if (state.viewer) joinAfterSignIn = '';
  await loadLecture();
}

export function closePlace() {
  stopWatching();
  stopWatching = () => {};
  clearTimeout(refresh);
  callOff();
  set({ lectureId: '' });
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

export function watchPlace() {
  stopWatching();
  clearTimeout(refresh);
  const { lectureId, viewer } = state;
  if (!viewer || !lectureId) return;
  stopWatching = client.watchPosition(lectureId, took, {
    onStatus(link) {
      set({ link });
      const t = texts[state.lang];
      if (link.state === 'offline') announce(t.links.offline, true);
      // A line that has closed may be opened again; the server ends the watch all the same.
      if (link.state === 'ended' && state.position?.lineState === 'CLOSED') refresh = setTimeout(watchPlace, 30_000 * (1 + Math.random()));
      if (link.state !== 'failed') return;
      if (isSignedOut(link.error)) forget();
      if (link.error?.code === 'NOT_FOUND') set({ lecture: null });
    },
  });
}

// What a device remembers of a place: its proof, and where it began. Both are for
// one account, as two people may share a device.
/** @param {string} kind */
const slot = (kind) => `seatline.${kind}.${state.lectureId}`;

/** @param {string} kind @returns {any} */
function recall(kind) {
  try {
    const { user, value } = JSON.parse(kept.get(slot(kind)) ?? '{}');
    return user === state.viewer?.userKey ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} kind @param {unknown} value */
function remember(kind, value) {
  kept.set(slot(kind), JSON.stringify({ user: state.viewer?.userKey, value }));
}

/** @param {string} kind */
const drop = (kind) => kept.remove(slot(kind));

/** Takes a reading over, unless a later one was there before it. @param {QueuePosition} position */
function took(position) {
  const before = state.position;
  // By more than a minute it is no late reading but another clock.
  const late = before ? Date.parse(before.serverTime) - Date.parse(position.serverTime) : 0;
  if (late > 0 && late < 60_000) return;
  let first = null;
  if (position.status === 'WAITING' && position.position !== null) {
    first = recall('first') ?? position.position;
    if (first < position.position || recall('first') === undefined) remember('first', (first = position.position));
    if (position.placeToken) remember('place', position.placeToken);
  } else {
    drop('first');
    // The proof is for a line that is lost, which can happen to a ticket as well.
    if (position.status !== 'ADMITTED' && position.reason !== 'LINE_LOST') drop('place');
  }
  set({
    position,
    first,
    readAt: client.serverNow(),
    now: client.serverNow(),
    lecture: { ...state.lecture, ...position.lecture },
    ...(before && before.status !== position.status && state.notice && !state.busy ? { notice: null } : {}),
  });
  tell(before, position);
  if (position.reason === 'LINE_LOST' && recall('place') && !state.busy) restore(recall('place'));
}

/** @param {QueuePosition | null} before @param {QueuePosition} position */
function tell(before, position) {
  const t = texts[state.lang];
  const changed = before?.status !== position.status;
  if (position.status === 'ADMITTED') {
    if (!changed) return;
    callOut(position.lecture.title);
    announce(`${t.yourTurn}. ${t.heldForYou}`, true);
    return;
  }
  callOff();
  if (position.status === 'WAITING' && position.position !== null) {
    const stateChanged = before?.lineState !== position.lineState;
    const words = `${t.yourPlace}: ${position.position}. ${stateChanged ? t.waitingStates[position.lineState] : ''}`;
    announce(words, changed || stateChanged);
  } else if (changed && before && position.status === 'EXPIRED') {
    announce(t.expired[position.reason ?? 'TICKET_EXPIRED'].join('. '), true);
  } else if (changed && position.status === 'ENROLLED') {
    announce(t.enrolled, true);
  }
}

/**
 * Does one thing at a time: a second click while it runs is the same click.
 *
 * @param {Action} action
 * @param {() => Promise<void>} work
 */
async function doing(action, work) {
  if (state.busy) return;
  const { lectureId } = state;
  set({ busy: action, notice: null, retries: 0 });
  try {
    await work();
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
  return doing('join', async () => {
    const placeToken = recall('place') ?? null;
    const { joinQueue } = await client.mutate(JOIN, { lectureId: state.lectureId, placeToken }, patiently);
    took(joinQueue);
    if (state.link.state === 'ended' || state.link.state === 'failed') watchPlace();
  });
}

/** Brings the place back after the line was lost, without being asked. @param {string} placeToken */
function restore(placeToken) {
  return doing('join', async () => {
    const { joinQueue } = await client.mutate(JOIN, { lectureId: state.lectureId, placeToken }, patiently);
    took(joinQueue);
    if (joinQueue.status === 'WAITING') set({ notice: { tone: 'good', key: 'restored' } });
  });
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
  return doing('enroll', async () => {
    const { enroll: outcome } = await client.mutate(
      `mutation ($lectureId: ID!) { enroll(lectureId: $lectureId) { status position { ${POSITION_FIELDS} } } }`,
      { lectureId: state.lectureId }, patiently,
    );
    took(outcome.position);
    /** @type {import('../sdk.js').EnrollStatus} */
    const status = outcome.status;
    set({ notice: OUTCOMES[status] });
  });
}

export function leave() {
  return doing('leave', async () => {
    const { leaveQueue } = await client.mutate(
      `mutation ($lectureId: ID!) { leaveQueue(lectureId: $lectureId) { ${POSITION_FIELDS} } }`,
      { lectureId: state.lectureId }, patiently,
    );
    took(leaveQueue);
    if (leaveQueue.status === 'NOT_QUEUED') set({ notice: { tone: 'plain', key: 'left' } });
  });
}

/** @param {string} lectureId */
export const cancelEnrollment = (lectureId) =>
  client.mutate('mutation ($id: ID!) { cancelEnrollment(lectureId: $id) { id cancelledAt } }', { id: lectureId }, { retries: 4 });

export function cancel() {
  return doing('cancel', async () => {
    const { lectureId } = state;
    await cancelEnrollment(lectureId);
    if (state.lectureId !== lectureId) return;
    set({ ...noPlace(), busy: 'cancel', lecture: state.lecture });
    watchPlace();
    await loadLecture();
    set({ notice: { tone: 'plain', key: 'cancelled' } });
  });
}
