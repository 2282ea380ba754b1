// The SDK against the real server, and against every way a connection can end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import WebSocket, { WebSocketServer } from 'ws';

import { createClient, SeatlineError } from '../static/sdk.js';
import { startProxy } from './proxy.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
before(async () => { server = await startServer(); });
after(() => server.stop());

// A test that fails must not keep what it opened.
/** @type {(() => unknown)[]} */
const cleanups = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function proxyOf(target = server.url) {
  const proxy = await startProxy(target);
  cleanups.push(proxy.close);
  return proxy;
}

/**
 * @param {import('../static/sdk.js').ClientOptions['token']} token
 * @param {import('../static/sdk.js').ClientOptions} [more]
 */
function clientOf(token, more) {
  const client = createClient({
    url: `${server.url}/graphql`, token, WebSocket: /** @type {any} */ (WebSocket), ...more,
    timing: { baseDelayMs: 200, ...more?.timing },
  });
  cleanups.push(client.close);
  return client;
}

const JOIN = 'mutation ($id: ID!, $placeToken: String) { joinQueue(lectureId: $id, placeToken: $placeToken) { status position } }';

/** Watches and keeps everything that it is told. @param {import('../static/sdk.js').Client} client @param {string} id */
function follow(client, id) {
  /** @type {import('../static/sdk.js').QueuePosition[]} */
  const positions = [];
  /** @type {import('../static/sdk.js').WatchStatus[]} */
  const statuses = [];
  /** @type {string[]} */
  const sources = [];
  const stop = client.watchPosition(id, (position, { source }) => {
    positions.push(position);
    sources.push(source);
  }, { onStatus: (status) => statuses.push(status) });
  return {
    positions, statuses, sources, stop,
    latest: () => positions.at(-1),
    state: () => statuses.at(-1)?.state,
  };
}

/** @param {string} code */
const withCode = (code) => (/** @type {unknown} */ error) => error instanceof SeatlineError && error.code === code;

test('a query gives its data, and errors have the codes of the contract', async () => {
  const guest = await server.guest('Minji');
  const client = clientOf(guest.token);
  const { viewer } = await client.query('{ viewer { userKey name } }');
  assert.deepEqual(viewer, { userKey: guest.userKey, name: 'Minji' });
  await assert.rejects(client.query('query ($id: ID!) { queuePosition(lectureId: $id) { status } }', { id: 'no such' }), withCode('NOT_FOUND'));
  await assert.rejects(client.mutate('mutation { createLecture(input: { title: "x", capacity: 1 }) { id } }'), withCode('FORBIDDEN'));
  await assert.rejects(clientOf(server.operatorToken).mutate('mutation { createLecture(input: { title: "", capacity: 1 }) { id } }'), withCode('BAD_USER_INPUT'));
  await assert.rejects(clientOf(null).query('{ receipts { totalCount } }'), withCode('UNAUTHENTICATED'));
  await assert.rejects(client.query('{ receipts { totalCount } }', {}, { signal: AbortSignal.abort() }), withCode('ABORTED'));
});

test('a refused token is asked for once more, over HTTP and over the socket', async () => {
  const guest = await server.guest('Jisoo');
  const id = await server.lecture({ title: 'Refresh', capacity: 1 });
  /** @type {(string | undefined)[]} */
  const asked = [];
  let current = 'worn out';
  const client = clientOf(({ refused }) => {
    asked.push(refused);
    if (refused) current = guest.token;
    return current;
  });
  assert.equal((await client.query('{ viewer { userKey } }')).viewer.userKey, guest.userKey);
  assert.deepEqual(asked, [undefined, 'worn out']);

  asked.length = 0;
  current = 'worn out again';
  const watch = follow(client, id);
  await eventually(() => watch.latest(), 'a first position');
  assert.deepEqual(asked, [undefined, 'worn out again']);
});

