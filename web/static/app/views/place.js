// What somebody sees of their place: one panel, in every state there is.

import { notificationState, ring, unlockSound } from '../alerts.js';
import { ask } from '../dialog.js';
import { h } from '../element.js';
import { heldBefore, roomBefore } from '../memory.js';
import { enroll, join, leave } from '../place.js';
import { isGuest } from '../session.js';
import { set, state } from '../state.js';
import { kept } from '../storage.js';
import { clock, countdown, number } from '../time.js';
import { signInAgain } from './banner.js';
import { errorText, icon, ICONS, t } from './parts.js';
import { receiptCard } from './receipt.js';

/** @typedef {import('../../sdk.js').QueuePosition} QueuePosition */

/** Whether it is known what to show of the place. */
export function settled() {
  const { viewer, lecture, position, link } = state;
  if (viewer === undefined || !lecture) return false;
  return viewer === null || position !== null || !['connecting', 'live'].includes(link.state);
}

// What comes in place of a skeleton is another element: it moves nothing, as the
// skeleton has its room.
export function placePanel() {
  const known = settled();
  const room = known ? undefined : roomBefore(state.route.id ?? '');
  return h('section', {
    class: `place ${known ? panelTone() : loadingTone()}`, 'aria-label': t().yourPlace,
    key: known ? 'known' : `loading-${state.lecture ? 'place' : 'lecture'}`, '--room': room && `${room.place}px`,
  },
  noticeLine(),
  known ? panel() : h('div', { class: 'skeleton panel', 'aria-hidden': 'true' }));
}

function panelTone() {
  const { position } = state;
  if (position?.status === 'ADMITTED') return 'admitted';
  return position?.status === 'WAITING' && position.lineState !== 'CLOSED' ? 'waiting' : '';
}

/** A place that is not read yet gets the room that it will take, as far as one can know. */
const loadingTone = () => (state.viewer !== null && heldBefore()[state.route.id ?? ''] !== undefined ? 'loading waiting' : 'loading');

function panel() {
  const { viewer, lecture, position } = state;
  if (!viewer) return state.ended ? ended(state.ended) : joining(lecture?.lineState ?? 'CLOSED');
  if (!position) return linkLine();
  switch (position.status) {
    case 'WAITING': return waiting(position);
    case 'ADMITTED': return admitted(position);
    case 'ENROLLED': return enrolled(position);
    case 'EXPIRED': return expired(position);
    case 'NOT_QUEUED': return position.reason ? expired(position) : [joining(position.lineState), linkLine()];
  }
}

/** Whether what is shown was true a moment ago and may not be now. */
export const stale = (link = state.link) => !['live', 'polling', 'ended'].includes(link.state);

function noticeLine() {
  const { notice, busy, retries } = state;
  if (busy && retries > 0) return h('p', { class: 'note', role: 'status' }, t().retrying(retries));
  if (!notice) return null;
  const words = notice.error ? errorText(notice.error) : t().notices[notice.key];
  return h('p', { class: `note ${notice.tone}`, role: notice.tone === 'bad' ? 'alert' : 'status' }, words);
}

/** How the connection is, in words; and if what is shown is old, of when it is. */
function linkLine() {
  const { link, readAt, lang } = state;
  const words = link.state === 'failed' && link.error ? errorText(link.error) : t().links[link.state];
  return h('p', { class: `link-state ${link.state}`, role: stale() ? 'status' : null },
    h('span', { class: 'dot', 'aria-hidden': 'true' }),
    h('span', null, words, stale() && readAt > 0 && [' ', h('span', { class: 'since' }, t().lastKnown(clock(readAt, lang)))]));
}

/** A place that cannot be read any more is not shown. @param {'guest' | 'account'} whose */
function ended(whose) {
  const [title, body] = t().ended[whose];
  return h('div', { class: 'words', key: 'ended' }, h('h2', null, title), h('p', null, body), signInAgain());
}

/** @param {import('../../sdk.js').LineState} lineState */
function joining(lineState) {
  const opening = lineState === 'UPCOMING' ? Date.parse(state.lecture?.opensAt ?? '') - state.now : NaN;
  if (lineState === 'CLOSED') return h('div', { class: 'words' }, h('h2', null, t().closedTitle), h('p', null, t().closedBody));
  return h('div', { class: 'words' },
    opening > 0 && opening < 86_400_000 && h('p', { class: 'big', role: 'timer' }, h('span', { class: 'label' }, t().untilOpening), countdown(opening)),
    h('p', null, t().joiningStates[lineState]),
    joinButton(lineState === 'SOLD_OUT' ? t().joinWaitlist : t().join));
}

/** @param {string} label */
const joinButton = (label) =>
  h('button', { class: 'button primary main', key: 'join', 'aria-disabled': state.busy === 'join' && 'true', onclick: join },
    state.busy === 'join' ? t().joining : label);

/** @param {QueuePosition} position */
function expired({ reason, lineState }) {
  const [title, body] = t().expired[reason ?? 'TICKET_EXPIRED'];
  return h('div', { class: 'words' },
    h('h2', null, title),
    h('p', null, lineState === 'CLOSED' ? t().closedBody : body),
    lineState !== 'CLOSED' && joinButton(t().joinAgain),
    linkLine());
}

