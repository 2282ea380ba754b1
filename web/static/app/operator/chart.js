// A figure over the last minutes, drawn as an area.

import { h } from '../element.js';
import { state } from '../state.js';
import { number } from '../time.js';
import { t } from '../views/parts.js';

const WIDTH = 600;
const HEIGHT = 140;

/** Without a figure for so long, nobody was looking, or could. */
const GAP_MS = 15_000;

/** @typedef {{ at: number, value: number }} Point */

/** A round number at or above, so that the scale does not move with every figure. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 4, 5, 10].map((n) => n * power).find((n) => n >= value) ?? value;
}

/** The pieces in which nothing is missing. @param {Point[]} points */
function unbroken(points) {
  /** @type {Point[][]} */
  const pieces = [];
  for (const point of points) {
    const piece = pieces.at(-1);
    const before = piece?.at(-1);
    if (piece && before && point.at - before.at < GAP_MS) piece.push(point);
    else pieces.push([point]);
  }
  return pieces;
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
  const pieces = unbroken(points);
  const path = (/** @type {Point[]} */ piece) => piece.map(({ at, value }) => `${x(at)} ${y(value)}`).join('L');
  const foot = (/** @type {Point | undefined} */ point) => `${x(point?.at ?? 0)} ${HEIGHT}`;
  const words = last
    ? t().chartSummary(name, number(last.value, state.lang), number(Math.max(...points.map(({ value }) => value)), state.lang))
    : t().chartEmpty;
  return h('figure', { class: 'card chart' },
    h('figcaption', null, h('span', null, name), h('strong', null, last ? number(last.value, state.lang) : '–')),
    h('div', { class: 'plot' },
      h('span', { class: 'small scale', 'aria-hidden': 'true' }, number(top, state.lang)),
      h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
        [0.25, 0.5, 0.75].map((part) => h('path', { class: 'grid', d: `M0 ${HEIGHT * part}H${WIDTH}` })),
        pieces.length > 0 && h('path', { class: 'area', d: pieces.map((piece) => `M${foot(piece[0])}L${path(piece)}L${foot(piece.at(-1))}Z`).join('') }),
        pieces.length > 0 && h('path', { class: 'line', d: pieces.map((piece) => `M${path(piece)}`).join('') }))),
    h('p', { class: 'small axis', 'aria-hidden': 'true' },
      h('span', null, t().minutesAgo(Math.round(span / 60_000))), h('span', null, t().now)));
}
