// The form of a lecture: to create one, and to change one.

import { ask } from '../dialog.js';
import { h } from '../element.js';
import { problem } from '../lists.js';
import { go } from '../router.js';
import { set, state } from '../state.js';
import { fromField, instant, number, toField } from '../time.js';
import { errorText, icon, ICONS, t } from '../views/parts.js';
import { createLecture, showFormError, updateLecture } from './actions.js';

/**
 * @typedef {import('../state.js').RunLecture} RunLecture
 *
 * @typedef {object} Field
 * @property {string} name
 * @property {'text' | 'area' | 'int' | 'float' | 'time'} kind
 * @property {boolean} [setting] Whether it is one of the line's settings.
 * @property {boolean} [clears] Whether emptying it is a change, and not a mistake.
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [initial]
 * @property {(t: import('../texts.js').Texts) => string} label
 * @property {(t: import('../texts.js').Texts) => string} [hint]
 */

/** @type {Field[]} */
const FIELDS = [
  { name: 'title', kind: 'text', max: 200, label: (t) => t.title },
  { name: 'description', kind: 'area', clears: true, max: 5000, label: (t) => t.description },
  { name: 'capacity', kind: 'int', min: 0, max: 1_000_000, initial: 30, label: (t) => t.capacity },
  { name: 'opensAt', kind: 'time', clears: true, label: (t) => t.opensAt, hint: (t) => t.yourZone },
  { name: 'closesAt', kind: 'time', clears: true, label: (t) => t.closesAt, hint: (t) => t.yourZone },
  { name: 'admitPerSecond', kind: 'float', setting: true, min: 0.01, max: 10_000, initial: 10, label: (t) => t.rate },
  { name: 'burst', kind: 'int', setting: true, min: 1, max: 10_000, initial: 10, label: (t) => t.burst },
  { name: 'ticketTtlSeconds', kind: 'int', setting: true, min: 1, max: 3600, initial: 120, label: (t) => t.ttl },
  { name: 'overbookPercent', kind: 'int', setting: true, min: 100, max: 200, initial: 100, label: (t) => t.overbook, hint: (t) => t.overbookHint },
  { name: 'message', kind: 'area', setting: true, clears: true, max: 500, label: (t) => t.messageField },
];

/** @param {Field} field @param {RunLecture | null} run @returns {any} */
function current({ name, setting, initial }, run) {
  if (!run) return initial ?? null;
  return /** @type {any} */ (setting ? run.settings : run)[name];
}

/** What the field shows of it. @param {Field} field @param {RunLecture | null} run */
function textOf(field, run) {
  const value = current(field, run);
  return field.kind === 'time' ? toField(value) : String(value ?? '');
}

/** @param {Field} field @param {RunLecture | null} run */
function control(field, run) {
  const { name, kind, min, max, clears, label, hint } = field;
  const before = run ? state.edited[name] : undefined;
  const text = textOf(field, run);
  const changed = before !== undefined && before !== text;
  // As long as the value stays what it was, what is being typed stays too.
  const value = before ?? text;
  const common = { id: `f-${name}`, name, value, 'aria-describedby': [hint && `h-${name}`, changed && `c-${name}`].filter(Boolean).join(' ') || null };
  const number = kind === 'int' || kind === 'float';
  return h('div', { class: `field ${kind}`, key: name },
    h('label', { for: `f-${name}` }, label(t()), clears && h('span', { class: 'small' }, ` (${t().optional})`)),
    kind === 'area'
      ? h('textarea', { ...common, rows: name === 'message' ? 2 : 3, maxlength: max })
      : h('input', {
        ...common,
        type: number ? 'number' : kind === 'time' ? 'datetime-local' : 'text',
        step: kind === 'float' ? 'any' : 1,
        min: number && min, max: number && max, maxlength: kind === 'text' && max,
        required: !clears,
      }),
    hint && h('p', { class: 'small', key: 'hint', id: `h-${name}` }, hint(t())),
    changed && h('p', { class: 'small changed', key: 'changed', id: `c-${name}`, role: 'status' },
      t().changedElsewhere(shown(field, current(field, run))), ' ',
      h('button', { class: 'link', type: 'button', onclick: () => set({ edited: without(state.edited, [name]) }) }, t().takeTheirs)));
}

/** @param {Record<string, string>} edited @param {string[]} names */
const without = (edited, names) => Object.fromEntries(Object.entries(edited).filter(([name]) => !names.includes(name)));

