// Debian's Chromium, and pages in it that tolerate no error and no request elsewhere.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

/** @typedef {import('playwright-core').Page} Page */

export const artefacts = new URL('../../artefacts/', import.meta.url).pathname;
mkdirSync(artefacts, { recursive: true });

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** A browser of its own folder for each test file. */
export async function startBrowser() {
  if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing: apt-get install chromium, or name one in CHROMIUM`);
  const folder = mkdtempSync(join(tmpdir(), 'seatline-chromium-'));
  const browser = await chromium.launch({
    executablePath,
    env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_CACHE_HOME: folder },
    args: [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required',
    ],
  });
  browser.on('disconnected', () => rmSync(folder, { recursive: true, force: true }));
  return browser;
}

/**
 * Opens a page of somebody with no history. What it must not do is collected, and
 * `clean` asserts that there was none of it; `allow` takes console errors that the
 * test itself brings about, such as a server that is down.
 *
 * @param {import('playwright-core').Browser} browser
 * @param {string} origin
 * @param {import('playwright-core').BrowserContextOptions & { allow?: RegExp }} [options]
 */
export async function openPage(browser, origin, { allow, ...options } = {}) {
  // Without motion, as a click waits until what it is meant for stands still.
  const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'Asia/Seoul', viewport: { width: 390, height: 844 }, ...options });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`exception: ${error.stack}`));
  page.on('crash', () => faults.push('crash'));
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('blob:')) faults.push(`request elsewhere: ${url}`);
  });
  page.on('websocket', (socket) => {
    if (!socket.url().startsWith(`${origin.replace('http', 'ws')}/`)) faults.push(`socket elsewhere: ${socket.url()}`);
  });
  return {
    page,
    context,
    clean: () => assert.deepEqual(faults.filter((fault) => !allow?.test(fault)), []),
  };
}

/**
 * Signs somebody in through the form.
 *
 * @param {Page} page
 * @param {string} name
 */
export async function signIn(page, name) {
  await page.getByRole('textbox').fill(name);
  await page.locator('form.signin button.primary').click();
}

/** @param {Page} page @param {string} name */
export const screenshot = (page, name) => page.screenshot({ path: join(artefacts, `${name}.png`), animations: 'disabled' });
