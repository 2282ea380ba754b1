// The list of lectures.

import { h } from '../element.js';
import { loadLectures, searchLectures } from '../lists.js';
import { state } from '../state.js';
import { instant } from '../time.js';
import { placeWords } from './banner.js';
import { empty, errorCard, icon, ICONS, skeletons, stateChip, t } from './parts.js';

export function lecturesPage() {
  const { loading, nodes, after, total, error } = state.lectures;
  return [
    h('h1', { tabindex: -1 }, t().lectures),
    searchField(),
    h('p', { class: 'count', role: 'status' }, loading && nodes.length === 0 ? t().loading : t().lectureCount(total)),
    error && errorCard(error, () => loadLectures('again')),
    h('ul', { class: 'lectures' },
      loading && nodes.length === 0 ? skeletons(6, 'row').map((item, key) => h('li', { key }, item)) : nodes.map(row)),
    !loading && !error && nodes.length === 0 &&
      empty(state.search ? t().noMatches(state.search) : t().noLectures, ''),
    after && h('button', { class: 'button quiet wide', onclick: () => loadLectures('more') }, t().more),
  ];
}

export const searchField = () =>
  h('label', { class: 'search' }, icon(ICONS.search),
    h('input', {
      type: 'search', placeholder: t().search, 'aria-label': t().search, autocomplete: 'off', value: state.search,
      oninput: (/** @type {InputEvent} */ { target }) => searchLectures(/** @type {HTMLInputElement} */ (target).value),
    }));

/** @param {import('../state.js').Lecture} lecture */
function row(lecture) {
  const { id, title, capacity, enrolledCount, seatsLeft, lineState, waiting } = lecture;
  const held = state.elsewhere[id];
  return h('li', { key: id },
    h('a', { class: 'card row', href: `#/lectures/${encodeURIComponent(id)}` },
      h('span', { class: 'title' }, title),
      stateChip(lineState),
      h('span', { class: 'fill', 'aria-hidden': 'true', '--full': String(capacity ? enrolledCount / capacity : 1) }),
      h('span', { class: 'facts' }, t().seatsOf(seatsLeft, capacity), waiting > 0 && ` · ${t().waitingCount(waiting)}`),
      h('span', { class: 'when' }, when(lecture)),
      held && h('span', { class: 'held' }, placeWords(held))));
}

/** When it opens or closes, whichever comes next. @param {import('../state.js').Lecture} lecture */
export function when({ lineState, opensAt, closesAt }) {
  if (lineState === 'UPCOMING' && opensAt) {
    const ms = Date.parse(opensAt) - state.now;
    // Days are no countdown.
    if (ms > 86_400_000) return `${t().opensAt} ${instant(opensAt, state.lang)}`;
    return ms > 0 ? t().opensIn(ms) : t().opensNow;
  }
  if (closesAt && lineState !== 'CLOSED') return `${t().closesAt} ${instant(closesAt, state.lang)}`;
  return '';
}