/** @param {QueuePosition} position */
function waiting(position) {
  if (position.lineState === 'CLOSED') return closed(position);
  const place = position.position ?? 0;
  const old = stale();
  const sentence = t().waitingStates[position.lineState];
  return h('div', { class: `queue ${old ? 'stale' : ''}` },
    linkLine(),
    h('p', { class: 'label' }, old ? t().placeThen : t().yourPlace),
    // A new number is a new element, so it comes in softly instead of flickering.
    h('p', { class: 'number', '--digits': String(String(place).length) },
      position.approximate && h('span', { class: 'about' }, t().approximate),
      h('span', { class: 'digits', key: place }, number(place, state.lang))),
    h('p', { class: 'ahead' }, place === 1 ? t().next : t().ahead(place - 1)),
    rail(place),
    h('dl', { class: 'figures' },
      figure(t().wait, position.estimatedWaitSeconds === null ? t().unknown : t().waitWords(position.estimatedWaitSeconds)),
      figure(t().chance, position.seatChance === null ? t().unknown : chanceWords(position.seatChance)),
      figure(t().total, number(position.total, state.lang))),
    h('p', { class: 'sentence' }, sentence),
    messageOf(position),
    h('div', { class: 'tools' }, notifyButton(), soundButton()),
    h('p', { class: 'small' }, isGuest(state.viewer?.userKey) ? t().keepOpenGuest : t().keepOpen),
    leaveButton());
}

/** Nobody is next in a line that does not move; but it may be opened again. @param {QueuePosition} position */
function closed(position) {
  return h('div', { class: 'words', key: 'closed' },
    h('h2', null, t().closedTitle),
    h('p', null, t().closedPlace(number(position.position ?? 0, state.lang))),
    messageOf(position),
    state.link.state !== 'ended' && linkLine(),
    leaveButton());
}

/** @param {QueuePosition} position */
const messageOf = ({ message }) =>
  message && h('figure', { class: 'message' }, h('figcaption', { class: 'label' }, t().operatorSays), h('p', null, message));

const leaveButton = () => h('button', { class: 'link leave', onclick: askToLeave }, t().leave);

/** @param {string} label @param {string} value */
const figure = (label, value) => h('div', null, h('dt', null, label), h('dd', null, value));

/** @param {number} chance */
function chanceWords(chance) {
  const steps = [0.1, 0.4, 0.75, 0.95];
  return t().chances[steps.filter((step) => chance >= step).length] ?? '';
}

/** The way from where one began to the seat. @param {number} place */
function rail(place) {
  const first = Math.max(state.first ?? place, place);
  const done = first > 1 ? (first - place) / (first - 1) : 1;
  return h('div', { class: 'rail' },
    h('div', { class: 'track', role: 'progressbar', 'aria-label': t().progressLabel, 'aria-valuemin': 0, 'aria-valuemax': 100,
      'aria-valuenow': Math.round(done * 100), '--done': String(done) },
    h('span', { class: 'done' }), h('span', { class: 'you' })),
    icon(ICONS.seat),
    h('p', { class: 'small' }, t().progress(first)));
}

function notifyButton() {
  const permission = notificationState();
  if (permission === 'granted') return h('span', { class: 'small tool' }, icon(ICONS.bell), t().notifyOn);
  if (permission === 'denied') return null;
  return h('button', { class: 'button quiet', onclick: async () => {
    unlockSound();
    await Notification.requestPermission();
    set({});
  } }, icon(ICONS.bell), t().tellMe);
}

const soundButton = () =>
  h('button', { class: 'button quiet', 'aria-pressed': String(state.sound), onclick: () => {
    const sound = !state.sound;
    kept.set('seatline.sound', sound ? 'on' : 'off');
    set({ sound });
    unlockSound();
    ring();
  } }, icon(state.sound ? ICONS.sound : ICONS.mute), t().sound);

async function askToLeave() {
  const yes = await ask({ title: t().leaveAsk, body: h('p', null, t().leaveBody), yes: t().leave, no: t().stay, danger: true });
  if (yes) leave();
}

/** What is left of a ticket, by the server's clock. @param {QueuePosition} position */
export const ticketLeft = ({ ticketExpiresAt }) => Date.parse(ticketExpiresAt ?? '') - state.now;

/** @param {QueuePosition} position */
function admitted(position) {
  const left = ticketLeft(position);
  const enrolling = state.busy === 'enroll';
  return h('div', { class: 'turn' },
    h('h2', null, t().yourTurn),
    h('p', null, t().heldForYou),
    h('p', { class: 'number', role: 'timer', 'aria-label': t().timeLeft, '--digits': String(countdown(left).length) }, h('span', { class: 'digits' }, countdown(left))),
    h('p', { class: 'label' }, left > 0 ? t().timeLeft : t().timeUp),
    h('button', { class: 'button main', key: 'enroll', 'aria-disabled': enrolling && 'true', onclick: enroll },
      enrolling ? t().enrolling : t().enroll),
    stale() && linkLine(),
    h('button', { class: 'link', onclick: askToGiveBack }, t().giveBack));
}

async function askToGiveBack() {
  const yes = await ask({ title: t().giveBackAsk, body: h('p', null, t().giveBackBody), yes: t().giveBack, no: t().keepIt, danger: true });
  if (yes) leave();
}

/** @param {QueuePosition} position */
function enrolled({ receipt }) {
  return h('div', { class: 'done-view' },
    h('h2', { class: 'success' }, icon(ICONS.check), t().enrolled),
    receipt && receiptCard(receipt, { title: state.lecture?.title ?? '' }));
}
