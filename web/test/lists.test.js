// The list of lectures: finding one, and coming back to where one was.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { openPage, startBrowser } from './browser.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  for (let i = 0; i < 45; i++) await server.lecture({ title: `${i % 2 ? '강의' : 'Lecture'} ${i}`, capacity: i });
});
after(async () => {
  await browser.close();
  await server.stop();
});

test('Back leads to as many lectures as there were, where one was among them', async () => {
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/`);
  const rows = page.locator('.row');
  const more = page.getByRole('button', { name: 'Show more' });
  for (const shown of [20, 40]) {
    await eventually(async () => (await rows.count()) === shown, `${shown} lectures`);
    await more.click();
  }
  await more.waitFor({ state: 'detached' });
  const all = await rows.count();
  assert.ok(all > 45, `${all} lectures`);
  const row = rows.nth(42);
  const title = await row.locator('.title').textContent() ?? '';
  await row.scrollIntoViewIfNeeded();
  const before = await page.evaluate(() => scrollY);
  await row.click();
  await page.getByRole('heading', { name: title }).waitFor();
  await page.goBack();
  await eventually(async () => (await rows.count()) === all, 'all of them again');
  await eventually(async () => Math.abs(await page.evaluate(() => scrollY) - before) < 50, 'the same of them in sight');
  // A link leads to the beginning of a page, also of one that was left elsewhere.
  await row.click();
  await page.getByRole('heading', { name: title }).waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0);
  // A search begins with its first page.
  await page.goBack();
  await page.getByRole('searchbox').fill('l');
  await eventually(async () => (await rows.count()) === 20, 'the first page of what was found');
  clean();
  await context.close();
});

test('a search typed in pieces of syllables finds whole ones', async () => {
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/`);
  await page.getByRole('searchbox').fill('강의 1'.normalize('NFD'));
  await page.locator('.row', { hasText: 'Lecture' }).first().waitFor({ state: 'detached' });
  await page.getByRole('link', { name: '강의 11' }).waitFor();
  clean();
  await context.close();
});

test('a refused search is said in one’s own language, and there is nothing to quote', async () => {
  for (const [locale, words] of /** @type {const} */ ([['en-GB', /^Something you entered is not right\. \(.+\)$/m], ['ko-KR', /^[가-힣 .]+$/m]])) {
    const { page, context, clean } = await openPage(browser, server.url, { locale });
    await page.goto(`${server.url}/`);
    await page.getByRole('searchbox').fill('x'.repeat(3000));
    const card = page.getByRole('alert');
    await card.waitFor();
    assert.match(await card.innerText(), words);
    assert.doesNotMatch(await card.innerText(), /Quote|번호/);
    clean();
    await context.close();
  }
});

test('a year that is not this one is named, and a lecture that is none is called so', async () => {
  const year = new Date().getFullYear() + 2;
  await server.lecture({ title: 'Comet', capacity: 1, opensAt: `${year}-06-15T12:00:00Z` });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/`);
  await page.getByRole('searchbox').fill('Comet');
  await page.getByRole('link', { name: 'Comet' }).getByText(new RegExp(`Opens .*15 June? ${year}`)).waitFor();
  await page.goto(`${server.url}/#/lectures/999999`);
  await page.getByRole('heading', { name: 'Lecture not found' }).waitFor({ state: 'attached' });
  assert.match(await page.title(), /^Lecture not found/);
  clean();
  await context.close();
});
