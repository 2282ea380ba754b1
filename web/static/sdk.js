// Seatline's browser SDK: GraphQL over HTTP, subscriptions over
// graphql-transport-ws, and watchPosition, which keeps a place in line up to date
// through everything that happens to a phone. One module without dependencies; its
// types are in sdk.d.ts, its manual is /sdk.html.

/** The fields that {@link Client.watchPosition} asks for: all that a page about a place needs. */
export const POSITION_FIELDS = `status lineState position approximate total estimatedWaitSeconds seatChance message
ticketExpiresAt placeToken reason pollAfterMs serverTime
lecture { id title capacity enrolledCount seatsLeft lineState waiting opensAt closesAt }
receipt { id number enrolledAt cancelledAt userKey lecture { id title } }`;

/**
 * What went wrong, by a code from a closed set. From the server: `UNAUTHENTICATED`,
 * `FORBIDDEN`, `NOT_FOUND`, `BAD_USER_INPUT`, `NOT_ENABLED`, `RATE_LIMITED`,
 * `UNAVAILABLE`, `INTERNAL`. From here: `NETWORK` (no answer), `TIMEOUT` (none in
 * time), `ABORTED` (by your signal), `PROTOCOL` (the socket was closed for good).
 */
export class SeatlineError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ retryAfterMs?: number, requestId?: string, field?: string, closeCode?: number, cause?: unknown }} [more]
   */
  constructor(code, message, more = {}) {
    super(message, { cause: more.cause });
    this.name = 'SeatlineError';
    this.code = code;
    /** When to ask again, where the server said so. @type {number | undefined} */
    this.retryAfterMs = more.retryAfterMs;
    /** What to quote to whoever runs the server. @type {string | undefined} */
    this.requestId = more.requestId;
    /** Which field of the input is wrong, with `BAD_USER_INPUT`: `title`, `settings.burst`. @type {string | undefined} */
    this.field = more.field;
    /** The close code of the socket, with `PROTOCOL`. @type {number | undefined} */
    this.closeCode = more.closeCode;
  }

  /** Whether asking again later may help. */
  get temporary() {
    return TEMPORARY.has(this.code);
  }
}

const TEMPORARY = new Set(['NETWORK', 'TIMEOUT', 'UNAVAILABLE', 'RATE_LIMITED']);

// Closed for a reason that the same client would meet again.
const FATAL = new Set([1002, 1003, 1007, 1009, 4400, 4403, 4406, 4409, 4429]);

// Closed for everybody at once: all of them come back, so they spread wider.
const RESTART = new Set([1001, 1012, 1013]);

/** @type {Timing} */
const TIMING = {
  baseDelayMs: 1000,
  maxDelayMs: 30_000,
  requestTimeoutMs: 15_000,
  connectTimeoutMs: 10_000,
  silenceMs: 15_000,
  probeMs: 5000,
  lingerMs: 1000,
  pollAfterFailures: 3,
  pollAfterSilenceMs: 8000,
};

/**
 * Creates a client. It opens no socket before the first subscription.
 *
 * @param {ClientOptions} [options]
 * @returns {Client}
 */
export function createClient(options = {}) {
  const page = typeof location === 'undefined' ? undefined : location.href;
  /** @type {Context} */
  const context = {
    url: new URL(options.url ?? '/graphql', page),
    token: async (refused) => (typeof options.token === 'function' ? await options.token({ refused }) : options.token) ?? null,
    refreshable: typeof options.token === 'function',
    fetch: options.fetch ?? ((...args) => fetch(...args)),
    WebSocket: options.WebSocket ?? globalThis.WebSocket,
    random: options.random ?? Math.random,
    timing: { ...TIMING, ...options.timing },
    clock: createClock(),
  };
  const request = createRequest(context);
  const socket = createSocket(context);

  /** @type {Client['query']} */
  const query = (document, variables, more) => request(document, variables, { retries: 2, ...more });
  /** @type {Client['mutate']} */
  async function mutate(document, variables, more) {
    const data = await request(document, variables, { retries: 0, ...more });
    for (const { again } of watches) again();
    return data;
  }

  /** @type {Set<{ stop: () => void, again: () => void }>} */
  const watches = new Set();

  return {
    query,
    mutate,
    subscribe: (document, variables, sink) => socket.subscribe(document, variables, sink),
    watchPosition(lectureId, onPosition, more) {
      const running = watch(context, socket, query, lectureId, onPosition, more);
      watches.add(running);
      return () => {
        watches.delete(running);
        running.stop();
      };
    },
    serverNow: () => context.clock.now(),
    reset: () => socket.reset(),
    close() {
      for (const { stop } of watches) stop();
      watches.clear();
      socket.close();
    },
  };
}

