// Signing out, which costs a guest everything: there is no way back to the account.

import { ask } from '../dialog.js';
import { h } from '../element.js';
import { client, isGuest, signOut } from '../session.js';
import { state } from '../state.js';
import { number } from '../time.js';
import { placeWords } from './banner.js';
import { t } from './parts.js';

export async function askToSignOut() {
  const { viewer, lang } = state;
  if (!isGuest(viewer?.userKey)) return signOut();
  const lost = [...places(), ...await receipts(lang)];
  const yes = await ask({
    title: t().signOutAsk,
    body: [h('p', null, t().signOutBody), lost.length > 0 && h('ul', { class: 'losses' }, lost.map((words) => h('li', null, words)))],
    yes: t().signOut,
    no: t().staySignedIn,
    danger: true,
  });
  if (yes && state.viewer === viewer) signOut();
}

function places() {
  const { lectureId, lecture, position, link, readAt, elsewhere } = state;
  const here = position && ['WAITING', 'ADMITTED'].includes(position.status) ? [{ title: lecture?.title ?? '', position, link, readAt }] : [];
  return [...lectureId ? here : [], ...Object.values(elsewhere)].map((held) => `${held.title}: ${placeWords(held)}`);
}

/** @param {'en' | 'ko'} lang */
async function receipts(lang) {
  try {
    const found = await client.query('{ receipts(first: 20) { nodes { number cancelledAt lecture { title } } } }', {}, { retries: 0, timeoutMs: 3000 });
    return found.receipts.nodes
      .filter((/** @type {any} */ { cancelledAt }) => !cancelledAt)
      .map((/** @type {any} */ receipt) => `${receipt.lecture.title}: ${t().receipt} ${number(receipt.number, lang)}`);
  } catch {
    return []; // The question is asked all the same.
  }
}
