// A busy morning: a line that moves, as a student and as an operator see it. The
// README's two pictures are taken here; SCREENSHOTS=docs puts them into docs/.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { artefacts, openPage, screenshot, signIn, startBrowser } from './browser.js';
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

const JOIN = 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }';
const POSITION = 'query ($id: ID!) { queuePosition(lectureId: $id) { status } }';
const ENROLL = 'mutation ($id: ID!) { enroll(lectureId: $id) { status } }';

/** Students who enrol when it is their turn, most of them. @param {string} id @param {number} n */
async function crowd(id, n) {
  const tokens = await Promise.all(Array.from({ length: n }, async (_, i) => (await server.guest(`student ${i}`)).token));
  for (const token of tokens) await server.graphql(token, JOIN, { id });
  const waiting = [...tokens];
  let over = false;
  const running = (async () => {
    while (!over && waiting.length > 0) {
      for (const token of waiting.slice(0, 8)) {
        const { queuePosition } = await server.graphql(token, POSITION, { id });
        if (queuePosition.status !== 'ADMITTED') break;
        waiting.shift();
        if (waiting.length % 7 !== 0) await server.graphql(token, ENROLL, { id });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return async () => {
    over = true;
    await running;
  };
}

/** Two pictures beside each other. @param {string[]} names @param {string} name */
async function beside(names, name) {
  const page = await browser.newPage({ viewport: { width: 820, height: 844 } });
  const pictures = names.map((file) => `data:image/png;base64,${readFileSync(join(artefacts, `${file}.png`)).toString('base64')}`);
  await page.setContent(`<body style="margin:0;display:flex;justify-content:space-between">${
    pictures.map((src) => `<img width="400" height="844" style="border-radius:28px" src="${src}">`).join('')}`);
  for (const picture of await page.locator('img').all()) await picture.evaluate((/** @type {HTMLImageElement} */ img) => img.decode());
  await page.screenshot({ path: join(artefacts, `${name}.png`), omitBackground: true });
  await page.close();
}

test('a line moves, and it shows: place, progress, wait, chance, board', async () => {
  const id = await server.lecture({
    title: 'Modern Astronomy', description: 'Tuesdays and Thursdays at ten, lecture hall B.', capacity: 120,
    settings: { admitPerSecond: 3, burst: 1, paused: true, message: 'Good morning! Everybody in line before half past ten has a good chance.' },
  });
  const leaveThem = await crowd(id, 90);
  const phone = { viewport: { width: 400, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 1.5 };
  const { page, context, clean } = await openPage(browser, server.url, phone);
  await page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signIn(page, 'Minji');
  await page.getByRole('button', { name: 'Join the line' }).click();
  await page.locator('.queue .digits').waitFor();
  await page.locator('main').getByText('You came as number 91').waitFor();

  const desk = await openPage(browser, server.url, { viewport: { width: 1100, height: 820 } });
  await desk.page.goto(server.operatorLink);
  await desk.page.getByRole('link', { name: 'Modern Astronomy' }).click();
  await desk.page.locator('.chart .line').first().waitFor({ state: 'attached' });
  await server.graphql(server.operatorToken, 'mutation ($id: ID!) { updateLecture(id: $id, input: { settings: { paused: false } }) { id } }', { id });

  await desk.page.getByRole('button', { name: 'Pause' }).waitFor();

  const place = async () => Number(await page.locator('.queue .digits').textContent());
  await eventually(async () => (await place()) < 45, 'half of the way', 60_000);
  assert.match(await page.locator('.figures').innerText(), /Expected wait\s*(Under a minute|About \d+ min)/);
  assert.match(await page.locator('.figures').innerText(), /Chance of a seat\s*(Very likely|Likely|Possible)/);
  const done = Number(await page.getByRole('progressbar').getAttribute('aria-valuenow'));
  assert.ok(done > 40 && done < 100, `${done} % of the way`);
  await screenshot(page, 'rush-waiting');
  const points = (await desk.page.locator('.chart .line').first().getAttribute('d') ?? '').split('L').length;
  assert.ok(points > 10, `${points} points are drawn`);
  await screenshot(desk.page, 'readme-operator');

  await page.getByRole('heading', { name: 'It is your turn' }).waitFor({ timeout: 60_000 });
  await screenshot(page, 'rush-admitted');
  await page.getByRole('button', { name: 'Enrol now' }).click();
  await page.locator('.receipt').waitFor();
  await leaveThem();
  await beside(['rush-waiting', 'rush-admitted'], 'readme-student');
  clean();
  desk.clean();
  await context.close();
  await desk.context.close();

  const docs = process.env['SCREENSHOTS'];
  if (docs) {
    const folder = new URL(`../../${docs}/`, import.meta.url).pathname;
    mkdirSync(folder, { recursive: true });
    for (const name of ['student', 'operator']) copyFileSync(join(artefacts, `readme-${name}.png`), join(folder, `${name}.png`));
  }
});