test('a token that cannot be refreshed ends the watch, at the first connection', async () => {
  const proxy = await proxyOf();
  for (const token of ['forged', () => 'forged']) {
    proxy.faults.upgrades = 0;
    const client = clientOf(token, { url: `${proxy.url}/graphql` });
    const watch = follow(client, '1');
    await eventually(() => watch.state() === 'failed', 'the end');
    assert.equal(watch.statuses.at(-1)?.error?.code, 'UNAUTHENTICATED');
    assert.equal(proxy.faults.upgrades, 1);
  }
});

test('a watch goes from the line to the receipt, and ends', async () => {
  const guest = await server.guest('Haneul');
  const id = await server.lecture({ title: 'A whole story', capacity: 1 });
  const client = clientOf(guest.token);
  const watch = follow(client, id);
  await eventually(() => watch.latest()?.status === 'NOT_QUEUED', 'a position before joining');
  assert.equal(watch.state(), 'live');
  await client.mutate(JOIN, { id });
  await eventually(() => watch.latest()?.status === 'ADMITTED', 'admission');
  const { ticketExpiresAt, serverTime } = watch.latest() ?? assert.fail();
  const left = Date.parse(ticketExpiresAt ?? '') - client.serverNow();
  assert.ok(left > 100_000 && left <= 120_500, `${left} ms of 120 s are left at ${serverTime}`);
  await client.mutate('mutation ($id: ID!) { enroll(lectureId: $id) { status } }', { id });
  await eventually(() => watch.state() === 'ended', 'the end');
  assert.equal(watch.latest()?.receipt?.number, 1);
});

test('one socket carries all subscriptions, and none is left open without any', async () => {
  const proxy = await proxyOf();
  const guest = await server.guest('Nari');
  const client = clientOf(guest.token, { url: `${proxy.url}/graphql`, timing: { lingerMs: 50 } });
  const watches = ['1', '2', '3'].map((id) => follow(client, id));
  for (const watch of watches) await eventually(() => watch.latest(), 'a position each');
  assert.equal(proxy.faults.upgrades, 1);
  for (const { stop } of watches) stop();
  await pause(300);
  const again = follow(client, '1');
  await eventually(() => again.latest(), 'a position on a new socket');
  assert.equal(proxy.faults.upgrades, 2);
});

test('an unknown lecture ends the watch with the reason', async () => {
  const client = clientOf((await server.guest('Lost')).token);
  const watch = follow(client, 'no such');
  await eventually(() => watch.state() === 'failed', 'the end');
  assert.equal(watch.statuses.at(-1)?.error?.code, 'NOT_FOUND');
});

test('a restart is waited out, and the proof of a place brings it back', async () => {
  const own = await startServer();
  cleanups.push(() => own.stop('SIGKILL'));
  const id = await own.lecture({ title: 'Through a restart', capacity: 5, settings: { paused: true } });
  const first = await own.guest('first');
  const second = await own.guest('second');
  for (const { token } of [first, second]) await own.graphql(token, JOIN, { id });
  const client = clientOf(second.token, { url: `${own.url}/graphql`, timing: { baseDelayMs: 50, maxDelayMs: 400 } });
  const watch = follow(client, id);
  await eventually(() => watch.latest()?.position === 2, 'second in line');
  const proof = watch.latest()?.placeToken;

  await own.stop('SIGTERM');
  await eventually(() => watch.state() !== 'live', 'the restart is noticed');
  assert.equal(watch.statuses.find(({ state }) => state === 'retrying')?.closeCode, 1012);
  await own.start();
  await eventually(() => watch.state() === 'live', 'the way back');
  await eventually(() => watch.latest()?.reason === 'LINE_LOST', 'a lost line is said to be lost');
  await own.graphql((await own.guest('late')).token, JOIN, { id });
  const { joinQueue } = await client.mutate(JOIN, { id, placeToken: proof });
  assert.deepEqual(joinQueue, { status: 'WAITING', position: 1 }, 'before whoever came after');

  await own.stop('SIGKILL');
  await eventually(() => watch.state() !== 'live', 'the kill is noticed');
  await own.start();
  await eventually(() => watch.state() === 'live', 'the way back again');
});