/**
 * The server's clock, by the clock of this device that nobody can set: it counts
 * on when the visitor changes the date.
 *
 * @returns {Clock}
 */
function createClock() {
  /** @type {number[]} */
  let precise = [];
  /** @type {number | undefined} */
  let coarse;
  return {
    // An answer is late and never early, so the largest of the last few
    // differences is the nearest to the truth.
    observe(time) {
      const at = typeof time === 'string' ? Date.parse(time) : NaN;
      if (Number.isFinite(at)) precise = [...precise.slice(-7), at - performance.now()];
    },
    // A header has whole seconds; half of one is what is lost on average.
    observeHeader(date) {
      const at = Date.parse(date ?? '');
      if (Number.isFinite(at)) coarse = at + 500 - performance.now();
    },
    now() {
      if (precise.length > 0) return performance.now() + Math.max(...precise);
      return coarse === undefined ? Date.now() : performance.now() + coarse;
    },
  };
}

/**
 * A delay that grows with each attempt and is never the same for two clients.
 *
 * @param {Context} context
 * @param {number} attempt 0 for the first
 * @param {boolean} [crowd] whether everybody else begins at the same instant
 */
function delayOf({ timing, random }, attempt, crowd = false) {
  const top = Math.min(timing.maxDelayMs, timing.baseDelayMs * (crowd ? 3 : 1) * 2 ** attempt);
  return top * (crowd ? 0.1 + 0.9 * random() : 0.3 + 0.7 * random());
}

/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new SeatlineError('ABORTED', 'aborted'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/**
 * @param {GraphQLFailure[]} errors
 * @param {string | null} [requestId]
 */
function errorOf(errors, requestId) {
  const first = errors[0] ?? { message: 'no data' };
  const { code = 'INTERNAL', retryAfterMs, requestId: id, field } = first.extensions ?? {};
  return new SeatlineError(code, first.message, { retryAfterMs, requestId: id ?? requestId ?? undefined, field });
}

/**
 * GraphQL over HTTP.
 *
 * @param {Context} context
 * @returns {(document: string, variables?: Variables, options?: RequestOptions) => Promise<any>}
 */
function createRequest(context) {
  /**
   * @param {string} body
   * @param {string | null} token
   * @param {RequestOptions} options
   */
  async function send(body, token, { signal, timeoutMs = context.timing.requestTimeoutMs }) {
    const abort = new AbortController();
    const forward = () => abort.abort();
    signal?.addEventListener('abort', forward, { once: true });
    const timer = setTimeout(forward, timeoutMs);
    try {
      if (signal?.aborted) forward();
      const response = await context.fetch(context.url.href, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/graphql-response+json, application/json',
          ...(token && { Authorization: `Bearer ${token}` }),
        },
        body,
        signal: abort.signal,
      });
      context.clock.observeHeader(response.headers.get('Date'));
      return { response, text: await response.text() };
    } catch (cause) {
      if (signal?.aborted) throw new SeatlineError('ABORTED', 'aborted', { cause });
      if (abort.signal.aborted) throw new SeatlineError('TIMEOUT', 'no answer in time', { cause });
      throw new SeatlineError('NETWORK', 'no answer', { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
    }
  }

  /**
   * @param {string} body
   * @param {string | null} token
   * @param {RequestOptions} options
   */
  async function ask(body, token, options) {
    const { response, text } = await send(body, token, options);
    /** @type {{ data?: any, errors?: GraphQLFailure[] }} */
    let reply;
    try {
      reply = JSON.parse(text);
    } catch (cause) {
      // Not from Seatline, but from something on the way to it.
      const retryAfterMs = 1000 * Number(response.headers.get('Retry-After')) || undefined;
      const code = response.status === 429 ? 'RATE_LIMITED' : response.ok ? 'PROTOCOL' : 'UNAVAILABLE';
      throw new SeatlineError(code, `answer with status ${response.status}`, { retryAfterMs, cause });
    }
    if (reply.errors?.length) throw errorOf(reply.errors, response.headers.get('X-Request-Id'));
    if (!reply.data) throw new SeatlineError('PROTOCOL', 'the answer is no GraphQL');
    for (const value of Object.values(reply.data)) context.clock.observe(value?.serverTime ?? value?.position?.serverTime);
    return reply.data;
  }

  return async (document, variables = {}, options = {}) => {
    const body = JSON.stringify({ query: document, variables });
    let token = await context.token();
    let refreshed = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await ask(body, token, options);
      } catch (error) {
        if (!(error instanceof SeatlineError)) throw error;
        if (error.code === 'UNAUTHENTICATED' && token && context.refreshable && !refreshed) {
          refreshed = true;
          const fresh = await context.token(token);
          if (!fresh || fresh === token) throw error;
          token = fresh;
          attempt--;
          continue;
        }
        if (!error.temporary || attempt >= (options.retries ?? 0)) throw error;
        options.onRetry?.(error, attempt + 1);
        await pause(Math.max(error.retryAfterMs ?? 0, delayOf(context, attempt)), options.signal);
      }
    }
  };
}

