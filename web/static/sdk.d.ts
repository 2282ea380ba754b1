/** The fields that {@link Client.watchPosition} asks for: all that a page about a place needs. */
export declare const POSITION_FIELDS = "status lineState position approximate total estimatedWaitSeconds seatChance message\nticketExpiresAt placeToken reason pollAfterMs serverTime\nlecture { id title capacity enrolledCount seatsLeft lineState waiting opensAt closesAt }\nreceipt { id number enrolledAt cancelledAt userKey lecture { id title } }";
/**
 * What went wrong, by a code from a closed set. From the server: `UNAUTHENTICATED`,
 * `FORBIDDEN`, `NOT_FOUND`, `BAD_USER_INPUT`, `NOT_ENABLED`, `RATE_LIMITED`,
 * `UNAVAILABLE`, `INTERNAL`. From here: `NETWORK` (no answer), `TIMEOUT` (none in
 * time), `ABORTED` (by your signal), `PROTOCOL` (the socket was closed for good).
 */
export declare class SeatlineError extends Error {
    code: string;
    /** When to ask again, where the server said so. @type {number | undefined} */
    retryAfterMs: number | undefined;
    /** What to quote to whoever runs the server. @type {string | undefined} */
    requestId: string | undefined;
    /** Which field of the input is wrong, with `BAD_USER_INPUT`: `title`, `settings.burst`. @type {string | undefined} */
    field: string | undefined;
    /** The close code of the socket, with `PROTOCOL`. @type {number | undefined} */
    closeCode: number | undefined;
    /**
     * @param {string} code
     * @param {string} message
     * @param {{ retryAfterMs?: number, requestId?: string, field?: string, closeCode?: number, cause?: unknown }} [more]
     */
    constructor(code: string, message: string, more?: {
        retryAfterMs?: number;
        requestId?: string;
        field?: string;
        closeCode?: number;
        cause?: unknown;
    });
    /** Whether asking again later may help. */
    get temporary(): boolean;
}
/**
 * Creates a client. It opens no socket before the first subscription.
 *
 * @param {ClientOptions} [options]
 * @returns {Client}
 */
