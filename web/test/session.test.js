// Signing in and out, and sessions that end: nothing is lost without a word.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';

import { openPage, screenshot, signIn, startBrowser } from './browser.js';
import { startServer } from './server.js';

const SECRET = 'a secret that this test shares with its server';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { [server, browser] = await Promise.all([startServer({ JWT_SECRET: SECRET }), startBrowser()]); });
after(async () => {
  await browser.close();
  await server.stop();
});

const JOIN = 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }';

/** A token as a school's login gives it. @param {string} sub @param {number} seconds */
function token(sub, seconds) {
  const encode = (/** @type {object} */ part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub, name: 'Ann', exp: Math.floor(Date.now() / 1000) + seconds })}`;
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
}

/** @param {import('playwright-core').Page} page @param {string} credential */
async function signInWithToken(page, credential) {
  await page.getByRole('button', { name: 'I have an access token' }).click();
  await signIn(page, credential);
}

test('a token that runs out while waiting is said, and the way back leads to the place', async () => {
  const id = await server.lecture({ title: 'Harpsichord', capacity: 1, settings: { paused: true } });
  await server.graphql((await server.guest('ahead')).token, JOIN, { id });
  const { page, context, clean } = await openPage(browser, server.url, { allow: /401 \(Unauthorized\)/ });
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signInWithToken(page, token('harpsichordist', 5));
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('.queue .digits').waitFor();
  await page.getByRole('heading', { name: 'Your session has ended.' }).waitFor();
  await page.locator('main').getByText('Sign in again; your place is kept.').waitFor();
  await page.locator('#announcer').getByText('your place is kept').waitFor({ state: 'attached' });
  assert.match(await page.title(), /^Sign in again · Harpsichord/);
  assert.equal(await page.locator('.queue, .link-state.live').count(), 0, 'an old place is not shown');
  assert.equal(await page.getByRole('button', { name: /Join/ }).count(), 0, 'nor is a new one offered');
  await screenshot(page, 'session-ended');
  // A reload forgets none of it, and neither does another page.
  await page.reload();
  await page.getByRole('heading', { name: 'Your session has ended.' }).waitFor();
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.locator('.banner').getByText('Sign in again; your place is kept.').waitFor();
  await page.goBack();

  await page.getByRole('link', { name: 'Sign in again' }).click();
  await signInWithToken(page, token('harpsichordist', 600));
  await page.locator('.queue .digits').waitFor();
  assert.equal(await page.locator('.queue .digits').textContent(), '2');
  assert.match(page.url(), new RegExp(`#/lectures/${id}$`));
  clean();
  await context.close();
});

test('a token that runs out while a seat is on hold, on another page', async () => {
  const id = await server.lecture({ title: 'Icons', capacity: 1 });
  const { page, context, clean } = await openPage(browser, server.url, { allow: /401 \(Unauthorized\)/ });
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signInWithToken(page, token('painter', 5));
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await page.getByRole('link', { name: 'Lectures', exact: true }).click();
  await page.locator('.banner').getByText('It is your turn').waitFor();
  await page.locator('.banner').getByText('Your session has ended.').waitFor();
  await page.locator('.banner').getByText('It is your turn').waitFor({ state: 'detached' });
  assert.doesNotMatch(await page.title(), /Your turn/);
  await page.getByRole('link', { name: 'Sign in again' }).click();
  await signIn(page, token('painter', 600));
  // The place is remembered for the account, and shown on the page it was left from.
  await page.locator('.banner').getByText('It is your turn').waitFor();
  clean();
  await context.close();
});

test('Back after signing in asks nobody twice who they are', async () => {
  const id = await server.lecture({ title: 'Juggling', capacity: 3 });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/#/`);
  await page.getByRole('link', { name: 'Juggling' }).click();
  await page.getByRole('button', { name: 'Join the line' }).click();
  await signIn(page, 'Jin');
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  const account = await page.evaluate(() => localStorage.getItem('seatline.token'));
  await page.goBack();
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Lectures' }).waitFor();
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem('seatline.token')), account);
  clean();
  await context.close();
});

test('a guest is told what signing out would lose, and another device is not promised', async () => {
  const first = await server.lecture({ title: 'Knitting', capacity: 3 });
  const second = await server.lecture({ title: 'Lacemaking', capacity: 1, settings: { paused: true } });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/#/signin?next=/lectures/${first}`);
  await signIn(page, 'Kai');
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.getByRole('button', { name: 'Enrol now' }).click();
  await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
  await page.goto(`${server.url}/#/lectures/${second}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('main').getByText('in this browser your place stays the same').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /device/);

  await page.getByRole('button', { name: 'Sign out' }).click();
  const question = page.locator('dialog');
  await question.getByText('Knitting: Receipt 1').waitFor();
  await question.getByText('Lacemaking: Your place in line: 1').waitFor();
  await screenshot(page, 'sign-out-question');
  await question.getByRole('button', { name: 'Stay signed in' }).click();
  await question.waitFor({ state: 'detached' });
  await page.locator('.queue .digits').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await question.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Join the line' }).waitFor();
  assert.doesNotMatch(await page.locator('#app').innerText(), /session has ended/);
  clean();
  await context.close();
});

test('an operator’s token beside a guest is for its tab alone', async () => {
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/#/signin?next=/receipts`);
  await signIn(page, 'Lina');
  await page.locator('.who', { hasText: 'Lina' }).waitFor();
  await page.goto(`${server.url}/#/operate`);
  await page.locator('main').getByRole('link', { name: 'Sign in' }).click();
  await signIn(page, server.operatorToken);
  await page.getByRole('link', { name: 'New lecture' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.locator('.who', { hasText: 'Lina' }).waitFor();
  clean();
  await context.close();
});

test('signing in says that it is at work, and what is wrong with a token', async () => {
  const { page, context, clean } = await openPage(browser, server.url, { allow: /401 \(Unauthorized\)/ });
  /** @type {() => void} */
  let answer = () => {};
  await page.route('**/graphql', async (route) => {
    await new Promise((resolve) => { answer = () => resolve(undefined); });
    await route.continue();
  });
  await page.goto(`${server.url}/#/signin?next=/receipts`);
  await page.getByRole('button', { name: 'I have an access token' }).click();
  assert.doesNotMatch(await page.locator('main').innerText(), /no guest sign-in/);
  await signIn(page, 'not.a.token');
  await page.locator('form button.primary[aria-disabled=true]', { hasText: 'Signing in…' }).waitFor();
  answer();
  await page.getByRole('alert').getByText('This token is not taken here, or has run out.').waitFor();
  await page.getByRole('button', { name: 'Continue' }).waitFor();
  clean();
  await context.close();
});
