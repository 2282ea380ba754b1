// The playground as the binary brings it: the whole flow, and nothing from elsewhere.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { openPage, screenshot, startBrowser } from './browser.js';
import { awaitResult, openTab, pressRun, result, run, setHeaders, socketMessages, type } from './playground.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => {
  execFileSync(new URL('../../scripts/assets', import.meta.url).pathname, { stdio: 'inherit' });
  server = await startServer();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** @param {{ path?: string } & Parameters<typeof openPage>[2]} [options] */
async function openPlayground({ path = '/playground', ...options } = {}) {
  const opened = await openPage(browser, server.url, { viewport: { width: 1280, height: 800 }, ...options });
  const sent = socketMessages(opened.page);
  await opened.page.goto(server.url + path);
  await opened.page.locator('.graphiql-execute-button').waitFor();
  return { ...opened, sent };
}

test('the first tabs are the whole flow, and no request goes elsewhere', async () => {
  const { page, context, sent, clean } = await openPlayground({ path: `/playground#token=${server.operatorToken}` });
  assert.match(await page.locator('#source').innerText(), /from this binary/);
  assert.equal(new URL(page.url()).hash, '', 'the token stays in the address');

  const signedIn = (await run(page, 'SignIn', '"token"')).data.startSession;
  await page.getByText('Signed in as Ada').waitFor();
  await screenshot(page, 'playground');

  const { lectures } = (await run(page, 'Lectures', 'totalCount')).data;
  assert.equal(lectures.nodes[0].id, '1', 'the examples are about another lecture');
  await server.graphql(server.operatorToken, 'mutation { updateLecture(id: "1", input: { settings: { paused: true } }) { id } }');
  assert.equal((await run(page, 'Join', 'placeToken')).data.joinQueue.status, 'WAITING');

  // What others do is seen, over one socket that says who one is.
  assert.equal((await run(page, 'Watch', 'WAITING')).data.queuePosition.position, 1);
  assert.deepEqual(sent.map((message) => message.type), ['connection_init', 'subscribe']);
  assert.equal(sent[0].payload.Authorization, `Bearer ${signedIn.token}`);
  await server.graphql(server.operatorToken, 'mutation { updateLecture(id: "1", input: { settings: { message: "Patience" } }) { id } }');
  await awaitResult(page, 'Patience');
  await server.graphql(server.operatorToken, 'mutation { updateLecture(id: "1", input: { settings: { paused: false } }) { id } }');
  await awaitResult(page, 'ADMITTED');
  await screenshot(page, 'playground-watch');

  assert.equal((await run(page, 'Enrol', 'receipt')).data.enroll.status, 'ENROLLED');
  assert.equal(sent.at(-1).type, 'complete', 'the subscription goes on behind another tab');
  const { receipt } = (await run(page, 'Receipt', 'userKey')).data;
  assert.equal(receipt.userKey, signedIn.viewer.userKey);
  assert.equal((await run(page, 'Cancel', 'cancelledAt')).data.cancelEnrollment.number, receipt.number);

  // The operator's tabs send the token of the link, whoever is signed in.
  assert.equal((await run(page, 'CreateLecture', '"id"')).data.createLecture.title, 'Compilers');
  const first = (await run(page, 'LineStats', 'serverTime')).data.lineStats;
  await eventually(async () => JSON.parse(await result(page)).data.lineStats.serverTime !== first.serverTime, 'a second reading');
  assert.equal(sent.findLast((message) => message.type === 'connection_init').payload.Authorization, `Bearer ${server.operatorToken}`);
  await page.getByRole('button', { name: 'Stop query' }).click();
  await eventually(() => sent.at(-1).type === 'complete', 'the subscription ends');
  clean();
  await context.close();
});

test('an Authorization in the headers editor is sent over HTTP and over the socket', async () => {
  const { page, context, sent, clean } = await openPlayground();
  const { token, userKey } = await server.guest('Grace');
  await run(page, 'SignIn', '"token"');

  await openTab(page, 'Join');
  await setHeaders(page, { authorization: `Bearer ${token}` });
  await type(page, '.graphiql-query-editor', 'query Join { viewer { userKey } }');
  await pressRun(page);
  assert.equal((await awaitResult(page, 'userKey')).data.viewer.userKey, userKey);

  await openTab(page, 'Watch');
  await setHeaders(page, { authorization: `Bearer ${token}` });
  await pressRun(page);
  await awaitResult(page, 'NOT_QUEUED');
  assert.deepEqual(sent[0], { type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
  clean();
  await context.close();
});

test('what is run right after typing is what was typed', async () => {
  const { page, context, sent, clean } = await openPlayground();
  await run(page, 'SignIn', '"token"');
  await page.getByRole('button', { name: 'New tab' }).click();
  await type(page, '.graphiql-query-editor', 'subscription { queuePosition(lectureId: "2") { lineState } }');
  await pressRun(page);
  await awaitResult(page, 'queuePosition');
  assert.deepEqual(sent.map((message) => message.type), ['connection_init', 'subscribe']);
  clean();
  await context.close();
});

test('errors are shown, and are not errors of the page', async () => {
  const { page, context, clean } = await openPlayground({ allow: /status of 401/ });
  assert.equal((await run(page, 'Watch', 'errors')).errors[0].extensions.code, 'UNAUTHENTICATED');
  // No operator's token was in the link, so what is in Headers is a word about it.
  assert.equal((await run(page, 'CreateLecture', 'errors')).errors[0].extensions.code, 'UNAUTHENTICATED');
  assert.match((await run(page, 'LineStats', 'errors')).errors[0].message, /4401/);
  clean();
  await context.close();
});

test('a reload keeps the tabs, and the examples come back when asked for', async () => {
  const { page, context, clean } = await openPlayground();
  const names = ['SignIn', 'Lectures', 'Join', 'Watch', 'Enrol', 'Receipt', 'Cancel', 'CreateLecture', 'LineStats'];
  const tabs = async () => (await page.getByRole('tab').allInnerTexts()).map((text) => text.trim());
  assert.deepEqual(await tabs(), names);
  await page.reload();
  await page.locator('.graphiql-execute-button').waitFor();
  assert.deepEqual(await tabs(), names);

  await run(page, 'SignIn', '"token"');
  await openTab(page, 'Lectures');
  await type(page, '.graphiql-query-editor', 'query Mine { viewer { name } }');
  await page.getByRole('tab', { name: 'Mine' }).waitFor();
  await eventually(() => page.evaluate(() => sessionStorage.getItem('graphiql:tabState')?.includes('Mine')), 'it is kept');
  await page.reload();
  await page.getByText('Signed in as Ada').waitFor();
  await page.getByRole('tab', { name: 'Mine' }).waitFor();
  await page.getByRole('button', { name: 'Examples again' }).click();
  await page.getByRole('tab', { name: 'Lectures' }).waitFor();
  assert.deepEqual(await tabs(), names);
  assert.match(await page.evaluate(() => /** @type {any} */ (document.querySelector('.graphiql-editor-tool .CodeMirror')).CodeMirror.getValue()), /Ada/);

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Signed out').waitFor();
  clean();
  await context.close();
});

test('what Seatline adds to GraphiQL is accessible, and fits a phone', async () => {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    const { page, context, clean } = await openPlayground({ viewport: { width: 360, height: 740 }, colorScheme });
    const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => /** @type {any} */ (globalThis).axe.run('body > header'));
    assert.deepEqual(violations, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    await screenshot(page, `playground-phone-${colorScheme}`);
    clean();
    await context.close();
  }
});
