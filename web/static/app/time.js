// Times and numbers, as people of a language write them.

import { state } from './state.js';

/** @typedef {'en' | 'ko'} Lang */

/** The visitor's own way of writing a language, where the browser knows one. @param {Lang} lang */
const locale = (lang) => navigator.languages.find((name) => name.startsWith(lang)) ?? lang;

/** @type {Map<string, Intl.DateTimeFormat | Intl.NumberFormat>} */
const formats = new Map();

/**
 * @template {Intl.DateTimeFormat | Intl.NumberFormat} T
 * @param {string} key
 * @param {() => T} make
 * @returns {T}
 */
function cached(key, make) {
  const found = formats.get(key) ?? make();
  formats.set(key, found);
  return /** @type {T} */ (found);
}

/** @param {number} n @param {Lang} lang */
export const number = (n, lang) => cached(`n${lang}`, () => new Intl.NumberFormat(locale(lang))).format(n);

/** An instant in the visitor's zone, which is named; with the year where it is not this one. @param {string} iso @param {Lang} lang */
export function instant(iso, lang) {
  const date = new Date(iso);
  const year = date.getFullYear() === new Date(state.now).getFullYear() ? undefined : 'numeric';
  return cached(`i${lang}${year}`, () => new Intl.DateTimeFormat(locale(lang), {
    hourCycle: 'h23',
    year, weekday: 'short', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
  })).format(date);
}

/** With the year and seconds, for a receipt. @param {string} iso @param {Lang} lang */
export const fullInstant = (iso, lang) =>
  cached(`f${lang}`, () => new Intl.DateTimeFormat(locale(lang), {
    hourCycle: 'h23',
    year: 'numeric', month: 'long', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short',
  })).format(new Date(iso));

/** @param {number} ms @param {Lang} lang */
export const clock = (ms, lang) =>
  cached(`c${lang}`, () => new Intl.DateTimeFormat(locale(lang), { hourCycle: 'h23', hour: '2-digit', minute: '2-digit', second: '2-digit' })).format(ms);

/** What is left, as 1:02 or 3:04:05; never more than there is. @param {number} ms */
export function countdown(ms) {
  const all = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

/** For `datetime-local`, in the visitor's zone. @param {string | null | undefined} iso */
export function toField(iso) {
  if (!iso) return '';
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** @param {string} field */
export const fromField = (field) => (field ? new Date(field).toISOString() : null);