test('a request is repeated while that may help, and only if it was asked for', async () => {
  const proxy = await proxyOf();
  const client = clientOf(null, { url: `${proxy.url}/graphql` });
  proxy.faults.refuseRequests = true;
  await assert.rejects(client.mutate('mutation { startSession(name: "x") { token } }'), withCode('NETWORK'));
  assert.equal(proxy.faults.requests, 1);

  /** @type {number[]} */
  const retries = [];
  const data = await client.query('{ lectures { totalCount } }', {}, {
    retries: 3,
    onRetry(error, attempt) {
      assert.ok(error.temporary);
      retries.push(attempt);
      if (attempt === 2) proxy.faults.refuseRequests = false;
    },
  });
  assert.ok(data.lectures.totalCount >= 3);
  assert.deepEqual(retries, [1, 2]);
});

test('a socket that died without a word is noticed and replaced', async () => {
  const proxy = await proxyOf();
  const guest = await server.guest('Tunnel');
  const id = await server.lecture({ title: 'Tunnel', capacity: 1, settings: { paused: true } });
  const client = clientOf(guest.token, { url: `${proxy.url}/graphql`, timing: { silenceMs: 300, probeMs: 300 } });
  const watch = follow(client, id);
  await eventually(() => watch.state() === 'live', 'a live place');
  await pause(1500); // A quiet socket answers its probes, and stays.
  assert.equal(proxy.faults.upgrades, 1);
  proxy.stall();
  await eventually(() => watch.state() === 'retrying', 'the silence is noticed');
  await client.mutate(JOIN, { id });
  await eventually(() => watch.latest()?.status === 'WAITING' && watch.state() === 'live', 'a live place again');
});

test('without settings of one’s own, such a socket is noticed within 25 seconds', async () => {
  const proxy = await proxyOf();
  const guest = await server.guest('Frozen');
  const id = await server.lecture({ title: 'Frozen', capacity: 1, settings: { paused: true } });
  const watch = follow(clientOf(guest.token, { url: `${proxy.url}/graphql` }), id);
  await eventually(() => watch.state() === 'live', 'a live place');
  proxy.stall();
  await eventually(() => watch.state() !== 'live', 'the silence is noticed', 25_000);
});

test('where no socket will stay a place is polled for, until one does', async () => {
  const proxy = await proxyOf();
  proxy.faults.refuseUpgrades = true;
  const guest = await server.guest('Behind a proxy');
  const id = await server.lecture({ title: 'Polled', capacity: 1, settings: { paused: true } });
  const client = clientOf(guest.token, { url: `${proxy.url}/graphql`, timing: { baseDelayMs: 50, maxDelayMs: 500 } });
  await client.mutate(JOIN, { id });
  const watch = follow(client, id);
  await eventually(() => watch.state() === 'polling', 'polling');
  assert.ok(proxy.faults.upgrades >= 3, 'sockets were tried first');
  assert.deepEqual([watch.latest()?.status, watch.latest()?.position, watch.sources.at(-1)], ['WAITING', 1, 'poll']);

  const every = watch.latest()?.pollAfterMs ?? assert.fail();
  assert.equal(every, 1000);
  const from = { at: performance.now(), n: watch.positions.length };
  await eventually(() => watch.positions.length >= from.n + 2, 'two more polls');
  assert.ok(performance.now() - from.at >= 2 * 0.9 * every - 1000, 'not more often than was asked');

  proxy.faults.refuseUpgrades = false;
  await eventually(() => watch.state() === 'live', 'a socket that stays');
  const polls = watch.sources.filter((source) => source === 'poll').length;
  await pause(2500);
  assert.equal(watch.sources.filter((source) => source === 'poll').length, polls, 'no more polls');
});

