// What students see when the server restarts, the network goes, or a session ends.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { openPage, screenshot, signIn, startBrowser } from './browser.js';
import { startProxy } from './proxy.js';
import { eventually, startServer } from './server.js';

/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await startBrowser(); });
after(() => browser.close());

const JOIN = 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }';

// The browser itself reports a connection that it could not make.
const DOWN = /net::ERR_|WebSocket connection to .* failed|503 \(Service Unavailable\)/;

/** @param {import('playwright-core').Page} page */
const number = (page) => page.locator('.queue .digits').textContent();

test('the server restarts while two wait: the place is shown as old, and comes back', async () => {
  const server = await startServer();
  try {
    const id = await server.lecture({ title: 'Restart', capacity: 5, settings: { paused: true } });
    await server.graphql((await server.guest('ahead')).token, JOIN, { id });
    const { page, context, clean } = await openPage(browser, server.url, { allow: DOWN });
    await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
    await signIn(page, 'Jiho');
    await page.getByRole('button', { name: 'Join the line' }).click();
    await page.locator('.link-state.live').waitFor();
    assert.equal(await number(page), '2');

    await server.stop();
    await page.locator('.queue.stale').waitFor();
    await page.locator('main').getByText(/Connection lost.*Last known at \d\d:\d\d:\d\d/).waitFor();
    assert.equal(await page.locator('.link-state.live').count(), 0, 'an old place is not called live');
    await page.locator('.queue').getByText('Your last known place').waitFor();
    await screenshot(page, 'stale');

    await server.start();
    // The line was lost with its memory; the proof in this browser restores the place
    // without a click, before somebody who comes now.
    await page.locator('main').getByText('Your place has been restored.').waitFor();
    await page.locator('.link-state.live').waitFor();
    await server.graphql((await server.guest('late')).token, JOIN, { id });
    await eventually(async () => (await page.locator('.figures dd').last().textContent()) === '2', 'two in line');
    assert.equal(await number(page), '1');
    clean();
    await context.close();
  } finally {
    await server.stop();
  }
});

test('offline is said at once, and the way back too', async () => {
  const server = await startServer();
  try {
    const id = await server.lecture({ title: 'Offline', capacity: 5, settings: { paused: true } });
    const { page, context, clean } = await openPage(browser, server.url, { allow: DOWN });
    await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
    await signIn(page, 'Kai');
    await page.getByRole('button', { name: 'Join the line' }).click();
    await page.locator('.link-state.live').waitFor();
    await context.setOffline(true);
    await page.locator('.queue.stale').waitFor();
    await page.locator('main').getByText('You are offline. Your place is kept.').waitFor();
    await context.setOffline(false);
    await page.locator('.link-state.live').waitFor();
    assert.equal(await number(page), '1');
    clean();
    await context.close();
  } finally {
    await server.stop();
  }
});

test('without sockets the place is polled for, and one can enrol all the same', async () => {
  const server = await startServer();
  const proxy = await startProxy(server.url);
  proxy.faults.refuseUpgrades = true;
  try {
    const id = await server.lecture({ title: 'No sockets', capacity: 1, settings: { paused: true } });
    const { page, context, clean } = await openPage(browser, proxy.url, { allow: DOWN });
    await page.goto(`${proxy.url}/#/signin?next=/lectures/${id}`);
    await signIn(page, 'Lina');
    await page.getByRole('button', { name: 'Join the line' }).click({ timeout: 30_000 });
    await page.locator('.link-state.polling').waitFor({ timeout: 30_000 });
    await server.graphql(server.operatorToken, 'mutation ($id: ID!) { updateLecture(id: $id, input: { settings: { paused: false } }) { id } }', { id });
    await page.getByRole('button', { name: 'Enrol now' }).click();
    await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
    clean();
    await context.close();
  } finally {
    await proxy.close();
    await server.stop();
  }
});

test('a busy server is asked again while the seat is kept', async () => {
  const server = await startServer();
  const proxy = await startProxy(server.url);
  try {
    const id = await server.lecture({ title: 'Busy', capacity: 1 });
    const { page, context, clean } = await openPage(browser, proxy.url, { allow: DOWN });
    await page.goto(`${proxy.url}/#/signin?next=/lectures/${id}`);
    await signIn(page, 'Mina');
    await page.getByRole('button', { name: 'Join the line' }).click();
    const enroll = page.getByRole('button', { name: 'Enrol now' });
    await enroll.waitFor();
    proxy.faults.refuseRequests = true;
    await enroll.click();
    await page.locator('main').getByText('The server is busy. Your seat is kept; trying again (1)').waitFor();
    proxy.faults.refuseRequests = false;
    await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
    clean();
    await context.close();
  } finally {
    await proxy.close();
    await server.stop();
  }
});

test('a session that is no longer good leads to signing in, not to an error', async () => {
  const server = await startServer();
  try {
    const { page, context, clean } = await openPage(browser, server.url, { allow: /401 \(Unauthorized\)/ });
    await page.addInitScript(() => {
      if (!sessionStorage.getItem('once')) localStorage.setItem('seatline.token', 'from.another.time');
      sessionStorage.setItem('once', 'yes');
    });
    await page.goto(`${server.url}/`);
    await page.getByRole('link', { name: /Pottery/ }).waitFor();
    await page.getByRole('link', { name: 'Sign in', exact: true }).waitFor();
    await page.locator('.banner').getByText('Your session has ended.').waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('seatline.token')), null);
    clean();
    await context.close();
  } finally {
    await server.stop();
  }
});

test('where guests are not welcome, a token is asked for', async () => {
  const server = await startServer({ GUEST_SESSIONS: 'off' });
  try {
    const { page, context, clean } = await openPage(browser, server.url, { allow: /404 \(Not Found\)/ });
    await page.goto(`${server.url}/#/signin`);
    await signIn(page, 'Nobody');
    await page.getByRole('heading', { name: 'Sign in with a token' }).waitFor();
    await page.getByRole('alert').getByText('This server does not offer that.').waitFor();
    clean();
    await context.close();
  } finally {
    await server.stop();
  }
});
