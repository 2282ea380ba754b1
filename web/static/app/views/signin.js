// Signing in: with a name where guests are welcome, with a token elsewhere.

import { unlockSound } from '../alerts.js';
import { h } from '../element.js';
import { problem } from '../lists.js';
import { signInAsGuest, signInWithToken } from '../session.js';
import { set, state } from '../state.js';
import { errorText, t } from './parts.js';

export function signInPage() {
  const guest = state.signIn === 'guest' && !state.viewer;
  const { guests, signingIn } = state;
  return h('form', { class: 'card signin', key: guest ? 'guest' : 'token', onsubmit: submit },
    h('h1', { tabindex: -1 }, guest ? t().signInTitle : t().tokenTitle),
    h('p', { id: 'hint' }, guest ? t().signInHint : guests ? t().tokenHint : t().tokenOnlyHint),
    h('label', { for: 'credential' }, guest ? t().name : t().token),
    guest
      ? h('input', { id: 'credential', name: 'credential', required: true, maxlength: 64, autocomplete: 'name', 'aria-describedby': 'hint' })
      : h('textarea', { id: 'credential', name: 'credential', required: true, rows: 5, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'hint' }),
    h('p', { class: 'form-error', role: 'alert' }, state.formError && signInError(state.formError)),
    h('button', { class: 'button primary main', 'aria-disabled': signingIn && 'true' }, signingIn ? t().signingIn : t().continue),
    guests && !state.viewer && h('button', { class: 'link', type: 'button', onclick: () => set({ signIn: guest ? 'token' : 'guest', formError: null }) },
      guest ? t().useToken : t().useName));
}

/** @param {import('../state.js').SeatlineError} error */
const signInError = (error) => (error.code === 'UNAUTHENTICATED' ? t().tokenRefused : errorText(error));

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  if (state.signingIn) return;
  unlockSound();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const credential = String(new FormData(form).get('credential')).trim();
  const guest = state.signIn === 'guest' && !state.viewer;
  set({ signingIn: true, formError: null });
  try {
    await (guest ? signInAsGuest(credential) : signInWithToken(credential));
  } catch (error) {
    set({ formError: problem(error) });
  } finally {
    set({ signingIn: false });
  }
}
