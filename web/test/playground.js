// What one does in GraphiQL.

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page @param {string} name The operation's, which is the tab's. */
export async function openTab(page, name) {
  await page.getByRole('tab', { name }).click();
  await page.waitForFunction((wanted) => {
    const editor = /** @type {any} */ (document.querySelector('.graphiql-query-editor .CodeMirror'));
    return editor?.CodeMirror.getValue().includes(` ${wanted}`);
  }, name);
}

/** @param {Page} page */
export const pressRun = (page) => page.locator('.graphiql-execute-button').click();

/** @param {Page} page */
export const result = (page) => page.evaluate(() => {
  const editor = /** @type {any} */ (document.querySelector('.result-window .CodeMirror'));
  return /** @type {string} */ (editor.CodeMirror.getValue());
});

/**
 * Waits for a result that has this in it, and gives it.
 *
 * @param {Page} page
 * @param {string} text
 * @returns {Promise<any>}
 */
export async function awaitResult(page, text) {
  await page.waitForFunction((wanted) => {
    const editor = /** @type {any} */ (document.querySelector('.result-window .CodeMirror'));
    return editor?.CodeMirror.getValue().includes(wanted);
  }, text);
  return JSON.parse(await result(page));
}

/** Runs the tab. @param {Page} page @param {string} name @param {string} text In the result to wait for. */
export async function run(page, name, text) {
  await openTab(page, name);
  await pressRun(page);
  return awaitResult(page, text);
}

/** Puts a text into an editor, as typing does. @param {Page} page @param {string} editor @param {string} text */
export const type = (page, editor, text) => page.evaluate(([selector, value]) => {
  const found = /** @type {any} */ (document.querySelector(`${selector} .CodeMirror`));
  found.CodeMirror.setValue(value);
}, /** @type {const} */ ([editor, text]));

/** @param {Page} page */
export async function setHeaders(page, /** @type {Record<string, string>} */ headers) {
  await page.getByRole('button', { name: 'Headers' }).click();
  await type(page, '.graphiql-editor-tool .graphiql-editor:not(.hidden)', JSON.stringify(headers));
}

/** What is sent over sockets from now on. @param {Page} page */
export function socketMessages(page) {
  /** @type {any[]} */
  const messages = [];
  page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => messages.push(JSON.parse(payload.toString()))));
  return messages;
}