/** Notes what somebody is changing, which nobody else's change may overwrite. @param {Event} event @param {RunLecture} run */
function typed({ target }, run) {
  const { name, value, validity } = /** @type {HTMLInputElement} */ (target);
  const field = FIELDS.find((field) => field.name === name);
  if (!field) return;
  const text = textOf(field, run);
  // Half a date has no value yet.
  const same = value === text && !validity.badInput;
  set({ formSaid: null, edited: same ? without(state.edited, [name]) : { [name]: text, ...state.edited } });
}

/** @param {Field} field @param {FormData} data */
function read({ name, kind }, data) {
  const text = String(data.get(name) ?? '').trim();
  if (kind === 'int' || kind === 'float') return Number(text);
  return kind === 'time' ? fromField(text) : text || null;
}

/** @param {Field} field @param {any} a @param {any} b */
function same({ kind }, a, b) {
  // The field has seconds, and what was there before may have had less than one.
  return kind === 'time' ? toField(a) === toField(b) : (a ?? null) === (b ?? null);
}

/** @param {Field} field @param {any} value */
function shown({ kind }, value) {
  if (value === null || value === undefined) return t().nothing;
  if (kind === 'time') return instant(value, state.lang);
  return typeof value === 'number' ? number(value, state.lang) : String(value);
}

/** @param {Field[]} fields @param {FormData} data */
function inputOf(fields, data) {
  /** @type {Record<string, any>} */
  const input = {};
  for (const field of fields) {
    if (field.setting) (input.settings ??= {})[field.name] = read(field, data);
    else input[field.name] = read(field, data);
  }
  return input;
}

/** Names the field that was refused, as the form does. @param {import('../state.js').SeatlineError} error */
function refusal(error) {
  const field = FIELDS.find(({ name, setting }) => error.field === (setting ? `settings.${name}` : name));
  return field ? `${field.label(t())}: ${errorText(error)}` : errorText(error);
}

export function createPage() {
  return [
    h('a', { class: 'link up', href: '#/operate' }, icon(ICONS.back), t().operate),
    h('h1', { tabindex: -1 }, t().createTitle),
    h('form', { class: 'card form', onsubmit: create },
      FIELDS.map((field) => control(field, null)),
      h('p', { class: 'form-error', role: 'alert' }, state.formError && refusal(state.formError)),
      h('button', { class: 'button primary' }, t().createNow)),
  ];
}

let creating = false;

/** @param {SubmitEvent} event */
async function create(event) {
  event.preventDefault();
  if (creating) return;
  creating = true;
  showFormError(null);
  try {
    go(`/operate/${encodeURIComponent(await createLecture(inputOf(FIELDS, new FormData(/** @type {HTMLFormElement} */ (event.target)))))}`);
  } catch (error) {
    showFormError(problem(error));
  } finally {
    creating = false;
  }
}

/** @param {RunLecture} run */
export const settingsForm = (run) =>
  h('form', {
    class: 'card form',
    oninput: (/** @type {Event} */ event) => typed(event, run),
    onsubmit: (/** @type {SubmitEvent} */ event) => change(event, run),
  },
    FIELDS.map((field) => control(field, run)),
    h('p', { class: 'form-error', role: 'alert' }, state.formError && refusal(state.formError)),
    h('div', { class: 'actions' },
      h('button', { class: 'button primary' }, t().save),
      h('p', { class: 'small', role: 'status' }, state.formSaid && t()[state.formSaid])));

/** Says what would change and for how many, and changes nothing else. @param {SubmitEvent} event @param {RunLecture} run */
async function change(event, run) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const data = new FormData(form);
  const changed = FIELDS.filter((field) => field.name in state.edited && !same(field, read(field, data), current(field, run)));
  if (changed.length === 0) {
    set({ formError: null, formSaid: 'noChanges' });
    return;
  }
  const waiting = state.stats.at(-1)?.waiting ?? run.waiting;
  const yes = await ask({
    title: t().changeAsk,
    body: [
      h('p', null, t().affects(waiting)),
      h('dl', { class: 'changes' }, changed.map((field) =>
        h('div', null,
          h('dt', null, field.label(t())),
          h('dd', null, h('del', null, shown(field, current(field, run))), ' → ', h('ins', null, shown(field, read(field, data))))))),
    ],
    yes: t().apply,
    no: t().discard,
  });
  if (yes) updateLecture(inputOf(changed, data), () => afterwards(form, data));
}

/** What was typed on while it was being saved. @param {HTMLFormElement} form @param {FormData} saved */
function afterwards(form, saved) {
  const now = new FormData(form);
  return without(state.edited, FIELDS.map(({ name }) => name).filter((name) => now.get(name) === saved.get(name)));
}
