// Small pieces that several pages are made of.

import { h } from '../element.js';
import { state } from '../state.js';
import { texts } from '../texts.js';

export const t = () => texts[state.lang];

/** @param {import('../../sdk.js').LineState} lineState */
export const stateChip = (lineState) => h('span', { class: `chip ${lineState}` }, t().states[lineState]);

/** @param {import('../state.js').SeatlineError} error */
export function errorText({ code, message, requestId }) {
  const words = t().errors[code] ?? t().errors['INTERNAL'];
  // What is wrong with it only the server can say, and it says so in English.
  if (code === 'BAD_USER_INPUT' && state.lang === 'en') return `${words} (${message})`;
  return code === 'INTERNAL' && requestId ? `${words} ${t().requestId(requestId)}` : words;
}

/** @param {import('../state.js').SeatlineError} error @param {() => void} again */
export const errorCard = (error, again) =>
  h('div', { class: 'card note bad', role: 'alert' },
    h('p', null, errorText(error)),
    h('button', { class: 'button quiet', onclick: again }, t().tryAgain));

/**
 * A drawing that adds nothing to the words beside it.
 *
 * @param {string} d
 */
export const icon = (d) =>
  h('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, h('path', { d }));

export const ICONS = {
  back: 'M15 5l-7 7 7 7',
  bell: 'M6 16V11a6 6 0 0112 0v5l1.5 2h-15zM10 20.5a2 2 0 004 0',
  sound: 'M5 9.5v5h3l4.5 4v-13L8 9.5zM16 9a4 4 0 010 6M18.5 6.5a8 8 0 010 11',
  mute: 'M5 9.5v5h3l4.5 4v-13L8 9.5zM16 9.5l5 5M21 9.5l-5 5',
  seat: 'M7 13V6.5A2.5 2.5 0 019.5 4h5A2.5 2.5 0 0117 6.5V13M3 13.5a2 2 0 014 0V15h10v-1.5a2 2 0 014 0V18H3zM6 18v2M18 18v2',
  search: 'M10.5 4a6.5 6.5 0 104.6 11.1A6.5 6.5 0 0010.5 4zM15.5 15.5L20 20',
  check: 'M5 12.5l4.5 4.5L19 7.5',
};

/** Room for what is on its way, as large as it will be. @param {number} n @param {string} name */
export const skeletons = (n, name) =>
  Array.from({ length: n }, (_, key) => h('div', { class: `skeleton ${name}`, key: `s${key}`, 'aria-hidden': 'true' }));

/** @param {string} title @param {string} hint @param {...import('../element.js').Child} more */
export const empty = (title, hint, ...more) =>
  h('div', { class: 'empty' }, h('p', { class: 'lead' }, title), hint && h('p', null, hint), more);
