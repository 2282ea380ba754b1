// The real server, built once for a test file and started on a free port.

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = new URL('../..', import.meta.url).pathname;

/** @type {string | undefined} */
let binary;

/** @returns {string} */
function build() {
  if (binary) return binary;
  const folder = mkdtempSync(join(tmpdir(), 'seatline-web-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  binary = join(folder, 'seatline');
  execFileSync('go', ['build', '-o', binary, '.'], { cwd: root, stdio: 'inherit' });
  return binary;
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/**
 * @typedef {object} Server
 * @property {string} url Without a slash at its end.
 * @property {string} operatorLink As it is printed.
 * @property {string} operatorToken
 * @property {(signal?: NodeJS.Signals) => Promise<void>} stop
 * @property {() => Promise<void>} start Again, at the same address with the same seats.
 * @property {<T = any>(token: string | null, query: string, variables?: object) => Promise<T>} graphql
 * @property {(name: string) => Promise<{ token: string, userKey: string }>} guest
 * @property {(input: object) => Promise<string>} lecture
 */

/**
 * Starts a server on its embedded stores. Seats survive a restart, the line does not.
 *
 * @param {Record<string, string>} [env]
 * @returns {Promise<Server>}
 */
export async function startServer(env = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const data = mkdtempSync(join(tmpdir(), 'seatline-web-data-'));
  const settings = {
    PATH: process.env['PATH'] ?? '',
    ADDR: `127.0.0.1:${port}`,
    DATA_DIR: data,
    JWT_SECRET: randomBytes(32).toString('hex'),
    TICK: '200ms',
    LOG_LEVEL: 'error',
    ...env,
  };
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  process.on('exit', () => {
    child?.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true });
  });

  /** @type {Server} */
  const server = {
    url,
    operatorLink: '',
    operatorToken: '',
    async start() {
      let output = '';
      const started = spawn(build(), [], { env: settings, stdio: ['ignore', 'pipe', 'inherit'] });
      child = started;
      started.stdout.on('data', (piece) => { output += piece; });
      await eventually(async () => {
        if (started.exitCode !== null) throw new Stop(`the server ended with ${started.exitCode}`);
        return (await fetch(`${url}/readyz`)).ok && (env['GUEST_SESSIONS'] === 'off' || /#token=\S+/.test(output));
      }, 'the server is ready').catch((error) => {
        started.kill('SIGKILL');
        throw error;
      });
      server.operatorLink = /\S+#token=\S+/.exec(output)?.[0] ?? '';
      server.operatorToken = server.operatorLink.split('#token=')[1] ?? '';
    },
    async stop(signal = 'SIGTERM') {
      const stopping = child;
      if (!stopping || stopping.exitCode !== null || stopping.signalCode !== null) return;
      const ended = new Promise((resolve) => stopping.once('exit', resolve));
      stopping.kill(signal);
      await ended;
    },
    async graphql(token, query, variables = {}) {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
        body: JSON.stringify({ query, variables }),
      });
      const { data, errors } = await response.json();
      if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
      return data;
    },
    async guest(name) {
      const { startSession } = await server.graphql(null,
        'mutation ($name: String!) { startSession(name: $name) { token viewer { userKey } } }', { name });
      return { token: startSession.token, userKey: startSession.viewer.userKey };
    },
    async lecture(input) {
      const { createLecture } = await server.graphql(server.operatorToken,
        'mutation ($input: CreateLectureInput!) { createLecture(input: $input) { id } }', { input });
      return createLecture.id;
    },
  };
  await server.start();
  return server;
}

/** Ends {@link eventually} at once. */
class Stop extends Error {}

/**
 * Asks until the answer is truthy, and gives it.
 *
 * @template T
 * @param {() => T | Promise<T>} condition
 * @param {string} what
 * @param {number} [within] ms
 * @returns {Promise<NonNullable<T>>}
 */
export async function eventually(condition, what, within = 20_000) {
  const deadline = performance.now() + within;
  /** @type {unknown} */
  let last;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value;
      last = value;
    } catch (error) {
      if (error instanceof Stop) throw error;
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