export declare function createClient(options?: ClientOptions): Client;
export type Variables = Record<string, unknown>;
export type ClientOptions = {
    /**
     * The endpoint; `/graphql` of the page's origin when absent.
     */
    url?: string;
    /**
     * Who is asking, or a function that says so.
     */
    token?: string | null | TokenSource;
    /**
     * For hosts without one, and for tests.
     */
    fetch?: typeof globalThis.fetch;
    /**
     * For hosts without one.
     */
    WebSocket?: new (url: string, protocol: string) => WebSocket;
    /**
     * 0 to 1, for jitter.
     */
    random?: () => number;
    timing?: Partial<Timing>;
};
export type TokenSource = (request: {
    refused?: string;
}) => string | null | undefined | Promise<string | null | undefined>;
export type Timing = {
    /**
     * The longest first delay before a retry; it doubles with each.
     */
    baseDelayMs: number;
    /**
     * The longest delay of all.
     */
    maxDelayMs: number;
    /**
     * How long an answer over HTTP may take.
     */
    requestTimeoutMs: number;
    /**
     * How long a socket may take to be acknowledged.
     */
    connectTimeoutMs: number;
    /**
     * How long a socket may be silent before it is asked for a sign of life.
     */
    silenceMs: number;
    /**
     * How long it may take to give one.
     */
    probeMs: number;
    /**
     * How long a socket without subscriptions is kept.
     */
    lingerMs: number;
    /**
     * Failures in a row after which a place is polled for.
     */
    pollAfterFailures: number;
    /**
     * How long without a live socket before it is, too.
     */
    pollAfterSilenceMs: number;
};
export type RequestOptions = {
    signal?: AbortSignal;
    timeoutMs?: number;
    /**
     * How often to ask again after a temporary error: 2 for a query, 0 for a mutation. joinQueue, leaveQueue, enroll and cancelEnrollment are safe to repeat.
     */
    retries?: number;
    onRetry?: (error: SeatlineError, attempt: number) => void;
};
export type Sink = {
    next: (result: {
        data?: any;
        errors?: GraphQLFailure[];
    }) => void;
    /**
     * The end: refused, or the socket closed for good.
     */
    error: (error: SeatlineError) => void;
    /**
     * The end: the server has nothing more to say.
     */
    complete: () => void;
    /**
     * How the socket is.
     */
    link?: (link: Link) => void;
};
export type Link = {
    state: 'idle' | 'connecting' | 'open' | 'retrying' | 'offline';
    /**
     * Failures in a row.
     */
    attempt: number;
    /**
     * With `retrying`.
     */
    retryInMs?: number;
    /**
     * With `retrying`.
     */
    closeCode?: number;
};
export type WatchOptions = {
    onStatus?: (status: WatchStatus) => void;
    /**
     * What to ask for instead of POSITION_FIELDS; keep `status`, `lineState`, `pollAfterMs` and `serverTime`.
     */
    fields?: string;
};
export type WatchStatus = {
    /**
     * `live` and `polling`: the last position is true now. `connecting`, `retrying`, `offline`: it may be old, say so.
     * `ended`: enrolled, or the line has closed. `failed`: for the reason in `error`.
     */
    state: 'connecting' | 'live' | 'polling' | 'retrying' | 'offline' | 'ended' | 'failed';
    attempt: number;
    retryInMs?: number;
    closeCode?: number;
    error?: SeatlineError;
};
export type PositionInfo = {
    source: 'socket' | 'poll';
};
export type Client = {
    /**
     * Resolves to `data`; rejects with a SeatlineError.
     */
    query: (document: string, variables?: Variables, options?: RequestOptions) => Promise<any>;
    /**
     * The same without retries, unless asked for.
     */
    mutate: (document: string, variables?: Variables, options?: RequestOptions) => Promise<any>;
    /**
     * Any subscription, kept alive over reconnections. Returns a function that stops it.
     */
    subscribe: (document: string, variables: Variables, sink: Sink) => () => void;
    /**
     * The viewer's place, kept up to date until it is over. Returns a function that stops it.
     */
    watchPosition: (lectureId: string, onPosition: (position: QueuePosition, info: PositionInfo) => void, options?: WatchOptions) => () => void;
    /**
     * The server's time, in ms since 1970, whatever this device's clock says.
     */
    serverNow: () => number;
    /**
     * Connects anew: call it when somebody else has signed in.
     */
    reset: () => void;
    /**
     * Ends everything.
     */
    close: () => void;
};
export type QueueStatus = 'NOT_QUEUED' | 'WAITING' | 'ADMITTED' | 'ENROLLED' | 'EXPIRED';
export type LineState = 'UPCOMING' | 'OPEN' | 'PAUSED' | 'ALL_HELD' | 'SOLD_OUT' | 'CLOSED';
export type PlaceReason = 'TICKET_EXPIRED' | 'AWAY' | 'LINE_LOST';
export type EnrollStatus = 'ENROLLED' | 'ALREADY_ENROLLED' | 'NOT_ADMITTED' | 'TICKET_EXPIRED' | 'SOLD_OUT' | 'CLOSED';
export type Lecture = {
    id: string;
    title: string;
    description?: string;
    capacity: number;
    enrolledCount: number;
    seatsLeft: number;
    lineState: LineState;
    waiting: number;
    opensAt: string | null;
    closesAt: string | null;
};
export type Receipt = {
    id: string;
    number: number;
    lecture: {
        id: string;
        title: string;
    };
    userKey: string;
    enrolledAt: string;
    cancelledAt: string | null;
};
export type QueuePosition = {
    lecture: Lecture;
    status: QueueStatus;
    lineState: LineState;
    /**
     * 1 = next; only while WAITING.
     */
    position: number | null;
    approximate: boolean;
    total: number;
    /**
     * null = not known.
     */
    estimatedWaitSeconds: number | null;
    /**
     * 0 to 1; null = not known.
     */
    seatChance: number | null;
    /**
     * The operator's word to everyone who waits.
     */
    message: string | null;
    /**
     * Only while ADMITTED. Count down against `client.serverNow()`.
     */
    ticketExpiresAt: string | null;
    /**
     * Keep it, and give it to joinQueue when the reason is LINE_LOST.
     */
    placeToken: string | null;
    /**
     * Only when ENROLLED.
     */
    receipt: Receipt | null;
    reason: PlaceReason | null;
    pollAfterMs: number;
    serverTime: string;
};
export type GraphQLFailure = {
    message: string;
    extensions?: {
        code?: string;
        retryAfterMs?: number;
        requestId?: string;
        field?: string;
    };
};
export type Clock = {
    observe: (time: unknown) => void;
    observeHeader: (date: string | null) => void;
    now: () => number;
};
export type Context = {
    url: URL;
    token: (refused?: string) => Promise<string | null>;
    refreshable: boolean;
    fetch: typeof globalThis.fetch;
    WebSocket: new (url: string, protocol: string) => WebSocket;
    random: () => number;
    timing: Timing;
    clock: Clock;
};
export type Operation = {
    document: string;
    variables: Variables;
    sink: Sink;
};
export type Socket = {
    subscribe: (document: string, variables: Variables, sink: Sink) => () => void;
    reset: () => void;
    close: () => void;
};
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
