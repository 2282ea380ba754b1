// What is around every page.

import { h } from '../element.js';
import { set, state } from '../state.js';
import { kept } from '../storage.js';
import { t } from './parts.js';
import { askToSignOut } from './signout.js';

/** A row of seats, one of them taken: the mark of the app. */
export const mark = () =>
  h('svg', { class: 'mark', viewBox: '0 0 34 16', 'aria-hidden': 'true' },
    h('circle', { cx: 4, cy: 8, r: 3 }),
    h('circle', { cx: 14, cy: 8, r: 3 }),
    h('rect', { x: 20.5, y: 1.5, width: 13, height: 13, rx: 4 }));

/** @param {string} href @param {string} label @param {boolean} current */
const link = (href, label, current) => h('a', { href, 'aria-current': current && 'page' }, label);

export function header() {
  const { page } = state.route;
  const { viewer } = state;
  return h('header', { class: 'top' },
    h('div', { class: 'bar' },
      h('a', { class: 'brand', href: '#/' }, mark(), 'Seatline'),
      h('span', { class: 'account' },
        h('button', { class: 'link', key: 'language', lang: state.lang === 'en' ? 'ko' : 'en', onclick: switchLanguage }, t().otherLanguage),
        viewer && h('span', { class: 'who', title: t().signedInAs(viewer.name) }, viewer.name),
        viewer && h('button', { class: 'link', onclick: askToSignOut }, t().signOut),
        viewer === null && h('a', { class: 'link', href: '#/signin' }, t().signIn))),
    h('nav', { 'aria-label': t().mainNavigation },
      link('#/', t().lectures, page === 'lectures' || page === 'lecture'),
      link('#/receipts', t().receipts, page === 'receipts'),
      viewer?.operator && link('#/operate', t().operate, page === 'operate' || page === 'board' || page === 'create')));
}

export const footer = () =>
  h('footer', { class: 'bottom' },
    h('span', null, t().tagline),
    h('a', { href: '/sdk.html' }, t().sdk),
    h('a', { href: '/playground' }, t().playground));

function switchLanguage() {
  const lang = state.lang === 'en' ? 'ko' : 'en';
  kept.set('seatline.lang', lang);
  set({ lang });
}
