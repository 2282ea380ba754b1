// A figure over the last minutes, drawn as an area.

import { h } from '../element.js';
import { state } from '../state.js';
import { number } from '../time.js';
import { t } from '../views/parts.js';

const WIDTH = 600;
const HEIGHT = 140;

/** A round number at or above, so that the scale does not move with every figure. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 4, 5, 10].map((n) => n * power).find((n) => n >= value) ?? value;
}

/**
 * @param {string} name
 * @param {(stats: import('../state.js').LineStats) => number} figure
 */
export function chart(name, figure) {
  const points = state.stats.map((stats) => ({ at: Date.parse(stats.serverTime), value: figure(stats) }));
  const last = points.at(-1);
  const first = points[0];
  const top = roundUp(Math.max(1, ...points.map(({ value }) => value)));
  // At least a minute, or the first two figures would fill the width.
  const span = last && first ? Math.max(60_000, last.at - first.at) : 60_000;
  const x = (/** @type {number} */ at) => (last ? WIDTH * (1 - (last.at - at) / span) : 0).toFixed(1);
  const y = (/** @type {number} */ value) => (HEIGHT * (1 - value / top)).toFixed(1);
  const line = points.map(({ at, value }, i) => `${i === 0 ? 'M' : 'L'}${x(at)} ${y(value)}`).join('');
  const words = last
    ? t().chartSummary(name, number(last.value, state.lang), number(Math.max(...points.map(({ value }) => value)), state.lang))
    : t().chartEmpty;
  return h('figure', { class: 'card chart' },
    h('figcaption', null, h('span', null, name), h('strong', null, last ? number(last.value, state.lang) : '–')),
    h('div', { class: 'plot' },
      h('span', { class: 'small scale', 'aria-hidden': 'true' }, number(top, state.lang)),
      h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
        [0.25, 0.5, 0.75].map((part) => h('path', { class: 'grid', d: `M0 ${HEIGHT * part}H${WIDTH}` })),
        first && last && h('path', { class: 'area', d: `${line}L${x(last.at)} ${HEIGHT}L${x(first.at)} ${HEIGHT}Z` }),
        first && h('path', { class: 'line', d: line }))),
    h('p', { class: 'small axis', 'aria-hidden': 'true' },
      h('span', null, t().minutesAgo(Math.round(span / 60_000))), h('span', null, t().now)));
}
