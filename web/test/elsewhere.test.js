// A place that is held follows its owner over all pages, and tells the truth in each.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { openPage, screenshot, startBrowser } from './browser.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { [server, browser] = await Promise.all([startServer({ PRESENCE_GRACE: '2s' }), startBrowser()]); });
after(async () => {
  await browser.close();
  await server.stop();
});

const JOIN = 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }';
const LEAVE = 'mutation ($id: ID!) { leaveQueue(lectureId: $id) { status } }';
const ENROLL = 'mutation ($id: ID!) { enroll(lectureId: $id) { status } }';
const CANCEL = 'mutation ($id: ID!) { cancelEnrollment(lectureId: $id) { id } }';

/** @param {string} id @param {object} input */
const update = (id, input) =>
  server.graphql(server.operatorToken, 'mutation ($id: ID!, $input: UpdateLectureInput!) { updateLecture(id: $id, input: $input) { id } }', { id, input });

/** A page of somebody who is signed in. @param {string} name @param {import('playwright-core').BrowserContextOptions} [options] */
async function student(name, options) {
  const { token } = await server.guest(name);
  const opened = await openPage(browser, server.url, options);
  await opened.page.addInitScript((token) => {
    if (!sessionStorage.getItem('once')) localStorage.setItem('seatline.token', token);
    sessionStorage.setItem('once', 'yes');
  }, token);
  return { token, ...opened };
}

/** What screen readers are told, in its order. @param {import('playwright-core').Page} page */
const record = (page) => page.addInitScript(() => {
  /** @type {any} */ (window).said = [];
  addEventListener('DOMContentLoaded', () => {
    const region = document.getElementById('announcer');
    if (region) new MutationObserver(() => /** @type {any} */ (window).said.push(region.textContent)).observe(region, { childList: true });
  });
});

/** @param {import('playwright-core').Page} page @returns {Promise<string[]>} */
const said = (page) => page.evaluate(() => /** @type {any} */ (window).said);

test('a turn that comes while one is elsewhere is seen, heard and read there', async () => {
  const id = await server.lecture({ title: 'Bookbinding', capacity: 1 });
  const holder = await server.guest('holder');
  await server.graphql(holder.token, JOIN, { id });
  const { page, context, clean } = await student('Bora', { viewport: { width: 360, height: 740 } });
  await record(page);
  await page.addInitScript(() => {
    /** @type {any} */ (window).calls = 0;
    navigator.vibrate = () => { /** @type {any} */ (window).calls++; return true; };
  });
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('.queue .digits').waitFor();

  await page.getByRole('link', { name: 'My receipts' }).click();
  const banner = page.locator('.banner');
  await banner.getByText('Your place in line: 1').waitFor();
  assert.match(await page.title(), /^#1 · My receipts/);
  await page.getByRole('link', { name: 'Lectures', exact: true }).click();
  await page.locator('.row', { hasText: 'Bookbinding' }).locator('.held').getByText('Your place in line: 1').waitFor();
  await screenshot(page, 'elsewhere-waiting');
  // A reload forgets nothing, and the place is watched from the list.
  await page.reload();
  await banner.getByText('Your place in line: 1').waitFor();

  await server.graphql(holder.token, LEAVE, { id });
  await banner.getByText('It is your turn').waitFor();
  await page.locator('.row', { hasText: 'Bookbinding' }).locator('.held').getByText('It is your turn').waitFor();
  assert.match(await page.title(), /Your turn! 1:5\d/);
  assert.match(await banner.innerText(), /1:5\d/);
  assert.match((await said(page)).at(-1) ?? '', /^Bookbinding\. It is your turn/);
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).calls), 1);
  await screenshot(page, 'elsewhere-turn');
  await banner.click();
  await page.getByRole('button', { name: 'Enrol now' }).click();
  await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
  assert.equal(await banner.count(), 0, 'nothing is held any more');
  clean();
  await context.close();
});

