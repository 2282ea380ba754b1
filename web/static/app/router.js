// Pages live behind the hash, so the server serves one document.

import { set } from './state.js';

/** @type {[RegExp, import('./state.js').Route['page']][]} */
const PAGES = [
  [/^\/?$/, 'lectures'],
  [/^\/lectures\/([^/]+)$/, 'lecture'],
  [/^\/receipts$/, 'receipts'],
  [/^\/signin$/, 'signin'],
  [/^\/operate$/, 'operate'],
  [/^\/operate\/new$/, 'create'],
  [/^\/operate\/([^/]+)$/, 'board'],
];

/** @returns {import('./state.js').Route} */
export function readRoute() {
  const [path = '', search] = location.hash.slice(1).split('?');
  const query = new URLSearchParams(search);
  for (const [pattern, page] of PAGES) {
    const match = pattern.exec(path);
    if (match) return { page, id: match[1] && safeDecode(match[1]), query };
  }
  return { page: 'missing', query };
}

/** @param {string} text */
function safeDecode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} path */
export function go(path) {
  if (location.hash === `#${path}`) set({ route: readRoute() });
  else location.hash = path;
}

/** The same, so that Back does not lead to where one is now. @param {string} path */
export function goInstead(path) {
  if (location.hash === `#${path}`) set({ route: readRoute() });
  else location.replace(`#${path}`);
}
