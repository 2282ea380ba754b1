// What must be seen on every page: places held elsewhere, and a session that has ended.

import { h } from '../element.js';
import { state } from '../state.js';
import { clock, countdown, number } from '../time.js';
import { t } from './parts.js';
import { stale, ticketLeft } from './place.js';

export function banners() {
  const { page, id } = state.route;
  const held = Object.entries(state.elsewhere)
    .filter(([lectureId]) => page !== 'lecture' || lectureId !== id)
    .sort(([, a], [, b]) => Number(isTurn(b)) - Number(isTurn(a)));
  return [
    state.ended && page !== 'signin' && page !== 'lecture' && endedBanner(),
    held.map(([lectureId, place]) => placeBanner(lectureId, place)),
  ];
}

/** @param {import('../state.js').Held} held */
const isTurn = ({ position }) => position?.status === 'ADMITTED';

/** Leads back to where one is. */
export const signInAgain = () =>
  h('a', { class: 'button primary', href: `#/signin?next=${encodeURIComponent(location.hash.slice(1).split('?')[0] || '/')}` }, t().signInAgain);

function endedBanner() {
  const [title, body] = t().ended[state.ended ?? 'account'];
  return h('div', { class: 'banner note bad', key: 'ended' }, h('p', null, h('strong', null, title), ' ', body), signInAgain());
}

/** @param {string} id @param {import('../state.js').Held} held */
function placeBanner(id, held) {
  const { title, position } = held;
  const turn = position?.status === 'ADMITTED';
  return h('a', { class: `banner card ${turn ? 'turn-now' : ''}`, key: `place-${id}`, href: `#/lectures/${encodeURIComponent(id)}` },
    h('strong', null, placeWords(held)),
    turn && h('span', { class: 'left' }, countdown(ticketLeft(position))),
    h('span', { class: 'title' }, title));
}

/** In a few words what somebody has at a lecture, and whether that is true now. @param {import('../state.js').Held} held */
export function placeWords({ position, link, readAt }) {
  if (!position) return t().links.connecting;
  const words = statusWords(position);
  return stale(link) ? `${words} · ${t().lastKnown(clock(readAt, state.lang))}` : words;
}

/** @param {import('../../sdk.js').QueuePosition} position */
function statusWords(position) {
  const { status, lineState, reason, position: place } = position;
  if (status === 'ADMITTED') return ticketLeft(position) > 0 ? t().yourTurn : t().timeUp;
  if (status !== 'WAITING') return t().expired[reason ?? 'TICKET_EXPIRED'][0] ?? '';
  return lineState === 'CLOSED' ? t().closedTitle : t().placeNumber(number(place ?? 0, state.lang));
}
