// The app: what a page needs when one comes to it, and drawing the state.

import { ring } from './alerts.js';
import { h, render } from './element.js';
import { keepLectures, loadLectures, loadReceipts } from './lists.js';
import { closePlace, openPlace } from './place.js';
import { readRoute } from './router.js';
import { client, loadViewer, onOtherTab, takeTokenFromLink } from './session.js';
import { emptyList, onChange, set, state } from './state.js';
import { kept } from './storage.js';
import { countdown } from './time.js';
import { lecturePage, missingPage } from './views/lecture.js';
import { lecturesPage } from './views/lectures.js';
import { skeletons, t } from './views/parts.js';
import { ticketLeft } from './views/place.js';
import { receiptsPage } from './views/receipt.js';
import { footer, header } from './views/shell.js';
import { signInPage } from './views/signin.js';

const root = /** @type {HTMLElement} */ (document.getElementById('app'));

// Students never need what operators do, so it is loaded when it is asked for.
/** @type {typeof import('./operator/main.js') | undefined} */
let operator;
const OPERATOR_PAGES = ['operate', 'create', 'board'];

function language() {
  const chosen = kept.get('seatline.lang');
  if (chosen === 'en' || chosen === 'ko') return chosen;
  const known = navigator.languages.find((name) => /^(en|ko)\b/.test(name));
  return known?.startsWith('ko') ? 'ko' : 'en';
}

function page() {
  switch (state.route.page) {
    case 'lectures': return lecturesPage();
    case 'lecture': return lecturePage();
    case 'receipts': return receiptsPage();
    case 'signin': return signInPage();
    case 'missing': return missingPage();
    default: return operator ? operator.view() : skeletons(2, 'panel');
  }
}

function title() {
  const { position, route, lecture } = state;
  if (route.page === 'lecture' && position?.status === 'ADMITTED') {
    const blink = Math.floor(state.now / 1000) % 2 ? '●' : '○';
    return `${blink} ${t().titleTurn} ${countdown(ticketLeft(position))}`;
  }
  const place = route.page === 'lecture' && position?.position ? `#${position.position} · ` : '';
  const name = {
    lectures: t().lectures, lecture: lecture?.title ?? t().lecture, receipts: t().receipts, signin: t().signIn,
    operate: t().operate, create: t().createTitle, board: state.run?.title ?? t().board, missing: t().notFound,
  }[route.page];
  return `${place}${name} · Seatline`;
}

let begun = false;
let arrived = false;
let drawing = false;

function draw() {
  drawing = false;
  document.documentElement.lang = state.lang;
  document.title = title();
  root.classList.toggle('at-desk', OPERATOR_PAGES.includes(state.route.page));
  render(root,
    h('a', { class: 'skip', href: '#content', onclick: skip }, t().skip),
    header(),
    h('main', { id: 'content', tabindex: -1, key: `${state.route.page}/${state.route.id ?? ''}` }, page()),
    footer());
  if (arrived) {
    arrived = false;
    scrollTo(0, 0);
    root.querySelector('h1')?.focus({ preventScroll: true });
  }
}

/** The hash is for pages, so the link cannot use it. @param {MouseEvent} event */
function skip(event) {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

async function enter() {
  const { page, id } = state.route;
  if (page !== 'lecture') closePlace();
  operator?.leave();
  set({ formError: null });
  if (page === 'lectures' || page === 'operate') {
    loadLectures('anew');
    keepLectures();
  } else if (page === 'lecture' && state.viewer !== undefined) {
    openPlace(id ?? '');
  } else if (page === 'receipts' && state.viewer) {
    set({ receipts: emptyList() });
    loadReceipts('anew');
  }
  if (OPERATOR_PAGES.includes(page)) {
    operator ??= await import('./operator/main.js');
    operator.enter();
    set({});
  }
}

onChange((before) => {
  if (before.route !== state.route) {
    // The first page has the browser's own beginning.
    arrived = begun && (before.route.page !== state.route.page || before.route.id !== state.route.id);
    enter();
  } else if (before.viewer !== state.viewer) {
    enter();
  }
  if (drawing) return;
  drawing = true;
  queueMicrotask(draw);
});

/** Once a second, at the second: for countdowns, the title, and the last call. */
function tick() {
  const now = client.serverNow();
  const { position } = state;
  if (position?.status === 'ADMITTED') {
    const before = ticketLeft(position);
    const left = before - (now - state.now);
    if ([30_000, 10_000].some((mark) => before > mark && left <= mark)) ring();
  }
  set({ now });
  setTimeout(tick, 1000 - (now % 1000) + 5);
}

addEventListener('hashchange', () => set({ route: readRoute() }));
onOtherTab(() => set({}));
takeTokenFromLink();
set({ lang: language(), route: readRoute() });
begun = true;
loadViewer();
tick();
