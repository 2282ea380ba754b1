// Signing in: with a name where guests are welcome, with a token elsewhere.

import { unlockSound } from '../alerts.js';
import { h } from '../element.js';
import { problem } from '../lists.js';
import { signInAsGuest, signInWithToken } from '../session.js';
import { set, state } from '../state.js';
import { errorText, t } from './parts.js';

export function signInPage() {
  const guest = state.signIn === 'guest';
  return h('form', { class: 'card signin', key: state.signIn, onsubmit: submit },
    h('h1', { tabindex: -1 }, guest ? t().signInTitle : t().tokenTitle),
    h('p', { id: 'hint' }, guest ? t().signInHint : t().tokenHint),
    h('label', { for: 'credential' }, guest ? t().name : t().token),
    guest
      ? h('input', { id: 'credential', name: 'credential', required: true, maxlength: 64, autocomplete: 'name', 'aria-describedby': 'hint' })
      : h('textarea', { id: 'credential', name: 'credential', required: true, rows: 5, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'hint' }),
    h('p', { class: 'form-error', role: 'alert' }, state.formError && errorText(state.formError)),
    h('button', { class: 'button primary main' }, t().continue),
    h('button', { class: 'link', type: 'button', onclick: () => set({ signIn: guest ? 'token' : 'guest', formError: null }) },
      guest ? t().useToken : t().useName));
}

let submitting = false;

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  if (submitting) return;
  unlockSound();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const credential = String(new FormData(form).get('credential')).trim();
  submitting = true;
  set({ formError: null });
  try {
    await (state.signIn === 'guest' ? signInAsGuest(credential) : signInWithToken(credential));
  } catch (error) {
    set({ formError: problem(error) });
  } finally {
    submitting = false;
  }
}
