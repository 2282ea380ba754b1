// One lecture, and the viewer's place at it.

import { h } from '../element.js';
import { loadLecture } from '../place.js';
import { state } from '../state.js';
import { instant } from '../time.js';
import { empty, errorCard, icon, ICONS, stateChip, t } from './parts.js';
import { placePanel } from './place.js';

export function lecturePage() {
  const { lecture, lectureError } = state;
  if (lecture === null) return missingPage();
  const description = lecture?.description && h('p', { class: 'description', key: 'description' }, lecture.description);
  // Whoever is in line has read it, and has something else to look at.
  const inLine = state.position?.status === 'WAITING' || state.position?.status === 'ADMITTED';
  return [
    h('a', { class: 'link up', href: '#/' }, icon(ICONS.back), t().toLectures),
    h('article', { class: 'lecture' },
      h('div', { class: 'head' },
        lecture ? h('h1', { tabindex: -1 }, lecture.title) : h('h1', { class: 'skeleton line', tabindex: -1 }, t().loading),
        lecture && facts(lecture),
        !inLine && description),
      lectureError && !lecture ? errorCard(lectureError, loadLecture) : placePanel(),
      inLine && description),
  ];
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

export const missingPage = () =>
  [h('h1', { class: 'hidden', tabindex: -1 }, t().notFound),
    empty(t().notFound, t().notFoundHint, h('a', { class: 'button primary', href: '#/' }, t().toLectures))];
