// Every page, in both languages and both themes: nothing wrong with it for a screen
// reader, nothing too wide for a small phone, and little to load.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';

import { openPage, screenshot, startBrowser } from './browser.js';
import { eventually, startServer } from './server.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { [server, browser] = await Promise.all([startServer(), startBrowser()]); });
after(async () => {
  await browser.close();
  await server.stop();
});

/** @param {import('playwright-core').Page} page @param {string} where */
async function accessible(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run());
  const found = violations.map((/** @type {any} */ { id, help, nodes }) => `${id}: ${help}: ${nodes.map((/** @type {any} */ { html }) => html).join(' ')}`);
  assert.deepEqual(found, [], where);
}

/** On small phones, and with text as large again. @param {import('playwright-core').Page} page @param {string} where */
async function fits(page, where) {
  for (const [width, text] of /** @type {const} */ ([[360, ''], [320, ''], [320, '200%'], [360, '200%']])) {
    await page.setViewportSize({ width, height: 740 });
    const wide = await page.evaluate((text) => {
      const root = document.documentElement;
      root.style.fontSize = text;
      return root.scrollWidth - root.clientWidth;
    }, text);
    assert.ok(wide <= 0, `${where} is ${wide} px too wide for ${width} px${text && ` at ${text}`}`);
  }
  await page.evaluate(() => { document.documentElement.style.fontSize = ''; });
}

const JOIN = 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }';
const ENROLL = 'mutation ($id: ID!) { enroll(lectureId: $id) { status } }';

/** Lectures in every state, and somebody with a place at each. */
async function scene() {
  const { token } = await server.guest('Aleksandra 김민지 Nowak');
  /** @param {object} input @param {number} [ahead] @param {boolean} [join] */
  const lecture = async (input, ahead = 0, join = true) => {
    const id = await server.lecture(input);
    for (let i = 0; i < ahead; i++) await server.graphql((await server.guest(`ahead ${i}`)).token, JOIN, { id });
    if (join) await server.graphql(token, JOIN, { id });
    return id;
  };
  const title = (/** @type {string} */ ko, /** @type {string} */ en) => `${ko} · ${en}`;
  const slow = { admitPerSecond: 0.01, burst: 1 };
  const enrolled = await lecture({ title: title('한국 근대사', 'Modern Korean History'), capacity: 30 });
  await server.graphql(token, ENROLL, { id: enrolled });
  const cancelled = await lecture({ title: title('통계학 개론', 'Introduction to Statistics'), capacity: 30 });
  await server.graphql(token, ENROLL, { id: cancelled });
  await server.graphql(token, 'mutation ($id: ID!) { cancelEnrollment(lectureId: $id) { id } }', { id: cancelled });
  return {
    token, enrolled,
    waiting: await lecture({ title: title('천문학의 이해', 'Understanding Astronomy'), capacity: 40, settings: { ...slow, message: '학생증을 준비해 주세요.\nHave your student card ready.' } }, 12),
    paused: await lecture({ title: title('미시경제학', 'Microeconomics'), capacity: 40, settings: { ...slow, paused: true } }, 1),
    admitted: await lecture({ title: title('영화와 사회', 'Film and Society'), capacity: 25, settings: { ticketTtlSeconds: 3600 } }),
    joining: await lecture({ title: title('생명과학', 'Life Science'), description: '세포에서 생태계까지.\nFrom cells to ecosystems.', capacity: 60 }, 0, false),
    upcoming: await lecture({ title: title('서양 음악사', 'History of Western Music'), capacity: 60, opensAt: new Date(Date.now() + 3_000_000).toISOString() }, 0, false),
    dated: await lecture({ title: '인공지능과 현대 사회의 윤리적 쟁점 · Introduction to Comparative Constitutional Jurisprudence', capacity: 40, closesAt: new Date(Date.now() + 800_000_000).toISOString() }, 0, false),
    closed: await lecture({ title: title('고전 읽기', 'Reading the Classics'), capacity: 60, closesAt: new Date(Date.now() - 1000).toISOString() }, 0, false),
  };
}

