// What the manual of the SDK tells people to copy is run as it stands there.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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
before(async () => { server = await startServer(); });
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

test('the stock client does the same in ten lines', async () => {
  const { token } = await server.guest('Stock');
  /** @type {string[]} */
  const seen = [];
  // The lines end with the story, which is here that of an enrolment.
  const running = run(sample('stock').replace('ws://localhost:8080', server.url.replace('http', 'ws')).replace('lectureId: "1"', 'lectureId: "3"'), {
    token: () => token,
    show: (/** @type {{ status: string }} */ { status }) => seen.push(status),
  });
  await eventually(() => seen.at(-1) === 'NOT_QUEUED', 'a first event');
  await server.graphql(token, 'mutation { joinQueue(lectureId: "3") { status } }');
  await eventually(() => seen.at(-1) === 'ADMITTED', 'admission');
  await server.graphql(token, 'mutation { enroll(lectureId: "3") { status } }');
  await running;
  assert.equal(seen.at(-1), 'ENROLLED');
});

test('the types are those of the code', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seatline-types-'));
  try {
    execFileSync(process.execPath, [join(web, 'node_modules/typescript/bin/tsc'), '-p', join(web, 'tsconfig.sdk.json'), '--outDir', folder, '--rootDir', join(web, 'static')]);
    assert.equal(readFileSync(join(web, 'static/sdk.d.ts'), 'utf8'), readFileSync(join(folder, 'sdk.d.ts'), 'utf8'), 'npm run types writes them anew');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
