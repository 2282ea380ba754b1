// The one place for what the app knows. Nothing else keeps state that a view shows.

import { kept } from './storage.js';

/**
 * @typedef {import('../sdk.js').QueuePosition} QueuePosition
 * @typedef {import('../sdk.js').WatchStatus} WatchStatus
 * @typedef {import('../sdk.js').Lecture} Lecture
 * @typedef {import('../sdk.js').Receipt} Receipt
 * @typedef {import('../sdk.js').SeatlineError} SeatlineError
 *
 * @typedef {object} Viewer
 * @property {string} userKey
 * @property {string} name
 * @property {boolean} operator
 *
 * @typedef {object} Settings
 * @property {boolean} paused
 * @property {number} admitPerSecond
 * @property {number} burst
 * @property {number} ticketTtlSeconds
 * @property {number} overbookPercent
 * @property {string | null} message
 *
 * @typedef {Lecture & { settings: Settings }} RunLecture A lecture as its operator sees it.
 *
 * @typedef {object} LineStats
 * @property {import('../sdk.js').LineState} lineState
 * @property {number} waiting
 * @property {number} parked
 * @property {number} held
 * @property {number} inFlight
 * @property {number} seatsLeft
 * @property {number} enrolledCount
 * @property {number} capacity
 * @property {number} admitPerSecond
 * @property {number} admittedPerMinute
 * @property {number | null} claimRate
 * @property {string} serverTime
 * @property {RunLecture} [lecture] With the latest alone.
 *
 * @typedef {object} Route
 * @property {'lectures' | 'lecture' | 'receipts' | 'signin' | 'operate' | 'create' | 'board' | 'missing'} page
 * @property {string} [id]
 * @property {URLSearchParams} query
 *
 * @typedef {'join' | 'enroll' | 'leave' | 'cancel'} Action
 * @typedef {{ tone: 'good' | 'plain' | 'bad', key: import('./texts.js').NoticeKey, error?: SeatlineError }} Notice
 *
 * @typedef {object} Held A place at a lecture that the page is not about.
 * @property {string} title
 * @property {QueuePosition | null} position null until it is read.
 * @property {WatchStatus} link
 * @property {number} readAt
 *
 * @typedef {object} List What a page of a connection has become.
 * @property {boolean} loading
 * @property {any[]} nodes
 * @property {string | null} after
 * @property {number} total
 * @property {SeatlineError | null} error
 *
 * @typedef {object} State
 * @property {'en' | 'ko'} lang
 * @property {Route} route
 * @property {Viewer | null | undefined} viewer undefined until it is known.
 * @property {'guest' | 'account' | null} ended Whose session the server has ended, until somebody signs in or out.
 * @property {'guest' | 'token'} signIn How one signs in here, as far as it is known.
 * @property {boolean} guests Whether a name may be enough here.
 * @property {boolean} signingIn
 * @property {number} now The server's time, once a second.
 * @property {string} search
 * @property {List} lectures
 * @property {List} receipts
 * @property {Record<string, Held>} elsewhere Places at other lectures, by their ids.
 * @property {string} lectureId The lecture that the page is about; the rest of the place belongs to it.
 * @property {Lecture | null | undefined} lecture null when there is none, undefined until known.
 * @property {SeatlineError | null} lectureError
 * @property {WatchStatus} link
 * @property {QueuePosition | null} position The last one that was read.
 * @property {number} readAt When it was, by the server's clock.
 * @property {number | null} first The place one began at.
 * @property {Action | null} busy
 * @property {number} retries How often the running action has been tried again.
 * @property {Notice | null} notice
 * @property {boolean} sound
 * @property {RunLecture | null} run
 * @property {LineStats[]} stats The last ten minutes, one a tick.
 * @property {WatchStatus['state']} statsLink
 * @property {List} roster
 * @property {SeatlineError | null} formError
 * @property {Record<string, string>} edited The fields that are being changed, and what was in each before.
 * @property {'saved' | 'noChanges' | null} formSaid What came of the form.
 */

/** @returns {List} */
export const emptyList = () => ({ loading: true, nodes: [], after: null, total: 0, error: null });

/** @type {WatchStatus} */
export const connecting = { state: 'connecting', attempt: 0 };

/** What a page about another lecture begins with. */
export const noPlace = () => ({
  lecture: undefined,
  lectureError: null,
  link: connecting,
  position: null,
  readAt: 0,
  first: null,
  busy: null,
  retries: 0,
  notice: null,
});

/** @type {State} */
export const state = {
  lang: 'en',
  route: { page: 'lectures', query: new URLSearchParams() },
  viewer: undefined,
  ended: null,
  signIn: 'guest',
  guests: true,
  signingIn: false,
  now: Date.now(),
  search: '',
  lectures: emptyList(),
  receipts: emptyList(),
  elsewhere: {},
  lectureId: '',
  ...noPlace(),
  sound: kept.get('seatline.sound') !== 'off',
  run: null,
  stats: [],
  statsLink: 'connecting',
  roster: emptyList(),
  formError: null,
  edited: {},
  formSaid: null,
};

/** @type {Set<(before: State) => void>} */
const listeners = new Set();

/**
 * Changes the state and tells those who listen, at once: a hidden tab gets no
 * animation frames, and its title must change all the same.
 *
 * @param {Partial<State>} change
 */
export function set(change) {
  const before = { ...state };
  Object.assign(state, change);
  for (const listener of listeners) listener(before);
}

/** @param {(before: State) => void} listener */
export function onChange(listener) {
  listeners.add(listener);
}
