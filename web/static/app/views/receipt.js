// Receipts: one, to be kept or printed, and all of them.

import { ask } from '../dialog.js';
import { h } from '../element.js';
import { loadReceipts, problem } from '../lists.js';
import { cancel, cancelEnrollment } from '../place.js';
import { set, state } from '../state.js';
import { fullInstant, number } from '../time.js';
import { empty, errorCard, skeletons, t } from './parts.js';

/** @typedef {import('../../sdk.js').Receipt} Receipt */

/** @param {Receipt} receipt @param {{ title: string }} [lecture] */
export function receiptCard(receipt, lecture = receipt.lecture) {
  const { cancelledAt, enrolledAt, userKey } = receipt;
  const name = state.viewer?.name;
  return h('article', { class: `receipt ${cancelledAt ? 'void' : ''}`, key: receipt.id, 'aria-label': `${t().receipt} ${receipt.number}` },
    h('div', { class: 'stub' },
      h('p', { class: 'label' }, t().receiptNumber),
      h('p', { class: 'number' }, number(receipt.number, state.lang))),
    h('dl', null,
      h('div', null, h('dt', null, t().lecture), h('dd', { class: 'title' }, lecture.title)),
      h('div', null, h('dt', null, t().enrolledAt), h('dd', null, h('time', { datetime: enrolledAt }, fullInstant(enrolledAt, state.lang)))),
      cancelledAt && h('div', null, h('dt', null, t().cancelledAt), h('dd', null, h('time', { datetime: cancelledAt }, fullInstant(cancelledAt, state.lang)))),
      name && name !== userKey && h('div', null, h('dt', null, t().person), h('dd', null, name)),
      h('div', null, h('dt', null, t().account), h('dd', { class: 'key' }, userKey))),
    !cancelledAt && h('div', { class: 'actions' },
      h('button', { class: 'button quiet', onclick: printReceipt }, t().print),
      h('button', { class: 'link', onclick: () => askToCancel(receipt, lecture.title) }, t().cancelEnrollment)));
}

/** Prints the card that was asked for and nothing else. @param {MouseEvent} event */
function printReceipt({ target }) {
  const card = /** @type {HTMLElement} */ (target).closest('.receipt');
  card?.classList.add('printed');
  addEventListener('afterprint', () => card?.classList.remove('printed'), { once: true });
  print();
}

/** @param {Receipt} receipt @param {string} title */
async function askToCancel(receipt, title) {
  const yes = await ask({
    title: t().cancelAsk, body: h('p', null, t().cancelBody(title)), yes: t().cancelYes, no: t().cancelNo, danger: true,
  });
  if (!yes) return;
  if (state.route.page === 'lecture') {
    cancel();
    return;
  }
  try {
    await cancelEnrollment(receipt.lecture.id);
  } catch (error) {
    set({ receipts: { ...state.receipts, error: problem(error) } });
    return;
  }
  loadReceipts('again');
}

export function receiptsPage() {
  const { loading, nodes, after, error } = state.receipts;
  // There may well be some, which the banner above leads to.
  if (state.ended) return h('h1', { tabindex: -1 }, t().receipts);
  return [
    h('h1', { tabindex: -1 }, t().receipts),
    error && errorCard(error, () => loadReceipts('again')),
    state.viewer === null
      ? empty(t().noReceipts, t().noReceiptsHint, h('a', { class: 'button primary', href: '#/signin?next=/receipts' }, t().signIn))
      : loading ? skeletons(2, 'panel')
        : nodes.length === 0 && !error ? empty(t().noReceipts, t().noReceiptsHint, h('a', { class: 'button primary', href: '#/' }, t().toLectures))
          : h('div', { class: 'receipts' }, nodes.map((/** @type {Receipt} */ receipt) => receiptCard(receipt))),
    after && h('button', { class: 'button quiet wide', onclick: () => loadReceipts('more') }, t().more),
  ];
}