test('no page has a fault for a screen reader, or is too wide for a small phone', async () => {
  const lectures = await scene();
  const { token } = lectures;
  /** What is at an address, and what shows that it is there. @type {[string, string, string, string?][]} */
  const student = [
    ['list', '#/', '.row .title'],
    ['joining', `#/lectures/${lectures.joining}`, 'button.main'],
    ['upcoming', `#/lectures/${lectures.upcoming}`, '.big'],
    ['closed', `#/lectures/${lectures.closed}`, '.words h2'],
    ['waiting', `#/lectures/${lectures.waiting}`, '.queue .digits'],
    ['paused', `#/lectures/${lectures.paused}`, '.queue .digits'],
    ['admitted', `#/lectures/${lectures.admitted}`, '.turn .digits'],
    ['enrolled', `#/lectures/${lectures.enrolled}`, '.receipt'],
    ['receipts', '#/receipts', '.receipt.void'],
    ['missing', '#/nowhere', '.empty .button'],
    ['manual', 'sdk.html', '.sample button'],
  ];
  const operator = [
    ['operate', '#/operate', '.row .title'],
    ['create', '#/operate/new', 'form.form'],
    ['board', `#/operate/${lectures.enrolled}`, '.chart .line'],
  ];
  /** @type {typeof student} */
  const nobody = [['signin', '#/signin', '#credential']];
  for (const [locale, colorScheme] of /** @type {const} */ ([['ko-KR', 'light'], ['ko-KR', 'dark'], ['en-GB', 'light'], ['en-GB', 'dark']])) {
    for (const [who, pages] of /** @type {const} */ ([[token, student], [server.operatorToken, operator], ['', nobody]])) {
      const { page, context, clean } = await openPage(browser, server.url, {
        locale, colorScheme, viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2,
      });
      await page.addInitScript((token) => localStorage.setItem('seatline.token', token), who);
      for (const [name = '', path = '', sign = ''] of pages) {
        const where = `${name}-${locale}-${colorScheme}`;
        await page.goto(`${server.url}/${path}`);
        await page.locator(sign).first().waitFor({ state: 'attached' });
        await page.locator('.skeleton').waitFor({ state: 'detached' });
        if (path !== 'sdk.html') assert.equal(await page.locator('html').getAttribute('lang'), locale.slice(0, 2));
        await accessible(page, where);
        await fits(page, where);
        if (sign === '.row .title') {
          await page.setViewportSize({ width: 320, height: 740 });
          const narrowest = Math.min(...await page.locator(sign).evaluateAll((titles) => titles.map((title) => title.getBoundingClientRect().width)));
          assert.ok(narrowest > 110, `${where}: a title has ${narrowest} px`);
        }
        await page.setViewportSize({ width: 360, height: 740 });
        await screenshot(page, where);
      }
      clean();
      await context.close();
    }
  }
});

test('questions are no fault either, and keep the keyboard', async () => {
  const { token } = await server.guest('Keyboard');
  const id = await server.lecture({ title: 'By keyboard', capacity: 3 });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.addInitScript((token) => localStorage.setItem('seatline.token', token), token);
  await page.goto(`${server.url}/#/lectures/${id}`);
  await page.getByRole('button', { name: 'Join the line' }).waitFor();
  // From the top of the page to the receipt and back out of it, without a mouse.
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Enrol now' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Cancel enrolment' }).focus();
  await page.keyboard.press('Enter');
  await accessible(page, 'question');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Keep my seat', 'the harmless answer comes first');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel enrolment');
  clean();
  await context.close();
});

test('nor is what an operator is asked and told, on a board that is live', async () => {
  const id = await server.lecture({ title: 'Glazing', capacity: 3, settings: { admitPerSecond: 0.01, burst: 1 } });
  for (const name of ['first', 'second']) await server.graphql((await server.guest(name)).token, JOIN, { id });
  for (const [locale, colorScheme] of /** @type {const} */ ([['ko-KR', 'light'], ['en-GB', 'dark']])) {
    const { page, context, clean } = await openPage(browser, server.url, { locale, colorScheme, viewport: { width: 360, height: 740 } });
    await page.addInitScript((token) => localStorage.setItem('seatline.token', token), server.operatorToken);
    await page.goto(`${server.url}/#/operate/${id}`);
    await page.locator('.link-state.live').waitFor();
    await page.locator('.chart .line').first().waitFor({ state: 'attached' });
    await page.locator('#f-title').fill('Glazing, and firing a whole kiln of long titles');
    await page.locator('#f-message').fill('A message that nobody has seen yet, and that is long enough for two lines of a phone.');
    await server.graphql(server.operatorToken, 'mutation ($id: ID!, $title: String!) { updateLecture(id: $id, input: { title: $title }) { id } }',
      { id, title: `Glazing, by ${locale}` });
    await page.locator('.changed').waitFor();
    await accessible(page, `changed elsewhere, ${locale}`);
    await page.locator('.changed').evaluate((note) => note.scrollIntoView({ block: 'center' }));
    await screenshot(page, `changed-${locale}-${colorScheme}`);
    await fits(page, `changed elsewhere, ${locale}`);
    await page.locator('form.form button.primary').click();
    await page.locator('dialog .changes').waitFor();
    await accessible(page, `the question, ${locale}`);
    await screenshot(page, `question-${locale}-${colorScheme}`);
    await fits(page, `the question, ${locale}`);
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    clean();
    await context.close();
  }
});

