// What the manual of the SDK tells people to copy is run as it stands there.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import WebSocket from 'ws';

import { eventually, startServer } from './server.js';

const web = new URL('..', import.meta.url).pathname;
const manual = readFileSync(join(web, 'static/sdk.html'), 'utf8');

/** @type {import('./server.js').Server} */
let server;
const secret = randomBytes(32).toString('hex');
before(async () => { server = await startServer({ JWT_SECRET: secret }); });
after(() => server.stop());

/** The code of a sample, as the browser would show it. @param {string} id */
function sample(id) {
  const html = new RegExp(`<pre[^>]* id="${id}">([^]*?)</pre>`).exec(manual)?.[1] ?? assert.fail(`no sample ${id}`);
  return html.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

/**
 * Runs code as a page's module would be run.
 *
 * @param {string} code
 * @param {Record<string, unknown>} globals
 */
async function run(code, globals) {
  Object.assign(globalThis, { WebSocket, location: new URL(`${server.url}/`), ...globals });
  // Beside the tests, so that it finds the packages that they find.
  const folder = mkdtempSync(join(web, 'test', '.sample-'));
  const file = join(folder, 'sample.mjs');
  writeFileSync(file, code.replace(`'/sdk.js'`, JSON.stringify(pathToFileURL(join(web, 'static/sdk.js')).href)));
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A token as a school's login would give it. @param {string} sub @param {number} seconds */
function shortLived(sub, seconds) {
  const now = Math.floor(Date.now() / 1000);
  const signed = [{ alg: 'HS256', typ: 'JWT' }, { sub, iat: now, exp: now + seconds }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/** @param {Record<string, string>} values */
const storage = (values) => ({
  getItem: (/** @type {string} */ key) => values[key] ?? null,
  setItem: (/** @type {string} */ key, /** @type {string} */ value) => { values[key] = value; },
});

test('the first sample takes somebody from the line to a receipt', async () => {
  const { token } = await server.guest('Reader');
  /** @type {string[]} */
  const shown = [];
  await run(`${sample('first')}\nexport { client };`, { localStorage: storage({ token }), show: (/** @type {string} */ words) => shown.push(words) })
    .then(async ({ client }) => {
      await eventually(() => shown.includes('Enrolled: receipt number 1.'), 'the receipt');
      client.close();
    });
  assert.ok(shown.includes('A seat is kept for you.'));
});

test('the samples about statuses and lost lines run', async () => {
  const { token } = await server.guest('Careful');
  const id = await server.lecture({ title: 'Samples', capacity: 1, settings: { paused: true } });
  await server.graphql(token, 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }', { id });
  /** @type {Record<string, string>} */
  const kept = {};
  /** @type {string[]} */
  const fresh = [];
  const head = `import { createClient } from '/sdk.js';\nconst client = createClient({ token: ${JSON.stringify(token)} });\nconst id = '${id}';\n`;
  const { client } = await run(`${head}${sample('status')}\n${sample('restore')}\nexport { client };`, {
    localStorage: storage(kept),
    show: () => {},
    markFresh: () => fresh.push('fresh'),
    markStale: () => fresh.push('stale'),
    explain: (/** @type {string} */ code) => assert.fail(code),
  });
  await eventually(() => kept[`place ${id}`] && fresh.at(-1) === 'fresh', 'a proof and a fresh place');
  assert.equal(fresh[0], 'stale', 'not true before it was read');
  client.close();
});

const stock = () => sample('stock').replace('ws://localhost:8080', server.url.replace('http', 'ws'));

test('the README has the stock client’s sample too', () => {
  const readme = readFileSync(join(web, '../README.md'), 'utf8');
  assert.equal(/```js\n([^]*?)\n```/.exec(readme)?.[1], sample('stock'));
});

test('the stock client does the same, and outlives its tokens and a restart', async () => {
  /** @type {string[]} */
  const tokens = [];
  /** @type {string[]} */
  const seen = [];
  // The lines end with the story, which is here that of an enrolment.
  const running = run(stock(), {
    id: '3',
    freshToken: async () => tokens[tokens.push(shortLived('stock', 5)) - 1],
    show: (/** @type {{ status: string }} */ { status }) => seen.push(status),
  });
  await eventually(() => seen.at(-1) === 'NOT_QUEUED', 'a first event');
  for (const n of [2, 3]) {
    const before = seen.length;
    await eventually(() => tokens.length === n, `token ${n}, after the one before has run out`);
    await eventually(() => seen.length > before, `a place with token ${n}`);
  }
  await server.stop();
  const before = seen.length;
  await server.start();
  await eventually(() => seen.length > before, 'a place after the restart');
  const token = shortLived('stock', 60);
  await server.graphql(token, 'mutation { joinQueue(lectureId: "3") { status } }');
  await eventually(() => seen.at(-1) === 'ADMITTED', 'admission');
  await server.graphql(token, 'mutation { enroll(lectureId: "3") { status } }');
  await running;
  assert.equal(seen.at(-1), 'ENROLLED');
  assert.ok(tokens.length < 15, `${tokens.length} tokens were asked for`);
});

test('the stock client’s sample ends where no token will do', async () => {
  let asked = 0;
  const running = run(stock(), { id: '3', freshToken: () => `refused-${++asked}`, show: () => assert.fail('a place without a token') });
  await assert.rejects(running, ({ code }) => code === 4401);
  assert.equal(asked, 3);
});

test('the types are those of the code', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seatline-types-'));
  try {
    execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '--project', join(web, 'tsconfig.sdk.json'), '--outDir', folder]);
    assert.equal(readFileSync(join(web, 'static/sdk.d.ts'), 'utf8'), readFileSync(join(folder, 'sdk.d.ts'), 'utf8'), 'npm run types writes them anew');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
