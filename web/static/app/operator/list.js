// All lectures, as their operator looks at them.

import { h } from '../element.js';
import { loadLectures } from '../lists.js';
import { state } from '../state.js';
import { number } from '../time.js';
import { searchField, when } from '../views/lectures.js';
import { empty, errorCard, skeletons, stateChip, t } from '../views/parts.js';

export function operatePage() {
  const { loading, nodes, after, error } = state.lectures;
  return [
    h('div', { class: 'heading' },
      h('h1', { tabindex: -1 }, t().operate),
      h('a', { class: 'button primary', href: '#/operate/new' }, t().create)),
    searchField(),
    error && errorCard(error, () => loadLectures('again')),
    loading && nodes.length === 0 ? skeletons(6, 'row') : nodes.length === 0
      ? empty(state.search ? t().noMatches(state.search) : t().noLectures, '')
      : h('ul', { class: 'lectures' }, nodes.map(row)),
    after && h('button', { class: 'button quiet wide', onclick: () => loadLectures('more') }, t().more),
  ];
}

/** @param {import('../state.js').Lecture} lecture */
function row(lecture) {
  const { id, title, capacity, enrolledCount, lineState, waiting } = lecture;
  return h('li', { key: id },
    h('a', { class: 'card row', href: `#/operate/${encodeURIComponent(id)}` },
      h('span', { class: 'title' }, title),
      stateChip(lineState),
      h('span', { class: 'fill', 'aria-hidden': 'true', '--full': String(capacity ? enrolledCount / capacity : 1) }),
      h('span', { class: 'facts' },
        `${t().figures.enrolled} ${number(enrolledCount, state.lang)} / ${number(capacity, state.lang)}`, ' · ', t().waitingCount(waiting)),
      h('span', { class: 'when' }, when(lecture))));
}
