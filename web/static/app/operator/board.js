// One lecture, live: its line in figures and drawings, its roster, its settings.

import { ask } from '../dialog.js';
import { h } from '../element.js';
import { state } from '../state.js';
import { fullInstant, number } from '../time.js';
import { errorCard, errorText, icon, ICONS, skeletons, stateChip, t } from '../views/parts.js';
import { downloadRoster, loadRoster, openBoard, removeEnrollment, searchRoster, updateLecture } from './actions.js';
import { chart } from './chart.js';
import { settingsForm } from './form.js';

/** @typedef {import('../state.js').RunLecture} RunLecture */

export function boardPage() {
  const { run, formError } = state;
  const up = h('a', { class: 'link up', href: '#/operate' }, icon(ICONS.back), t().operate);
  if (!run) {
    return [up, h('h1', { tabindex: -1, class: 'skeleton line' }, t().loading),
      formError ? errorCard(formError, () => openBoard(state.route.id ?? '')) : skeletons(2, 'panel')];
  }
  return [
    up,
    h('div', { class: 'heading' },
      h('h1', { tabindex: -1 }, run.title),
      pauseButton(run)),
    h('p', { class: 'facts' },
      stateChip(state.stats.at(-1)?.lineState ?? run.lineState),
      h('span', { class: `link-state ${state.statsLink}` }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', null, t().links[state.statsLink])),
      h('a', { href: `#/lectures/${encodeURIComponent(run.id)}` }, t().studentView)),
    figures(),
    h('div', { class: 'charts' },
      chart(t().lineOverTime, ({ waiting }) => waiting),
      chart(t().admittedOverTime, ({ admittedPerMinute }) => Math.round(admittedPerMinute))),
    h('h2', null, t().settings),
    settingsForm(run),
    rosterSection(),
  ];
}

/** @param {RunLecture} run */
function pauseButton(run) {
  const { paused } = run.settings;
  return h('button', { class: `button ${paused ? 'primary' : 'quiet'}`, key: 'pause', onclick: async () => {
    const waiting = state.stats.at(-1)?.waiting ?? run.waiting;
    const yes = await ask({
      title: paused ? t().resumeAsk : t().pauseAsk,
      body: h('p', null, paused ? t().resumeBody(waiting) : t().pauseBody(waiting)),
      yes: paused ? t().resume : t().pause,
      no: t().discard,
    });
    if (yes) updateLecture({ settings: { paused: !paused } });
  } }, paused ? t().resume : t().pause);
}

function figures() {
  const now = state.stats.at(-1);
  const n = (/** @type {number | undefined} */ value) => (value === undefined ? '–' : number(value, state.lang));
  const rate = now?.claimRate;
  const f = t().figures;
  return h('dl', { class: `figures board ${state.statsLink === 'live' ? '' : 'stale'}` },
    [
      [f.waiting, n(now?.waiting)],
      [f.held, n(now?.held)],
      [f.inFlight, n(now?.inFlight)],
      [f.seatsLeft, n(now?.seatsLeft)],
      [f.enrolled, now ? `${n(now.enrolledCount)} / ${n(now.capacity)}` : '–'],
      [f.admitted, n(now && Math.round(now.admittedPerMinute))],
      [f.claimRate, rate === null || rate === undefined ? '–' : `${Math.round(rate * 100)} %`],
      [f.parked, n(now?.parked)],
    ].map(([name, value]) => h('div', { key: name }, h('dt', null, name), h('dd', null, value))));
}

function rosterSection() {
  const { nodes, after, loading, total, error } = state.roster;
  return h('div', { class: 'roster' },
    h('div', { class: 'heading' },
      h('h2', null, t().roster),
      h('button', { class: 'button quiet', onclick: downloadRoster }, t().csv)),
    h('label', { class: 'search' }, icon(ICONS.search),
      h('input', { type: 'search', placeholder: t().rosterSearch, 'aria-label': t().rosterSearch, autocomplete: 'off',
        oninput: (/** @type {InputEvent} */ { target }) => searchRoster(/** @type {HTMLInputElement} */ (target).value) })),
    error ? h('p', { class: 'note bad', role: 'alert' }, errorText(error)) : h('p', { class: 'count', role: 'status' }, loading ? t().loading : total === 0 ? t().rosterEmpty : t().rosterCount(total)),
    nodes.length > 0 && h('div', { class: 'card table', tabindex: 0, role: 'region', 'aria-label': t().roster },
      h('table', null,
        h('thead', null, h('tr', null,
          h('th', { scope: 'col' }, t().receiptNumber), h('th', { scope: 'col' }, t().account), h('th', { scope: 'col' }, t().enrolledAt),
          h('th', { scope: 'col' }, h('span', { class: 'hidden' }, t().remove)))),
        h('tbody', null, nodes.map(rosterRow)))),
    after && h('button', { class: 'button quiet wide', onclick: () => loadRoster('more') }, t().more));
}

/** @param {import('../state.js').Receipt} receipt */
function rosterRow({ id, number: n, userKey, enrolledAt }) {
  return h('tr', { key: id },
    h('td', null, number(n, state.lang)),
    h('td', { class: 'key' }, userKey),
    h('td', null, fullInstant(enrolledAt, state.lang)),
    h('td', null, h('button', { class: 'link', 'aria-label': `${t().remove}: ${userKey}`, onclick: async () => {
      const yes = await ask({ title: t().removeAsk, body: h('p', null, t().removeBody(userKey)), yes: t().remove, no: t().discard, danger: true });
      if (yes) removeEnrollment(userKey);
    } }, t().remove)));
}