/**
 * One socket for all subscriptions, open while there are any.
 *
 * @param {Context} context
 * @returns {Socket}
 */
function createSocket(context) {
  const { timing } = context;
  const url = new URL(context.url);
  url.protocol = url.protocol.replace('http', 'ws');

  /** @type {Map<string, Operation>} */
  const operations = new Map();
  /** @type {WebSocket | undefined} */
  let ws;
  /** @type {Link} */
  let link = { state: 'idle', attempt: 0 };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer; // the one thing that is waited for: an acknowledgement, a retry, or the end
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let watchdog;
  let attempt = 0;
  let run = 0; // what began in an earlier run is ignored when it ends
  let lastId = 0;
  let heardAt = 0;
  let heardOn = 0; // by the clock that goes on while a device sleeps
  let probedAt = 0;
  /** @type {string | null} */
  let token = null;
  let renewed = false;
  let closed = false;

  /** @param {Link} next */
  function become(next) {
    link = next;
    for (const operation of operations.values()) operation.sink.link?.(next);
  }

  /** @param {unknown} message */
  const send = (message) => ws?.send(JSON.stringify(message));

  /** @param {string} id @param {Operation} operation */
  function start(id, operation) {
    const { document, variables } = operation;
    send({ id, type: 'subscribe', payload: { query: document, variables } });
  }

  /** @param {string} [refused] */
  async function open(refused) {
    if (closed || operations.size === 0) return;
    clearTimeout(timer);
    if (typeof navigator !== 'undefined' && navigator.onLine === false) {
      become({ state: 'offline', attempt });
      return;
    }
    const mine = ++run;
    become({ state: 'connecting', attempt });
    try {
      token = await context.token(refused);
    } catch {
      if (mine === run) dropped(1006, '');
      return;
    }
    if (mine !== run) return;
    if (refused && (!token || token === refused)) {
      fail(new SeatlineError('UNAUTHENTICATED', 'sign in first'));
      return;
    }
    connect(mine);
  }

  /** @param {number} mine */
  function connect(mine) {
    const socket = new context.WebSocket(url.href, 'graphql-transport-ws');
    ws = socket;
    hear();
    timer = setTimeout(abandon, timing.connectTimeoutMs);
    socket.onopen = () => {
      if (mine === run) send({ type: 'connection_init', payload: token ? { Authorization: `Bearer ${token}` } : {} });
    };
    socket.onmessage = ({ data }) => {
      if (mine !== run) return;
      hear();
      received(JSON.parse(data));
    };
    socket.onclose = ({ code, reason }) => {
      if (mine === run) dropped(code, reason);
    };
    socket.onerror = () => {}; // A close follows, and says more.
  }

  /** @param {{ type: string, id?: string, payload?: any }} message */
  function received(message) {
    const id = message.id ?? '';
    const operation = operations.get(id);
    switch (message.type) {
      case 'connection_ack':
        clearTimeout(timer);
        clearInterval(watchdog);
        watchdog = setInterval(watch, Math.min(timing.silenceMs, timing.probeMs) / 4);
        become({ state: 'open', attempt });
        for (const [id, operation] of operations) start(id, operation);
        break;
      case 'ping':
        send({ type: 'pong' });
        break;
      case 'next':
        attempt = 0; // Only a socket that has delivered something was a good one.
        renewed = false;
        operation?.sink.next(message.payload);
        break;
      case 'error':
        operations.delete(id);
        operation?.sink.error(errorOf(message.payload));
        idle();
        break;
      case 'complete':
        operations.delete(id);
        operation?.sink.complete();
        idle();
        break;
    }
  }

  function hear() {
    heardAt = performance.now();
    heardOn = Date.now();
    probedAt = 0;
  }

  const silence = () => Math.max(performance.now() - heardAt, Date.now() - heardOn);

  /** A socket can be dead without anybody having closed it. */
  function watch() {
    if (probedAt && performance.now() - probedAt > timing.probeMs) abandon();
    else if (silence() > timing.silenceMs) probe();
  }

  function probe() {
    if (link.state !== 'open' || probedAt) return;
    probedAt = performance.now();
    send({ type: 'ping' });
  }

  function detach() {
    run++;
    clearTimeout(timer);
    clearInterval(watchdog);
    const socket = ws;
    ws = undefined;
    probedAt = 0;
    return socket;
  }

  function abandon() {
    detach()?.close();
    dropped(1006, '');
  }

  /** @param {number} code @param {string} reason */
  function dropped(code, reason) {
    detach();
    if (operations.size === 0) {
      become({ state: 'idle', attempt });
    } else if (code === 4401) {
      if (context.refreshable && token && !renewed) {
        renewed = true;
        open(token);
      } else {
        fail(new SeatlineError('UNAUTHENTICATED', 'sign in first'));
      }
    } else if (FATAL.has(code)) {
      fail(new SeatlineError(code === 4403 ? 'FORBIDDEN' : 'PROTOCOL', reason || `closed with ${code}`, { closeCode: code }));
    } else {
      const retryInMs = delayOf(context, attempt, RESTART.has(code));
      attempt++;
      timer = setTimeout(open, retryInMs);
      become({ state: 'retrying', attempt, retryInMs, closeCode: code });
    }
  }

  /** @param {SeatlineError} error */
  function fail(error) {
    const all = [...operations.values()];
    operations.clear();
    link = { state: 'idle', attempt: 0 };
    for (const { sink } of all) sink.error(error);
  }

  /** The next page may subscribe at once, so the socket outlives the last subscription a little. */
  function idle() {
    if (operations.size > 0) return;
    if (link.state !== 'open') {
      detach()?.close();
      link = { state: 'idle', attempt };
      return;
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (operations.size > 0) return;
      detach()?.close(1000);
      link = { state: 'idle', attempt: 0 };
    }, timing.lingerMs);
  }

  function wake() {
    if (link.state === 'open') {
      // Slept through the signs of life that the server sends, one in 25 s: nobody keeps such a socket.
      if (silence() > 2 * timing.silenceMs) abandon();
      else probe();
    } else if (link.state === 'retrying' || link.state === 'offline') {
      clearTimeout(timer);
      timer = setTimeout(open, 300 * context.random());
    }
  }

  const onVisible = () => document.visibilityState === 'visible' && wake();
  const onOffline = () => {
    if (link.state === 'idle') return;
    detach()?.close();
    become({ state: 'offline', attempt });
  };
  const inPage = typeof document !== 'undefined';
  if (inPage) {
    document.addEventListener('visibilitychange', onVisible);
    addEventListener('pageshow', onVisible);
    addEventListener('online', wake);
    addEventListener('offline', onOffline);
  }

  return {
    subscribe(document, variables, sink) {
      if (closed) throw new SeatlineError('PROTOCOL', 'the client is closed');
      const id = String(++lastId);
      const operation = { document, variables, sink };
      operations.set(id, operation);
      if (link.state === 'idle') {
        open();
      } else {
        sink.link?.(link);
      }
      if (link.state === 'open') {
        clearTimeout(timer);
        start(id, operation);
      }
      return () => {
        if (!operations.delete(id)) return;
        if (link.state === 'open') send({ id, type: 'complete' });
        idle();
      };
    },
    reset() {
      if (link.state === 'idle') return;
      detach()?.close(1000);
      link = { state: 'idle', attempt: 0 };
      attempt = 0;
      open();
    },
    close() {
      closed = true;
      operations.clear();
      detach()?.close(1000);
      link = { state: 'idle', attempt: 0 };
      if (!inPage) return;
      document.removeEventListener('visibilitychange', onVisible);
      removeEventListener('pageshow', onVisible);
      removeEventListener('online', wake);
      removeEventListener('offline', onOffline);
    },
  };
}

