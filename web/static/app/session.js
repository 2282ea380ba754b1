// Who is signed in, and the client that everything is asked through.

import { createClient, SeatlineError } from '../sdk.js';
import { go } from './router.js';
import { emptyList, set, state } from './state.js';
import { kept, tab } from './storage.js';

const KEY = 'seatline.token';

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
    set({ viewer: null });
    return;
  }
  try {
    set({ viewer: (await client.query(VIEWER)).viewer });
  } catch (error) {
    if (isSignedOut(error)) forget();
    else setTimeout(loadViewer, 3000); // Not knowing is no reason to sign anybody out.
  }
}

/** @param {unknown} error */
export const isSignedOut = (error) => error instanceof SeatlineError && error.code === 'UNAUTHENTICATED';

export function forget() {
  tab.remove(KEY);
  kept.remove(KEY);
  client.reset();
  set({ viewer: null, receipts: emptyList() });
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
    if (error instanceof SeatlineError && error.code === 'NOT_ENABLED') set({ signIn: 'token' });
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
  tab.remove(KEY);
  kept.set(KEY, token);
  client.reset();
  const next = state.route.query.get('next') ?? '/';
  set({ viewer });
  go(next);
}

/** Somebody signed in or out in another tab. @param {() => void} changed */
export function onOtherTab(changed) {
  addEventListener('storage', ({ key }) => {
    if (key !== KEY || tab.get(KEY)) return;
    client.reset();
    loadViewer().then(changed);
  });
}
