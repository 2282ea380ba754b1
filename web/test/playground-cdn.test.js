// The playground of a build without `make assets`: from a CDN, held to its hashes.
// The CDN is played here by the packages it would serve.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';

import { openPage, screenshot, startBrowser } from './browser.js';
import { run } from './playground.js';
import { startServer } from './server.js';

const CDN = 'https://cdn.jsdelivr.net/npm/';
const root = new URL('../../', import.meta.url).pathname;

/** @type {{ package: string, version: string, path: string }[]} */
const assets = JSON.parse(readFileSync(join(root, 'web/playground/assets.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'seatline-overlay-'));

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => {
  execFileSync(join(root, 'scripts/assets'), { stdio: 'inherit' });
  // To this build, the assets are not there.
  const Replace = Object.fromEntries(assets.map((asset) => [join(root, 'web/assets', basename(asset.path)), '']));
  writeFileSync(join(folder, 'overlay.json'), JSON.stringify({ Replace }));
  process.env['GOFLAGS'] = `${process.env['GOFLAGS'] ?? ''} -overlay=${folder}/overlay.json`.trim();
  server = await startServer();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * @param {(content: Buffer, path: string) => Buffer | null} serve What the CDN makes of a file; null = no answer.
 * @param {RegExp} allow
 */
async function open(serve, allow) {
  const opened = await openPage(browser, server.url, { viewport: { width: 1280, height: 800 }, allow });
  /** @type {string[]} */
  const asked = [];
  await opened.context.route((url) => !url.href.startsWith(server.url), async (route) => {
    const address = route.request().url();
    asked.push(address);
    const asset = assets.find(({ package: name, version, path }) => address === `${CDN}${name}@${version}/${path}`);
    const content = asset && serve(readFileSync(join(root, 'web/playground/node_modules', asset.package, asset.path)), asset.path);
    if (!asset || !content) return route.abort('internetdisconnected');
    return route.fulfill({
      body: content,
      contentType: asset.path.endsWith('.css') ? 'text/css' : 'text/javascript',
      headers: { 'Access-Control-Allow-Origin': '*' },
    });
  });
  await opened.page.goto(`${server.url}/playground`);
  return { ...opened, asked };
}

test('it says so, asks for these files alone, and works', async () => {
  const { page, context, asked, clean } = await open((content) => content, /^request elsewhere: https:\/\/cdn\.jsdelivr\.net\//);
  assert.match(await page.locator('#source').innerText(), /from cdn\.jsdelivr\.net/);
  await page.locator('.graphiql-execute-button').waitFor();
  await run(page, 'SignIn', '"token"');
  await run(page, 'Join', 'placeToken');
  await run(page, 'Watch', 'ADMITTED');
  await screenshot(page, 'playground-cdn');
  assert.deepEqual(asked.sort(), assets.map(({ package: name, version, path }) => `${CDN}${name}@${version}/${path}`).sort());
  clean();
  await context.close();
});

for (const [what, serve] of /** @type {[string, (content: Buffer, path: string) => Buffer | null][]} */ ([
  ['a file that is not the one', (content, path) => (path === 'graphiql.min.js' ? Buffer.concat([content, Buffer.from('\n')]) : content)],
  ['no answer', () => null],
])) {
  test(`${what}: nothing runs, and the page says what to do`, async () => {
    const { page, context } = await open(serve, /./);
    await page.getByText('could not be loaded').waitFor();
    assert.equal(await page.evaluate(() => 'GraphiQL' in globalThis), false);
    await context.close();
  });
}