/**
 * A place in line: by subscription, and by polling while no socket will stay.
 *
 * @param {Context} context
 * @param {Socket} socket
 * @param {Client['query']} query
 * @param {string} lectureId
 * @param {(position: QueuePosition, info: PositionInfo) => void} onPosition
 * @param {WatchOptions} [options]
 */
function watch(context, socket, query, lectureId, onPosition, options = {}) {
  const { timing } = context;
  const selection = `queuePosition(lectureId: $lectureId) { ${options.fields ?? POSITION_FIELDS} }`;
  const variables = { lectureId };
  const abort = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let silence;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  let unsubscribe = () => {};
  let polling = false;
  let failures = 0;
  let heard = 0;
  let round = 0;

  /** @param {WatchStatus} status */
  const report = (status) => !abort.signal.aborted && options.onStatus?.(status);

  function stop() {
    abort.abort();
    stopPolling();
    unsubscribe();
  }

  /** @param {WatchStatus} status */
  function end(status) {
    report(status);
    stop();
  }

  /** @param {SeatlineError} error */
  function failed(error) {
    if (abort.signal.aborted) return;
    if (error.temporary || error.code === 'INTERNAL') {
      const retryInMs = Math.max(error.retryAfterMs ?? 0, delayOf(context, failures++));
      report({ state: 'retrying', attempt: failures, retryInMs });
      again = setTimeout(subscribe, retryInMs);
      return;
    }
    end({ state: 'failed', attempt: 0, error });
  }

  /** @param {{ data?: any, errors?: GraphQLFailure[] }} result */
  function next({ data, errors }) {
    if (abort.signal.aborted) return;
    if (!data) {
      unsubscribe();
      failed(errorOf(errors ?? []));
      return;
    }
    stopPolling();
    failures = 0;
    heard++;
    context.clock.observe(data.queuePosition.serverTime);
    report({ state: 'live', attempt: 0 });
    onPosition(data.queuePosition, { source: 'socket' });
  }

  /** @param {Link} link */
  function linkChanged(link) {
    if (link.state === 'open' || link.state === 'idle' || abort.signal.aborted) return;
    if (!polling) report({ ...link, state: link.state });
    if (link.state === 'offline') {
      stopPolling();
      report({ state: 'offline', attempt: link.attempt });
    } else if (link.attempt >= timing.pollAfterFailures) {
      startPolling();
    } else {
      silence ??= setTimeout(startPolling, timing.pollAfterSilenceMs);
    }
  }

  function startPolling() {
    if (polling || abort.signal.aborted) return;
    polling = true;
    poll(0);
  }

  function stopPolling() {
    polling = false;
    clearTimeout(silence);
    clearTimeout(again);
    silence = undefined;
  }

  /** @param {number} missed */
  async function poll(missed) {
    const before = heard;
    const mine = ++round;
    const late = () => !polling || heard !== before || round !== mine;
    clearTimeout(again);
    try {
      const { queuePosition } = await query(`query ($lectureId: ID!) { ${selection} }`, variables, { retries: 0, signal: abort.signal });
      if (late()) return;
      report({ state: 'polling', attempt: 0 });
      onPosition(queuePosition, { source: 'poll' });
      if (queuePosition.status === 'ENROLLED' || queuePosition.lineState === 'CLOSED') end({ state: 'ended', attempt: 0 });
      else again = setTimeout(poll, queuePosition.pollAfterMs * (0.9 + 0.2 * context.random()), 0);
    } catch (error) {
      if (late() || !(error instanceof SeatlineError)) return;
      if (!error.temporary && error.code !== 'INTERNAL') {
        end({ state: 'failed', attempt: 0, error });
        return;
      }
      const retryInMs = Math.max(error.retryAfterMs ?? 0, delayOf(context, missed));
      report({ state: 'retrying', attempt: missed + 1, retryInMs });
      again = setTimeout(poll, retryInMs, missed + 1);
    }
  }

  function subscribe() {
    unsubscribe = socket.subscribe(`subscription ($lectureId: ID!) { ${selection} }`, variables, {
      next,
      error: failed,
      complete: () => end({ state: 'ended', attempt: 0 }),
      link: linkChanged,
    });
  }

  subscribe();
  return {
    stop,
    /** Something was changed from here: the next poll may be a long way off. */
    again() {
      if (polling) poll(0);
    },
  };
}