// What a close code asks for: how many connections are made in a while.
const CODES = [
  { codes: [4400, 4403, 4406, 4409, 4429, 1002, 1009], connections: 'one' },
  { codes: [1000, 1001, 1011, 1012, 1013, 4408, 4500], connections: 'several' },
  { codes: [4401], connections: 'one' },
];
for (const { codes, connections } of CODES) {
  for (const code of codes) {
    test(`close code ${code}: ${connections}, with growing delays`, async () => {
      /** @type {number[]} */
      const at = [];
      const stub = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'graphql-transport-ws' });
      cleanups.push(() => stub.close());
      await once(stub, 'listening');
      stub.on('connection', (socket) => {
        at.push(performance.now());
        socket.close(code, 'as the test wants');
      });
      const { port } = /** @type {import('node:net').AddressInfo} */ (stub.address());
      const client = clientOf('a token', {
        url: `http://127.0.0.1:${port}/graphql`, random: () => 1, timing: { baseDelayMs: 20, pollAfterFailures: 100 },
      });
      const watch = follow(client, '1');
      if (connections === 'several') {
        await eventually(() => at.length >= 5, 'it comes back');
        const delays = at.slice(1).map((time, i) => time - (at[i] ?? 0));
        const [first = 0, , , fourth = 0] = delays;
        assert.ok(fourth >= 20 * 2 ** 3 && fourth > first, `delays grow: ${delays}`);
        const crowd = [1001, 1012, 1013].includes(code);
        assert.ok(first >= (crowd ? 60 : 20), `${first} ms`);
      } else {
        await eventually(() => watch.state() === 'failed', 'the end');
        await pause(200);
        assert.equal(at.length, 1);
      }
    });
  }
}

test('who polls sees the effect of what they did at once', async () => {
  const proxy = await proxyOf();
  proxy.faults.refuseUpgrades = true;
  const id = await server.lecture({ title: 'At once', capacity: 1, settings: { paused: true } });
  const client = clientOf((await server.guest('Impatient')).token, { url: `${proxy.url}/graphql`, timing: { baseDelayMs: 20 } });
  const watch = follow(client, id);
  await eventually(() => watch.state() === 'polling', 'polling');
  assert.ok((watch.latest()?.pollAfterMs ?? 0) > 10_000, 'the next poll is a long way off');
  await client.mutate(JOIN, { id });
  await eventually(() => watch.latest()?.status === 'WAITING', 'in line', 5000);
});

test('a closed client asks for nothing any more', async () => {
  const proxy = await proxyOf();
  proxy.faults.refuseUpgrades = true;
  const client = clientOf((await server.guest('Gone')).token, { url: `${proxy.url}/graphql`, timing: { baseDelayMs: 20, maxDelayMs: 100 } });
  const watch = follow(client, '1');
  await eventually(() => watch.state() === 'polling', 'polling');
  client.close();
  const { requests, upgrades } = proxy.faults;
  const { length } = watch.statuses;
  await pause(2000);
  assert.deepEqual([proxy.faults.requests, proxy.faults.upgrades, watch.statuses.length], [requests, upgrades, length]);
});

test('delays differ between clients', async () => {
  /** @type {Set<number>} */
  const delays = new Set();
  for (let i = 0; i < 5; i++) {
    const client = clientOf('x', { url: 'http://127.0.0.1:1/graphql', timing: { baseDelayMs: 1000 } });
    const watch = follow(client, '1');
    const status = await eventually(() => watch.statuses.find(({ state }) => state === 'retrying'), 'a first retry');
    const { retryInMs = 0 } = status;
    assert.ok(retryInMs >= 300 && retryInMs <= 1000, `${retryInMs}`);
    delays.add(retryInMs);
  }
  assert.equal(delays.size, 5);
});

test('the server’s time does not follow this device’s clock', async (t) => {
  const client = clientOf((await server.guest('Clock')).token);
  await client.query('query { queuePosition(lectureId: "1") { serverTime } }');
  const truth = Date.now();
  const before = client.serverNow();
  assert.ok(Math.abs(before - truth) < 1000, 'right at first');
  t.mock.timers.enable({ apis: ['Date'], now: truth + 3_600_000 });
  assert.ok(Math.abs(client.serverNow() - truth) < 1000, 'and right when the clock has been moved');
});