test('who is on another page is not away', async () => {
  const id = await server.lecture({ title: 'Cartography', capacity: 1 });
  const holder = await server.guest('holder');
  await server.graphql(holder.token, JOIN, { id });
  const { page, context, clean } = await student('Chan');
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('.queue .digits').waitFor();
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.locator('.banner').waitFor();
  const STATS = 'query ($id: ID!) { lecture(id: $id) { waiting } }';
  const since = performance.now();
  await eventually(async () => {
    assert.equal((await server.graphql(null, STATS, { id })).lecture.waiting, 1);
    return performance.now() - since > 4000; // Twice the grace.
  }, 'longer than one may be away');
  clean();
  await context.close();
});

test('a ticket that runs out elsewhere is told there', async () => {
  const id = await server.lecture({ title: 'Dyeing', capacity: 1, settings: { ticketTtlSeconds: 3 } });
  const { page, context, clean } = await student('Dana');
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.locator('.banner').getByText('The time to enrol ran out').waitFor();
  assert.match(await page.title(), /^My receipts/);
  await page.locator('.banner').click();
  await page.getByRole('button', { name: 'Join again' }).waitFor();
  clean();
  await context.close();
});

test('a closed line shows no place as if it moved, and its reopening is seen soon', async () => {
  const id = await server.lecture({ title: 'Etching', capacity: 1, settings: { paused: true } });
  const { page, context, clean } = await student('Eun');
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('.queue .digits').waitFor();
  await update(id, { closesAt: '2020-01-01T00:00:00Z' });
  await page.getByRole('heading', { name: 'Enrolment has closed' }).waitFor();
  const words = await page.locator('main').innerText();
  assert.doesNotMatch(words, /You are next|Chance|Tell me|Live/);
  assert.match(words, /If it is opened again, you are number 1 in line/);
  assert.match(await page.title(), /^Etching/);
  await screenshot(page, 'closed-waiting');
  await update(id, { closesAt: null });
  await page.locator('.queue .digits').waitFor({ timeout: 11_500 });
  clean();
  await context.close();
});

test('an enrolment that ended elsewhere does not stay on a page or in the receipts', async () => {
  const id = await server.lecture({ title: 'Fencing', capacity: 1 });
  const { page, context, token, clean } = await student('Faye');
  await server.graphql(token, JOIN, { id });
  await server.graphql(token, ENROLL, { id });
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Print' }).waitFor();
  await page.locator('.link-state').waitFor({ state: 'detached' });
  await server.graphql(token, CANCEL, { id });
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.locator('main').getByText('Your enrolment has been cancelled from somewhere else').waitFor();
  await page.getByRole('button', { name: 'Join the line' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Print' }).count(), 0);

  // Without the page having been away, it is noticed within half a minute.
  await server.graphql(token, JOIN, { id });
  await server.graphql(token, ENROLL, { id });
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.getByRole('button', { name: 'Cancel enrolment' }).waitFor();
  await server.graphql(token, CANCEL, { id });
  await page.getByRole('button', { name: 'Cancel enrolment' }).waitFor({ state: 'detached', timeout: 32_000 });
  clean();
  await context.close();
});

test('screen readers are told the last place when the pause ends', async () => {
  const id = await server.lecture({ title: 'Gilding', capacity: 1, settings: { paused: true } });
  const ahead = [];
  for (let i = 0; i < 3; i++) {
    const guest = await server.guest(`ahead ${i}`);
    await server.graphql(guest.token, JOIN, { id });
    ahead.push(guest);
  }
  const { page, context, clean } = await student('Gyuri');
  await record(page);
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).click();
  await eventually(async () => (await said(page)).some((words) => words.includes('Your place in line: 4')), 'the first place is said');
  for (const [i, { token }] of ahead.slice(0, 2).entries()) {
    await server.graphql(token, LEAVE, { id });
    await page.locator('.queue .digits', { hasText: String(3 - i) }).waitFor();
  }
  await eventually(async () => (await said(page)).at(-1)?.includes('Your place in line: 2'), 'the last place is said', 25_000);
  assert.ok(!(await said(page)).some((words) => words.includes('in line: 3')), 'and not what was in between');
  clean();
  await context.close();
});