/**
 * @typedef {Record<string, unknown>} Variables
 *
 * @typedef {object} ClientOptions
 * @property {string} [url] The endpoint; `/graphql` of the page's origin when absent.
 * @property {string | null | TokenSource} [token] Who is asking, or a function that says so.
 * @property {typeof globalThis.fetch} [fetch] For hosts without one, and for tests.
 * @property {new (url: string, protocol: string) => WebSocket} [WebSocket] For hosts without one.
 * @property {() => number} [random] 0 to 1, for jitter.
 * @property {Partial<Timing>} [timing]
 *
 * @callback TokenSource
 * Gives the token to use, or null when signed out. It is asked before each request and
 * connection; after the server refused a token, once more with that token as `refused`:
 * then return a fresh one, or the same or null to give up.
 * @param {{ refused?: string }} request
 * @returns {string | null | undefined | Promise<string | null | undefined>}
 *
 * @typedef {object} Timing
 * @property {number} baseDelayMs The longest first delay before a retry; it doubles with each.
 * @property {number} maxDelayMs The longest delay of all.
 * @property {number} requestTimeoutMs How long an answer over HTTP may take.
 * @property {number} connectTimeoutMs How long a socket may take to be acknowledged.
 * @property {number} silenceMs How long a socket may be silent before it is asked for a sign of life.
 * @property {number} probeMs How long it may take to give one.
 * @property {number} lingerMs How long a socket without subscriptions is kept.
 * @property {number} pollAfterFailures Failures in a row after which a place is polled for.
 * @property {number} pollAfterSilenceMs How long without a live socket before it is, too.
 *
 * @typedef {object} RequestOptions
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {number} [retries] How often to ask again after a temporary error: 2 for a query, 0 for a mutation. joinQueue, leaveQueue, enroll and cancelEnrollment are safe to repeat.
 * @property {(error: SeatlineError, attempt: number) => void} [onRetry]
 *
 * @typedef {object} Sink
 * @property {(result: { data?: any, errors?: GraphQLFailure[] }) => void} next
 * @property {(error: SeatlineError) => void} error The end: refused, or the socket closed for good.
 * @property {() => void} complete The end: the server has nothing more to say.
 * @property {(link: Link) => void} [link] How the socket is.
 *
 * @typedef {object} Link
 * @property {'idle' | 'connecting' | 'open' | 'retrying' | 'offline'} state
 * @property {number} attempt Failures in a row.
 * @property {number} [retryInMs] With `retrying`.
 * @property {number} [closeCode] With `retrying`.
 *
 * @typedef {object} WatchOptions
 * @property {(status: WatchStatus) => void} [onStatus]
 * @property {string} [fields] What to ask for instead of POSITION_FIELDS; keep `status`, `lineState`, `pollAfterMs` and `serverTime`.
 *
 * @typedef {object} WatchStatus
 * @property {'connecting' | 'live' | 'polling' | 'retrying' | 'offline' | 'ended' | 'failed'} state
 * `live` and `polling`: the last position is true now. `connecting`, `retrying`, `offline`: it may be old, say so.
 * `ended`: enrolled, or the line has closed. `failed`: for the reason in `error`.
 * @property {number} attempt
 * @property {number} [retryInMs]
 * @property {number} [closeCode]
 * @property {SeatlineError} [error]
 *
 * @typedef {object} PositionInfo
 * @property {'socket' | 'poll'} source
 *
 * @typedef {object} Client
 * @property {(document: string, variables?: Variables, options?: RequestOptions) => Promise<any>} query Resolves to `data`; rejects with a SeatlineError.
 * @property {(document: string, variables?: Variables, options?: RequestOptions) => Promise<any>} mutate The same without retries, unless asked for.
 * @property {(document: string, variables: Variables, sink: Sink) => () => void} subscribe Any subscription, kept alive over reconnections. Returns a function that stops it.
 * @property {(lectureId: string, onPosition: (position: QueuePosition, info: PositionInfo) => void, options?: WatchOptions) => () => void} watchPosition The viewer's place, kept up to date until it is over. Returns a function that stops it.
 * @property {() => number} serverNow The server's time, in ms since 1970, whatever this device's clock says.
 * @property {() => void} reset Connects anew: call it when somebody else has signed in.
 * @property {() => void} close Ends everything.
 *
 * @typedef {'NOT_QUEUED' | 'WAITING' | 'ADMITTED' | 'ENROLLED' | 'EXPIRED'} QueueStatus
 * @typedef {'UPCOMING' | 'OPEN' | 'PAUSED' | 'ALL_HELD' | 'SOLD_OUT' | 'CLOSED'} LineState
 * @typedef {'TICKET_EXPIRED' | 'AWAY' | 'LINE_LOST'} PlaceReason
 * @typedef {'ENROLLED' | 'ALREADY_ENROLLED' | 'NOT_ADMITTED' | 'TICKET_EXPIRED' | 'SOLD_OUT' | 'CLOSED'} EnrollStatus
 *
 * @typedef {object} Lecture
 * @property {string} id
 * @property {string} title
 * @property {string} [description]
 * @property {number} capacity
 * @property {number} enrolledCount
 * @property {number} seatsLeft
 * @property {LineState} lineState
 * @property {number} waiting
 * @property {string | null} opensAt
 * @property {string | null} closesAt
 *
 * @typedef {object} Receipt
 * @property {string} id
 * @property {number} number
 * @property {{ id: string, title: string }} lecture
 * @property {string} userKey
 * @property {string} enrolledAt
 * @property {string | null} cancelledAt
 *
 * @typedef {object} QueuePosition
 * @property {Lecture} lecture
 * @property {QueueStatus} status
 * @property {LineState} lineState
 * @property {number | null} position 1 = next; only while WAITING.
 * @property {boolean} approximate
 * @property {number} total
 * @property {number | null} estimatedWaitSeconds null = not known.
 * @property {number | null} seatChance 0 to 1; null = not known.
 * @property {string | null} message The operator's word to everyone who waits.
 * @property {string | null} ticketExpiresAt Only while ADMITTED. Count down against `client.serverNow()`.
 * @property {string | null} placeToken Keep it, and give it to joinQueue when the reason is LINE_LOST.
 * @property {Receipt | null} receipt Only when ENROLLED.
 * @property {PlaceReason | null} reason
 * @property {number} pollAfterMs
 * @property {string} serverTime
 *
 * @typedef {object} GraphQLFailure
 * @property {string} message
 * @property {{ code?: string, retryAfterMs?: number, requestId?: string, field?: string }} [extensions]
 *
 * @typedef {object} Clock
 * @property {(time: unknown) => void} observe
 * @property {(date: string | null) => void} observeHeader
 * @property {() => number} now
 *
 * @typedef {object} Context
 * @property {URL} url
 * @property {(refused?: string) => Promise<string | null>} token
 * @property {boolean} refreshable
 * @property {typeof globalThis.fetch} fetch
 * @property {new (url: string, protocol: string) => WebSocket} WebSocket
 * @property {() => number} random
 * @property {Timing} timing
 * @property {Clock} clock
 *
 * @typedef {object} Operation
 * @property {string} document
 * @property {Variables} variables
 * @property {Sink} sink
 *
 * @typedef {object} Socket
 * @property {(document: string, variables: Variables, sink: Sink) => () => void} subscribe
 * @property {() => void} reset
 * @property {() => void} close
 */
