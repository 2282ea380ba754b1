// What operators see and do: which page, what it needs, and when that ends.

import { h } from '../element.js';
import { state } from '../state.js';
import { empty, t } from '../views/parts.js';
import { openBoard, closeBoard, openedBoard } from './actions.js';
import { boardPage } from './board.js';
import { createPage } from './form.js';
import { operatePage } from './list.js';

export function enter() {
  const id = state.route.id ?? '';
  // Whoever came before this was loaded, and was known while it was, comes in twice.
  if (state.route.page === 'board' && state.viewer?.operator && openedBoard() !== id) openBoard(id);
}

export const leave = closeBoard;

export function view() {
  if (!state.viewer?.operator) {
    return [
      h('h1', { tabindex: -1 }, t().operate),
      state.viewer !== undefined &&
        empty(t().operatorsOnly, t().operatorsOnlyHint, h('a', { class: 'button primary', href: '#/signin?next=/operate' }, t().signIn)),
    ];
  }
  switch (state.route.page) {
    case 'create': return createPage();
    case 'board': return boardPage();
    default: return operatePage();
  }
}