test('nor is a place that is old', async () => {
  const { token } = await server.guest('Offline');
  const id = await server.lecture({ title: 'Offline', capacity: 3, settings: { paused: true } });
  await server.graphql(token, JOIN, { id });
  for (const [locale, colorScheme] of /** @type {const} */ ([['ko-KR', 'light'], ['en-GB', 'dark']])) {
    const { page, context, clean } = await openPage(browser, server.url, { locale, colorScheme, viewport: { width: 360, height: 740 }, allow: /net::ERR_/ });
    await page.addInitScript((token) => localStorage.setItem('seatline.token', token), token);
    await page.goto(`${server.url}/#/lectures/${id}`);
    await page.locator('.link-state.live').waitFor();
    await context.setOffline(true);
    await page.locator('.queue.stale').waitFor();
    await accessible(page, `stale, ${locale}`);
    await fits(page, `stale, ${locale}`);
    clean();
    await context.close();
  }
});

test('the language is the browser’s until one chooses, and then the chosen one', async () => {
  const { page, context, clean } = await openPage(browser, server.url, { locale: 'ko-KR' });
  await page.goto(`${server.url}/`);
  await page.getByRole('heading', { name: '강의' }).waitFor();
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('heading', { name: 'Lectures' }).waitFor();
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  await page.reload();
  await page.getByRole('heading', { name: 'Lectures' }).waitFor();
  clean();
  await context.close();
});

test('the search finds, and says when it does not', async () => {
  await server.lecture({ title: 'Needlework', capacity: 1 });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/`);
  await page.getByRole('searchbox').fill('needle');
  await page.locator('main').getByText('1 lecture', { exact: true }).waitFor();
  await page.getByRole('searchbox').fill('haystack');
  await page.locator('main').getByText('No lecture has “haystack” in its title.').waitFor();
  clean();
  await context.close();
});

test('the first load is at most 60 KB, comes from here alone, and moves nothing', async () => {
  const { page, context, clean } = await openPage(browser, server.url);
  /** @type {Promise<number>[]} */
  let sizes = [];
  page.on('requestfinished', (request) => sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize)));
  const loaded = async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  await page.addInitScript(() => {
    /** @type {any} */ (window).shift = 0;
    new PerformanceObserver((list) => {
      for (const entry of /** @type {any[]} */ (list.getEntries())) if (!entry.hadRecentInput) /** @type {any} */ (window).shift += entry.value;
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(`${server.url}/`, { waitUntil: 'networkidle' });
  await page.locator('.row .title').first().waitFor();
  const bytes = await loaded();
  assert.ok(bytes > 10_000 && bytes <= 60 * 1024, `${bytes} bytes in ${sizes.length} files`);
  const shift = await page.evaluate(() => /** @type {any} */ (window).shift);
  assert.ok(shift < 0.05, `a layout shift of ${shift}`);

  // Coming back costs next to nothing.
  sizes = [];
  await page.reload({ waitUntil: 'networkidle' });
  const again = await loaded();
  assert.ok(again < 6000, `${again} bytes the second time`);
  clean();
  await context.close();
});

/** How much paper a page takes. @param {import('playwright-core').Page} page */
const sheets = async (page) => (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type\s*\/Page\b/g)?.length;

test('a hard load of a lecture moves nothing, whatever one has there', async () => {
  const { token } = await server.guest('Still');
  const description = 'What is taught, at some length. '.repeat(12);
  /** @param {string} title @param {object} [settings] */
  const lecture = (title, settings) => server.lecture({ title: `${title}, on a phone and at some length`, description, capacity: 5, settings });
  const places = {
    joining: await lecture('To join'),
    waiting: await lecture('To wait', { paused: true, message: 'Have your student card ready.' }),
    admitted: await lecture('To enrol', { ticketTtlSeconds: 3600 }),
    enrolled: await lecture('To attend'),
  };
  const { joining: _, ...joined } = places;
  for (const id of Object.values(joined)) await server.graphql(token, JOIN, { id });
  await server.graphql(token, ENROLL, { id: places.enrolled });
  const sign = { joining: 'button.main', waiting: '.queue .digits', admitted: '.turn .digits', enrolled: '.receipt' };
  for (const name of /** @type {(keyof typeof places)[]} */ (Object.keys(places))) {
    const { page, context, clean } = await openPage(browser, server.url, { viewport: { width: 360, height: 740 } });
    await page.addInitScript((token) => {
      localStorage.setItem('seatline.token', token);
      /** @type {any} */ (window).shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of /** @type {any[]} */ (list.getEntries())) if (!entry.hadRecentInput) /** @type {any} */ (window).shift += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    }, token);
    for (const which of ['first', 'second']) {
      if (which === 'first') await page.goto(`${server.url}/#/lectures/${places[name]}`);
      else await page.reload();
      await page.locator(sign[name]).waitFor();
      await page.locator('.description').waitFor();
      // What was drawn is measured with the frame after it.
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const shift = await page.evaluate(() => /** @type {any} */ (window).shift);
      assert.ok(shift < 0.1, `${name}, ${which} load: a layout shift of ${shift}`);
      const [panel, description] = await Promise.all(['.place', '.description'].map((part) => page.locator(part).boundingBox()));
      assert.ok((panel?.y ?? 0) < (description?.y ?? 0), 'the description is below');
    }
    clean();
    await context.close();
  }
});

