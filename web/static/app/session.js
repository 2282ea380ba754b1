// Who is signed in, and the client that everything is asked through.

import { createClient, SeatlineError } from '../sdk.js';
import { announce } from './alerts.js';
import { goInstead } from './router.js';
import { emptyList, set, state } from './state.js';
import { kept, tab } from './storage.js';
import { texts } from './texts.js';

const KEY = 'seatline.token';

// Whose session has ended, for the next load and for other tabs.
const ENDED = 'seatline.ended';

// An operator's link is for its tab alone, so it does not sign out the guest in
// another. A guest is the same in every tab.
/** The token to send with what the client does not send. */
export const bearer = () => tab.get(KEY) ?? kept.get(KEY);

/** The token that was refused, which nobody should try again. */
let refusedToken = '';

export const client = createClient({
  token({ refused }) {
    if (refused) refusedToken = refused;
    const token = bearer();
    return token === refusedToken ? null : token;
  },
});

/** Takes the token out of an operator's link, and the link's trace out of the address. */
export function takeTokenFromLink() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  tab.set(KEY, token);
  history.replaceState(null, '', '#/operate');
}

const VIEWER = '{ viewer { userKey name operator } }';

export async function loadViewer() {
  if (!bearer()) {
    const ended = kept.get(ENDED);
    set({ viewer: null, ended: ended === 'guest' || ended === 'account' ? ended : null });
    return;
  }
  try {
    set({ viewer: (await client.query(VIEWER)).viewer, ended: null });
  } catch (error) {
    if (isSignedOut(error)) forget();
    else setTimeout(loadViewer, 3000); // Not knowing is no reason to sign anybody out.
  }
}

/** @param {unknown} error */
export const isSignedOut = (error) => error instanceof SeatlineError && error.code === 'UNAUTHENTICATED';

/** A guest is whoever has nothing but a token: there is no other way back to the account. @param {string | undefined} userKey */
export const isGuest = (userKey) => /^guest-[a-z2-7]{26}$/.test(userKey ?? '');

/** @param {string} token */
function subjectOf(token) {
  try {
    return JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'))).sub;
  } catch {
    return undefined;
  }
}

/** The server does not take the token any more, which is said, and asked to be mended. */
export function forget() {
  const token = bearer();
  if (!token) return;
  const ended = isGuest(state.viewer?.userKey ?? subjectOf(token)) ? 'guest' : 'account';
  if (!tab.get(KEY)) kept.set(ENDED, ended);
  dropToken();
  set({ viewer: bearer() ? undefined : null, ended, receipts: emptyList() });
  if (bearer()) loadViewer();
  announce(texts[state.lang].ended[ended].join(' '), true);
}

/** The token of this tab where it has one of its own, which leaves the guest in the others alone. */
function dropToken() {
  if (tab.get(KEY)) tab.remove(KEY);
  else kept.remove(KEY);
  client.reset();
}

export function signOut() {
  dropToken();
  kept.remove(ENDED);
  set({ viewer: bearer() ? undefined : null, ended: null, receipts: emptyList() });
  if (bearer()) loadViewer();
}

/** @param {string} name */
export async function signInAsGuest(name) {
  try {
    const { startSession } = await client.mutate(
      'mutation ($name: String!) { startSession(name: $name) { token viewer { userKey name operator } } }', { name },
      { retries: 2 },
    );
    signedIn(startSession.token, startSession.viewer);
  } catch (error) {
    if (error instanceof SeatlineError && error.code === 'NOT_ENABLED') set({ signIn: 'token', guests: false });
    throw error;
  }
}

/** @param {string} token */
export async function signInWithToken(token) {
  const trial = createClient({ token });
  try {
    const { viewer } = await trial.query(VIEWER);
    if (!viewer) throw new SeatlineError('UNAUTHENTICATED', 'sign in first');
    signedIn(token, viewer);
  } finally {
    trial.close();
  }
}

/** @param {string} token @param {import('./state.js').Viewer} viewer */
function signedIn(token, viewer) {
  refusedToken = '';
  // Who is here already keeps what is theirs: the other account is for this tab.
  if (state.viewer) {
    tab.set(KEY, token);
  } else {
    tab.remove(KEY);
    kept.set(KEY, token);
    kept.remove(ENDED);
  }
  client.reset();
  const next = afterSignIn();
  set({ viewer, ended: null });
  goInstead(next);
}

/** Where one wanted to go before signing in. */
export function afterSignIn() {
  const next = state.route.query.get('next') ?? '/';
  return /^\/(?!signin)/.test(next) ? next : '/';
}

/** Somebody signed in or out in another tab. @param {() => void} changed */
export function onOtherTab(changed) {
  addEventListener('storage', ({ key }) => {
    if (key !== KEY || tab.get(KEY)) return;
    client.reset();
    loadViewer().then(changed);
  });
}
