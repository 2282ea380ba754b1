// The app: what a page needs when one comes to it, and drawing the state.

import { ring, unlockSound } from './alerts.js';
import { h, render } from './element.js';
import { keepLectures, keepReceipts, loadLectures, loadReceipts } from './lists.js';
import { heldBefore } from './memory.js';
import { leavePlace, openPlace, resumePlaces } from './place.js';
import { goInstead, readRoute } from './router.js';
import { afterSignIn, bearer, client, loadViewer, onOtherTab, takeTokenFromLink } from './session.js';
import { connecting, onChange, set, state } from './state.js';
import { kept } from './storage.js';
import { countdown } from './time.js';
import { banners } from './views/banner.js';
import { keepRoom, lecturePage, missingPage } from './views/lecture.js';
import { lecturesPage } from './views/lectures.js';
import { skeletons, t } from './views/parts.js';
import { settled, ticketLeft } from './views/place.js';
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

/** Every place that is held, that of the page first. */
const places = () => [state.position, ...Object.values(state.elsewhere).map(({ position }) => position)].filter((position) => position !== null);

function title() {
  const { position, route, lecture } = state;
  const left = Math.min(...places().filter(({ status }) => status === 'ADMITTED').map(ticketLeft).filter((ms) => ms > 0));
  if (left < Infinity) {
    const blink = Math.floor(state.now / 1000) % 2 ? '●' : '○';
    return `${blink} ${t().titleTurn} ${countdown(left)}`;
  }
  const moving = places().filter(({ position, lineState }) => position !== null && lineState !== 'CLOSED');
  const shown = moving.includes(/** @type {any} */ (position)) ? position?.position : Math.min(...moving.map(({ position }) => position ?? Infinity));
  const place = state.ended ? `${t().signInAgain} · ` : shown && shown < Infinity ? `#${shown} · ` : '';
  const name = {
    lectures: t().lectures, lecture: lecture === null ? t().noSuchLecture : lecture?.title ?? t().lecture, receipts: t().receipts, signin: t().signIn,
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
    h('main', { id: 'content', tabindex: -1, key: `${state.route.page}/${state.route.id ?? ''}` }, banners(), page()),
    // Nothing is where it will stay before one knows how much is above it.
    (state.route.page !== 'lecture' || state.lecture === null || state.lectureError || settled()) && footer());
  if (arrived) {
    arrived = false;
    scrollTo(0, scrolls.get(entry) ?? 0);
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
  if (page !== 'lecture') leavePlace();
  operator?.leave();
  set({ formError: null });
  if (page === 'signin' && state.viewer && !state.signingIn) {
    // Signing in twice would make two people of one; an operator's page may ask for somebody else.
    const next = afterSignIn();
    if (state.viewer.operator || !next.startsWith('/operate')) goInstead(next);
  } else if (page === 'lectures' || page === 'operate') {
    loadLectures('again');
    keepLectures();
  } else if (page === 'lecture' && state.viewer !== undefined) {
    openPlace(id ?? '');
  } else if (page === 'receipts' && state.viewer) {
    loadReceipts('again');
    keepReceipts();
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
    leavePlace();
    resumePlaces();
    enter();
  }
  if (drawing) return;
  drawing = true;
  queueMicrotask(draw);
});

/** Once a second, at the second: for countdowns, the title, and the last call. */
function tick() {
  const now = client.serverNow();
  for (const position of places()) {
    const before = ticketLeft(position);
    const left = before - (now - state.now);
    if ([30_000, 10_000].some((mark) => before > mark && left <= mark)) ring();
  }
  set({ now });
  setTimeout(tick, 1000 - (now % 1000) + 5);
}

// Where each entry of the history was scrolled to: pages are drawn after the browser
// would have scrolled them.
/** @type {Map<number, number>} */
const scrolls = new Map();
let entry = 0;
let scrolled = 0;

function number() {
  const known = history.state?.entry;
  if (typeof known === 'number') return known;
  const fresh = Date.now();
  history.replaceState({ entry: fresh }, '');
  return fresh;
}

addEventListener('hashchange', () => {
  scrolls.set(entry, scrolled);
  entry = number();
  set({ route: readRoute() });
});
addEventListener('scroll', () => { scrolled = scrollY; }, { passive: true });
addEventListener('pagehide', keepRoom);
// After a reload, any gesture of somebody who waits gives the page its voice back.
for (const gesture of ['pointerup', 'keydown']) addEventListener(gesture, () => places().length > 0 && unlockSound());
onOtherTab(() => set({}));
takeTokenFromLink();
entry = number();
set({
  lang: language(),
  // Until it is known who is here, what was last held takes its room.
  elsewhere: bearer() ? Object.fromEntries(Object.entries(heldBefore()).map(([id, title]) => [id, { title, position: null, link: connecting, readAt: 0 }])) : {},
});
set({ route: readRoute() });
begun = true;
loadViewer();
tick();