test('a receipt is printed by itself, on one sheet', async () => {
  const { token } = await server.guest('Printer');
  await server.graphql(token, JOIN, { id: '1' });
  await server.graphql(token, ENROLL, { id: '1' });
  const { page, context, clean } = await openPage(browser, server.url);
  await page.addInitScript((token) => {
    localStorage.setItem('seatline.token', token);
    window.print = () => { document.body.dataset['printed'] = document.querySelector('.printed')?.textContent ?? ''; };
  }, token);
  await page.goto(`${server.url}/#/lectures/1`);
  await page.locator('.receipt').waitFor();
  assert.equal(await sheets(page), 1, 'by the browser’s own menu');
  await page.getByRole('button', { name: 'Print' }).click();
  assert.match(await page.locator('body').getAttribute('data-printed') ?? '', /Receipt number/);
  assert.equal(await sheets(page), 1);
  await page.emulateMedia({ media: 'print' });
  for (const selector of ['.top', '.bottom', '.actions', 'h1']) assert.equal(await page.locator(selector).first().isVisible(), false, selector);
  assert.equal(await page.locator('.receipt').isVisible(), true);
  assert.match(await page.locator('.receipt').innerText(), /Name\s*Printer/);
  await screenshot(page, 'printed');

  // One of several, in the same way.
  const other = await server.lecture({ title: 'Another', capacity: 3 });
  await server.graphql(token, JOIN, { id: other });
  await server.graphql(token, ENROLL, { id: other });
  await page.emulateMedia({ media: null });
  await page.getByRole('link', { name: 'My receipts' }).click();
  await page.locator('.receipt', { hasText: 'Another' }).getByRole('button', { name: 'Print' }).click();
  await page.emulateMedia({ media: 'print' });
  for (const selector of ['.top', '.bottom', 'h1']) assert.equal(await page.locator(selector).first().isVisible(), false, selector);
  assert.deepEqual(await page.locator('.receipt .title:visible').allTextContents(), ['Another']);
  await page.emulateMedia({ media: null });
  assert.equal(await sheets(page), 1);
  clean();
  await context.close();
});

test('the SDK’s manual copies its samples', async () => {
  const { page, context, clean } = await openPage(browser, server.url, { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.goto(`${server.url}/sdk.html`);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  const copied = await eventually(() => page.evaluate(() => navigator.clipboard.readText()), 'something copied');
  assert.match(copied, /^import \{ createClient \} from '\/sdk\.js';/);
  clean();
  await context.close();
});
