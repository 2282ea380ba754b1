// The operator's desk, while students wait.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { openPage, signIn, startBrowser } from './browser.js';
import { eventually, startServer } from './server.js';

/** @type {import('./server.js').Server} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { [server, browser] = await Promise.all([startServer(), startBrowser()]); });
after(async () => {
  await browser.close();
  await server.stop();
});

const desk = () => openPage(browser, server.url, { viewport: { width: 1200, height: 900 } });

/** @param {string} id @param {number} n */
async function crowd(id, n) {
  const guests = [];
  for (let i = 0; i < n; i++) {
    const guest = await server.guest(`student ${i}`);
    await server.graphql(guest.token, 'mutation ($id: ID!) { joinQueue(lectureId: $id) { status } }', { id });
    guests.push(guest);
  }
  return guests;
}

/** @param {import('playwright-core').Page} page @param {string} name */
const figure = (page, name) => page.locator('.board div', { has: page.getByText(name, { exact: true }) }).locator('dd').textContent();

test('the operator’s link signs in, and leaves no trace in the address', async () => {
  const { page, context, clean } = await desk();
  await page.goto(server.operatorLink);
  await page.getByRole('heading', { name: 'Operate' }).waitFor();
  assert.equal(page.url(), `${server.url}/#/operate`);
  assert.equal(await page.evaluate(() => localStorage.getItem('seatline.token')), null, 'the link is for its tab alone');
  // A guest in another tab of the same browser stays a guest, and so does the operator.
  const tab = await context.newPage();
  await tab.goto(`${server.url}/#/signin`);
  await signIn(tab, 'Guest');
  await tab.getByText('Guest', { exact: true }).waitFor();
  await page.reload();
  await page.getByText('Operator', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Operate' }).waitFor();
  await page.locator('main').getByText('For operators', { exact: true }).waitFor();
  clean();
  await context.close();
});

test('a lecture is created, paused, resumed and changed, and students see it', async () => {
  const { page, context, clean } = await desk();
  await page.goto(server.operatorLink);
  await page.getByRole('link', { name: 'New lecture' }).click();
  await page.getByLabel('Title').fill('Letterpress');
  await page.getByRole('spinbutton', { name: 'Seats', exact: true }).fill('2');
  await page.getByLabel('Admitted per second, at most').fill('0.01');
  await page.getByLabel('Admitted at once after a quiet time').fill('1');
  await page.getByRole('button', { name: 'Create lecture' }).click();
  await page.getByRole('heading', { name: 'Letterpress' }).waitFor();
  await page.locator('.link-state.live').waitFor();
  const id = page.url().split('/').at(-1) ?? '';

  const student = await openPage(browser, server.url);
  await crowd(id, 2);
  await student.page.goto(`${server.url}/#/signin?next=/lectures/${id}`);
  await signIn(student.page, 'Noeul');
  await student.page.getByRole('button', { name: 'Join the line' }).click();
  await student.page.locator('.queue .digits').waitFor();
  await eventually(async () => (await figure(page, 'Waiting')) === '2', 'two wait');
  assert.equal(await figure(page, 'Seats on hold'), '1');

  await page.getByRole('button', { name: 'Pause' }).click();
  const question = page.locator('dialog');
  assert.match(await question.innerText(), /2 people wait/);
  await question.getByRole('button', { name: 'Go back' }).click();
  await question.waitFor({ state: 'detached' });
  assert.equal(await student.page.locator('main').getByText('Admission is paused').count(), 0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await question.getByRole('button', { name: 'Pause' }).click();
  await student.page.locator('main').getByText('Admission is paused').waitFor();

  // A message and a rate, after a question that says what changes and for how many.
  await page.getByLabel('Message to everyone who waits').fill('Bring an apron.');
  await page.getByLabel('Admitted per second, at most').fill('5');
  await page.getByRole('spinbutton', { name: 'Seats', exact: true }).fill('3');
  await page.getByRole('button', { name: 'Save changes' }).click();
  assert.match(await question.innerText(), /2 people wait[^]*Seats\s*2 → 3[^]*0\.01 → 5[^]*none → Bring an apron\./);
  await question.getByRole('button', { name: 'Apply' }).click();
  await page.locator('main').getByText('Saved.').waitFor();
  await student.page.locator('.message').getByText('Bring an apron.').waitFor();

  await page.getByRole('button', { name: 'Resume' }).click();
  await question.getByRole('button', { name: 'Resume' }).click();
  await student.page.getByRole('heading', { name: 'It is your turn' }).waitFor();
  await student.page.getByRole('button', { name: 'Enrol now' }).click();
  await student.page.getByRole('article', { name: 'Receipt 1' }).waitFor();

  await eventually(async () => (await figure(page, 'Enrolled')) === '1 / 3', 'the board counts the enrolment');
  await eventually(async () => /^[1-9]/.test(await figure(page, 'Admitted / min') ?? ''), 'and the admissions');
  assert.match(await page.getByRole('img', { name: /People in line/ }).getAttribute('aria-label') ?? '', /0 now, at most 2/);

  // What the server refuses is said beside the form, with the field, in one's own words and in its.
  await page.getByRole('spinbutton', { name: 'Seats', exact: true }).fill('0');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await question.getByRole('button', { name: 'Apply' }).click();
  await page.getByRole('alert').getByText(/^Seats: Something you entered is not right/).waitFor();

  // The roster, as a table and as a file.
  const row = page.getByRole('row', { name: /guest-/ });
  await row.waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download CSV' }).click()]);
  assert.equal(file.suggestedFilename(), `lecture-${id}-enrollments.csv`);
  assert.match(await readFile(await file.path(), 'utf8'), /number,user_key,enrolled_at[^]*\r\n1,guest-/);
  await row.getByRole('button', { name: /Remove/ }).click();
  await question.getByRole('button', { name: 'Remove' }).click();
  await page.locator('main').getByText('Nobody has enrolled yet.').waitFor();
  clean();
  student.clean();
  await context.close();
  await student.context.close();
});

test('what an operator types is not overwritten by another, whose changes arrive all the same', async () => {
  const id = await server.lecture({ title: 'Bookbinding', capacity: 5 });
  /** @param {object} input */
  const elsewhere = (input) => server.graphql(server.operatorToken,
    'mutation ($id: ID!, $input: UpdateLectureInput!) { updateLecture(id: $id, input: $input) { id } }', { id, input });
  const { page, context, clean } = await desk();
  await page.goto(server.operatorLink);
  await page.getByRole('link', { name: 'Bookbinding' }).click();
  await page.locator('.link-state.live').waitFor();
  const [title, message, rate] = [page.getByLabel('Title'), page.getByLabel('Message to everyone who waits'), page.getByLabel('Admitted per second, at most')];
  const question = page.locator('dialog');

  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.locator('main').getByText('Nothing has been changed.').waitFor();

  // A change of the message alone reaches a form that nobody has touched.
  await elsewhere({ settings: { message: 'Room 4.' } });
  await eventually(async () => (await message.inputValue()) === 'Room 4.', 'the message of somebody else');
  await message.fill('Room 5, at ten.');
  assert.equal(await page.locator('.changed').count(), 0);
  await title.fill('Bookbinding for');
  await elsewhere({ title: 'Bookbinding II', settings: { message: 'Room 6.', admitPerSecond: 7 } });
  await page.locator('.changed').getByText('Somebody else has changed this to: Bookbinding II').waitFor();
  await page.locator('.changed').getByText('Somebody else has changed this to: Room 6.').waitFor();
  await eventually(async () => (await rate.inputValue()) === '7', 'the rate of somebody else');
  assert.equal(await title.inputValue(), 'Bookbinding for');
  assert.equal(await message.inputValue(), 'Room 5, at ten.');
  await title.press('End');
  await title.pressSequentially(' all');
  await message.locator('..').getByRole('button', { name: 'Use that' }).click();
  assert.equal(await message.inputValue(), 'Room 6.');

  // The question is about what there is, and about what was typed here alone.
  await page.getByRole('button', { name: 'Save changes' }).click();
  assert.deepEqual(await question.locator('.changes > div').allInnerTexts(), ['Title\nBookbinding II → Bookbinding for all']);
  await question.getByRole('button', { name: 'Apply' }).click();
  await page.locator('main').getByText('Saved.').waitFor();
  await page.getByRole('heading', { name: 'Bookbinding for all' }).waitFor();
  assert.equal(await page.locator('.changed').count(), 0);
  const { lecture } = await server.graphql(null, 'query ($id: ID!) { lecture(id: $id) { title settings { message admitPerSecond } } }', { id });
  assert.deepEqual(lecture, { title: 'Bookbinding for all', settings: { message: 'Room 6.', admitPerSecond: 7 } });
  await elsewhere({ title: 'Bookbinding III' });
  await eventually(async () => (await title.inputValue()) === 'Bookbinding III', 'the form follows again');
  clean();
  await context.close();
});

test('the drawings of a board are still there when one comes back to it', async () => {
  const id = await server.lecture({ title: 'Calligraphy', capacity: 5, settings: { paused: true } });
  await crowd(id, 3);
  const { page, context, clean } = await desk();
  await page.goto(server.operatorLink);
  await page.getByRole('link', { name: 'Calligraphy' }).click();
  const drawn = page.getByRole('img', { name: 'People in line: 0 now, at most 3 in the time shown' });
  await page.getByRole('img', { name: 'People in line: 3 now, at most 3 in the time shown' }).waitFor();
  await server.graphql(server.operatorToken, 'mutation ($id: ID!) { updateLecture(id: $id, input: { settings: { paused: false } }) { id } }', { id });
  await drawn.waitFor();
  await page.getByRole('link', { name: 'Operate' }).first().click();
  await page.getByRole('heading', { name: 'Operate' }).waitFor();
  await page.getByRole('link', { name: 'Calligraphy' }).click();
  await page.locator('.link-state.live').waitFor();
  await drawn.waitFor();
  clean();
  await context.close();
});

test('times are entered in the operator’s zone, and shown in the visitor’s', async () => {
  const { page, context, clean } = await desk();
  await page.goto(server.operatorLink);
  await page.getByRole('link', { name: 'New lecture' }).click();
  await page.getByLabel('Title').fill('Night walk');
  await page.getByLabel(/^Opens/).fill('2031-05-01T21:00:00');
  await page.getByRole('button', { name: 'Create lecture' }).click();
  await page.getByRole('heading', { name: 'Night walk' }).waitFor();
  const id = page.url().split('/').at(-1);
  const { lecture } = await server.graphql(null, 'query ($id: ID!) { lecture(id: $id) { opensAt } }', { id });
  assert.equal(lecture.opensAt, '2031-05-01T12:00:00Z', 'nine in the evening in Seoul');
  const visitor = await openPage(browser, server.url, { timezoneId: 'America/New_York' });
  await visitor.page.goto(`${server.url}/#/lectures/${id}`);
  await visitor.page.locator('main').getByText(/Opens Thu,? 1 May(?: 2031)?,? (at )?08:00 GMT-4/).waitFor();
  clean();
  visitor.clean();
  await context.close();
  await visitor.context.close();
});

test('operators’ pages are for operators', async () => {
  const { page, context, clean } = await openPage(browser, server.url);
  await page.goto(`${server.url}/#/signin?next=/operate/1`);
  await signIn(page, 'Student');
  await page.locator('main').getByText('For operators', { exact: true }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Operate' }).count(), 0);
  clean();
  await context.close();
});
