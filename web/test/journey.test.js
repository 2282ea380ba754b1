// Students in real browsers: three of them, and one seat.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { openPage, screenshot, signIn, startBrowser } from './browser.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { [server, browser] = await Promise.all([startServer(), startBrowser()]); });
after(async () => {
  await browser.close();
  await server.stop();
});

/** Comes to a lecture by its list, and presses the one button. @param {string} name @param {string} title */
async function arrive(name, title) {
  const student = await openPage(browser, server.url);
  const { page } = student;
  await page.goto(`${server.url}/`);
  await page.getByRole('link', { name: title }).click();
  await page.getByRole('button', { name: 'Join the line' }).or(page.getByRole('button', { name: 'Join the waiting list' })).click();
  await signIn(page, name);
  return student;
}

/** @param {import('playwright-core').Page} page */
const place = (page) => page.locator('.queue .digits');

test('three students, one seat: a place, a turn, a receipt, and a seat that comes back', async () => {
  const id = await server.lecture({ title: 'Bookbinding', capacity: 1 });
  const a = await arrive('Ara', 'Bookbinding');
  await a.page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  assert.match(await a.page.title(), /Your turn! 1:5\d/);

  const b = await arrive('Bora', 'Bookbinding');
  await b.page.locator('main').getByText('Every free seat is on hold').waitFor();
  assert.equal(await place(b.page).textContent(), '1');
  const c = await arrive('Chan', 'Bookbinding');
  await place(c.page).waitFor();
  assert.equal(await place(c.page).textContent(), '2');
  assert.match(await c.page.title(), /^#2 · Bookbinding/);

  await a.page.getByRole('button', { name: 'Enrol now' }).dblclick();
  const receipt = a.page.getByRole('article', { name: 'Receipt 1' });
  await receipt.waitFor();
  assert.match(await receipt.innerText(), /Bookbinding[^]*2\d{3}[^]*GMT\+9[^]*guest-/);
  await b.page.locator('main').getByText('All seats are taken. You are on the waiting list').waitFor();
  await screenshot(b.page, 'sold-out');

  // The seat comes back: the head of the line gets it, and nobody else moves past.
  await a.page.getByRole('link', { name: 'My receipts' }).click();
  await a.page.getByRole('button', { name: 'Cancel enrolment' }).click();
  await a.page.getByRole('button', { name: 'Keep my seat' }).click();
  await a.page.locator('dialog').waitFor({ state: 'detached' });
  await a.page.getByRole('button', { name: 'Cancel enrolment' }).click();
  await screenshot(a.page, 'cancel-question');
  await a.page.getByRole('button', { name: 'Cancel my enrolment' }).click();
  await b.page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await eventually(async () => (await place(c.page).textContent()) === '1', 'the second in line is next');
  await a.page.locator('.receipt.void').waitFor();

  await b.page.getByRole('button', { name: 'Enrol now' }).click();
  await b.page.getByRole('article', { name: 'Receipt 2' }).waitFor();
  const { lecture } = await server.graphql(null, 'query ($id: ID!) { lecture(id: $id) { enrolledCount } }', { id });
  assert.equal(lecture.enrolledCount, 1);
  for (const { clean, context } of [a, b, c]) {
    clean();
    await context.close();
  }
});

test('a reload, a second tab and a second device have the same place; leaving asks first', async () => {
  const id = await server.lecture({ title: 'Calligraphy', capacity: 9, settings: { paused: true } });
  const other = await server.guest('before');
  await server.graphql(other.token, 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }', { id });
  const { page, context, clean } = await arrive('Dana', 'Calligraphy');
  await page.locator('main').getByText('Admission is paused for the moment.').waitFor();
  assert.equal(await place(page).textContent(), '2');

  await page.reload();
  await place(page).waitFor();
  assert.equal(await place(page).textContent(), '2');

  const tab = await context.newPage();
  await tab.goto(`${server.url}/#/lectures/${id}`);
  await place(tab).waitFor();
  assert.equal(await place(tab).textContent(), '2');

  const token = await page.evaluate(() => localStorage.getItem('seatline.token'));
  const device = await openPage(browser, server.url, { locale: 'ko-KR' });
  await device.page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await device.page.getByRole('button', { name: '접근 토큰이 있어요' }).click();
  await signIn(device.page, token ?? '');
  await place(device.page).waitFor();
  assert.equal(await place(device.page).textContent(), '2');
  await device.page.locator('main').getByText('입장이 잠시 멈췄어요.').waitFor();
  assert.equal(await device.page.locator('html').getAttribute('lang'), 'ko');

  // Progress is counted from where one began.
  await server.graphql(other.token, 'mutation ($id: ID!) { leaveQueue(lectureId: $id) { status } }', { id });
  await page.locator('main').getByText('You are next').waitFor();
  await page.locator('main').getByText('You came as number 2').waitFor();

  await page.getByRole('button', { name: 'Leave the line' }).click();
  await page.getByRole('button', { name: 'Stay in line' }).click();
  await place(page).waitFor();
  await page.getByRole('button', { name: 'Leave the line' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Leave the line' }).click();
  await page.locator('main').getByText('You have left the line.').waitFor();
  await tab.getByRole('button', { name: 'Join the line' }).waitFor();
  await device.page.getByRole('button', { name: '줄 서기' }).waitFor();
  clean();
  device.clean();
  await context.close();
  await device.context.close();
});

test('a deadline passes: it is said, and one can join again', async () => {
  await server.lecture({ title: 'Glassblowing', capacity: 1, settings: { ticketTtlSeconds: 2 } });
  const { page, context, clean } = await arrive('Eun', 'Glassblowing');
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await page.getByRole('heading', { name: 'The time to enrol ran out' }).waitFor();
  await screenshot(page, 'expired');
  await page.getByRole('button', { name: 'Join again' }).click();
  await page.getByRole('button', { name: 'Enrol now' }).click();
  await page.getByRole('article', { name: 'Receipt 1' }).waitFor();
  clean();
  await context.close();
});

test('the turn cannot be missed: sound, vibration, a notification, the title', async () => {
  const id = await server.lecture({ title: 'Weaving', capacity: 1, settings: { paused: true } });
  const { page, context, clean } = await openPage(browser, server.url, { permissions: ['notifications'] });
  await page.addInitScript(() => {
    /** @type {any} */ (window).calls = [];
    const { calls } = /** @type {any} */ (window);
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (...args) { calls.push('sound'); return start.apply(this, args); };
    navigator.vibrate = () => calls.push('vibration');
    class Recorded extends EventTarget {
      static permission = 'granted';
      /** @param {string} title @param {{ body: string }} options */
      constructor(title, { body }) { super(); calls.push(`notification: ${title}: ${body}`); }
      close() {}
    }
    Object.defineProperty(window, 'Notification', { value: Recorded });
  });
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signIn(page, 'Faye');
  await page.getByRole('button', { name: 'Join the line' }).click();
  await place(page).waitFor();
  await server.graphql(server.operatorToken, 'mutation ($id: ID!) { updateLecture(id: $id, input: { settings: { paused: false } }) { id } }', { id });
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  const calls = await page.evaluate(() => /** @type {any} */ (window).calls);
  assert.ok(calls.includes('sound') && calls.includes('vibration'), String(calls));
  assert.match(calls.find((/** @type {string} */ call) => call.startsWith('notification')), /It is your turn: Weaving/);
  const [one, two] = [await page.title(), await eventually(async () => {
    const title = await page.title();
    return title.startsWith('○') && title;
  }, 'the title blinks')];
  assert.match(one + two, /Your turn!/);
  assert.match(await page.locator('#announcer').textContent() ?? '', /It is your turn/);
  clean();
  await context.close();
});

test('a clock that is wrong by an hour changes no countdown', async () => {
  const opensAt = new Date(Date.now() + 600_000).toISOString();
  await server.lecture({ title: 'Astronomy', capacity: 1, opensAt });
  const id = await server.lecture({ title: 'Clockmaking', capacity: 1 });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.addInitScript(() => {
    const True = Date;
    const off = 3_600_000;
    class Wrong extends True {
      /** @param {any[]} args */
      constructor(...args) { super(...(args.length ? /** @type {[number]} */ (args) : /** @type {[number]} */ ([True.now() + off]))); }
      /** @override */
      static now() { return True.now() + off; }
    }
    window.Date = /** @type {any} */ (Wrong);
  });
  await page.goto(`${server.url}/`);
  const when = page.getByRole('link', { name: 'Astronomy' }).locator('.when');
  await eventually(async () => /Opens in (9:\d\d|10:00)/.test(await when.textContent() ?? ''), 'ten minutes to go, at most');
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signIn(page, 'Gyuri');
  await page.getByRole('button', { name: 'Join the line' }).click();
  const timer = page.locator('.turn .digits');
  await timer.waitFor();
  assert.match(await timer.textContent() ?? '', /^(1:5\d|2:00)$/);
  clean();
  await context.close();
});

test('a lecture that opens while one looks on', async () => {
  const opensAt = new Date(Date.now() + 4000).toISOString();
  const id = await server.lecture({ title: 'Dawn chorus', capacity: 1, opensAt });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signIn(page, 'Hana');
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('main').getByText('Enrolment has not opened yet. Your place is kept').waitFor();
  await page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  clean();
  await context.close();
});

test('closing is said, to who waits and to who comes', async () => {
  const closesAt = new Date(Date.now() + 5000).toISOString();
  const id = await server.lecture({ title: 'Last call', capacity: 1, closesAt, settings: { paused: true } });
  const { page, context, clean } = await arrive('Iseul', 'Last call');
  await place(page).waitFor();
  await page.locator('main').getByText('Nobody is admitted any more. If it is opened again, you are number 1 in line').waitFor();
  const late = await openPage(browser, server.url);
  await late.page.goto(`${server.url}/#/lectures/${id}`);
  await late.page.getByRole('heading', { name: 'Enrolment has closed' }).waitFor();
  assert.equal(await late.page.getByRole('button', { name: /Join/ }).count(), 0);
  clean();
  late.clean();
  await context.close();
  await late.context.close();
});
