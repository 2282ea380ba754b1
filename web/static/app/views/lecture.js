// One lecture, and the viewer's place at it.

import { h } from '../element.js';
import { rememberRoom, roomBefore } from '../memory.js';
import { loadLecture } from '../place.js';
import { state } from '../state.js';
import { instant } from '../time.js';
import { empty, errorCard, icon, ICONS, stateChip, t } from './parts.js';
import { placePanel, settled } from './place.js';

export function lecturePage() {
  const { lecture, lectureError } = state;
  if (lecture === null) return missingPage(t().noSuchLecture);
  const room = lecture ? undefined : roomBefore(state.route.id ?? '');
  return [
    h('a', { class: 'link up', href: '#/' }, icon(ICONS.back), t().toLectures),
    h('article', { class: 'lecture' },
      h('div', { class: 'head', '--room': room && `${room.head}px` },
        lecture ? h('h1', { tabindex: -1 }, lecture.title) : h('h1', { class: 'skeleton line', tabindex: -1 }, t().loading),
        lecture && facts(lecture)),
      lectureError && !lecture ? errorCard(lectureError, loadLecture) : placePanel(),
      // Below what may still grow, and when that is there.
      settled() && lecture?.description && h('p', { class: 'description', key: 'description' }, lecture.description)),
  ];
}

/** Remembers how large it all was, so that a reload can make room for it. */
export function keepRoom() {
  const { page, id } = state.route;
  const [head, place] = ['.lecture .head', '.lecture .place'].map((part) => document.querySelector(part)?.getBoundingClientRect().height);
  if (page === 'lecture' && id && head && place && settled()) rememberRoom(id, { width: innerWidth, head, place });
}

/** @param {import('../state.js').Lecture} lecture */
function facts(lecture) {
  const { capacity, seatsLeft, waiting, opensAt, closesAt } = lecture;
  const people = state.position?.total ?? waiting;
  return h('p', { class: 'facts' },
    stateChip(state.position?.lineState ?? lecture.lineState),
    h('span', null, t().seatsOf(seatsLeft, capacity)),
    people > 0 && h('span', null, t().waitingCount(people)),
    opensAt && Date.parse(opensAt) > state.now && h('span', null, `${t().opensAt} ${instant(opensAt, state.lang)}`),
    closesAt && Date.parse(closesAt) > state.now && h('span', null, `${t().closesAt} ${instant(closesAt, state.lang)}`));
}

/** @param {string} [words] */
export const missingPage = (words = t().notFound) =>
  [h('h1', { class: 'hidden', tabindex: -1 }, words),
    empty(words, t().notFoundHint, h('a', { class: 'button primary', href: '#/' }, t().toLectures))];
