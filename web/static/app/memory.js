// What a device remembers of places: for one account, as two people may share it.

import { state } from './state.js';
import { kept } from './storage.js';

/** @typedef {import('../sdk.js').QueuePosition} QueuePosition */

/** @param {string} key @returns {{ user?: string, value?: any }} */
function read(key) {
  try {
    return JSON.parse(kept.get(key) ?? '{}') ?? {};
  } catch {
    return {};
  }
}

/** @param {string} key @param {unknown} value */
const write = (key, value) => kept.set(key, JSON.stringify({ user: state.viewer?.userKey, value }));

/** @typedef {'place' | 'first'} Kind The proof of a place, and where it began. */

/** @param {Kind} kind @param {string} lectureId */
const slot = (kind, lectureId) => `seatline.${kind}.${lectureId}`;

/** @param {Kind} kind @param {string} lectureId @returns {any} */
export function recall(kind, lectureId) {
  const { user, value } = read(slot(kind, lectureId));
  return user === state.viewer?.userKey ? value : undefined;
}

/** @param {Kind} kind @param {string} lectureId @param {unknown} value */
export const remember = (kind, lectureId, value) => write(slot(kind, lectureId), value);

/** @param {Kind} kind @param {string} lectureId */
export const drop = (kind, lectureId) => kept.remove(slot(kind, lectureId));

const HELD = 'seatline.held';

/**
 * The lectures at which this device has seen the viewer wait or be admitted, by
 * their ids, with their titles. Before one knows who that is, those of whoever was here last.
 *
 * @returns {Record<string, string>}
 */
export function heldBefore() {
  const { user, value } = read(HELD);
  return state.viewer === undefined || user === state.viewer?.userKey ? value ?? {} : {};
}

/** @param {string} lectureId @param {QueuePosition} position */
export function rememberHeld(lectureId, { status, lecture }) {
  const held = heldBefore();
  const title = status === 'WAITING' || status === 'ADMITTED' ? lecture.title : undefined;
  if (held[lectureId] === title) return;
  const { [lectureId]: _, ...others } = held;
  write(HELD, title === undefined ? others : { ...others, [lectureId]: title });
}

const ROOM = 'seatline.room';

/** @typedef {{ width: number, head: number, place: number }} Room In pixels. */

/** How much room a lecture took when this window was as wide as now. @param {string} lectureId @returns {Room | undefined} */
export function roomBefore(lectureId) {
  const room = read(ROOM).value?.[lectureId];
  return room?.width === innerWidth ? room : undefined;
}

/** @param {string} lectureId @param {Room} room */
export function rememberRoom(lectureId, room) {
  const others = Object.entries(read(ROOM).value ?? {}).filter(([id]) => id !== lectureId);
  write(ROOM, Object.fromEntries([...others.slice(-7), [lectureId, room]]));
}
