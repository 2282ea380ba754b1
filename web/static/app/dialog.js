// Questions that must be answered before something happens.

import { h, render } from './element.js';

/**
 * Asks, and resolves to whether the answer was yes. Escape is no.
 *
 * @param {object} question
 * @param {string} question.title
 * @param {import('./element.js').Child} question.body
 * @param {string} question.yes
 * @param {string} question.no
 * @param {boolean} [question.danger]
 * @returns {Promise<boolean>}
 */
export function ask({ title, body, yes, no, danger = false }) {
  return new Promise((resolve) => {
    const place = document.createElement('div');
    document.body.append(place);
    render(place, h('dialog', {
      'aria-labelledby': 'question', 'aria-describedby': 'explanation',
      mounted: (/** @type {HTMLDialogElement} */ dialog) => dialog.showModal(),
      onclose: (/** @type {Event} */ { target }) => {
        place.remove();
        resolve(/** @type {HTMLDialogElement} */ (target).returnValue === 'yes');
      },
    },
      h('form', { method: 'dialog' },
        h('h2', { id: 'question' }, title),
        h('div', { id: 'explanation' }, body),
        h('div', { class: 'actions' },
          h('button', { class: 'button quiet', value: 'no', autofocus: true }, no),
          h('button', { class: `button ${danger ? 'danger' : 'primary'}`, value: 'yes' }, yes)))));
  });
}
