import assert from 'node:assert/strict';
import { test } from 'node:test';

import { againUrl, fateFrom } from '../src/session/fate';

const HUB = { host: '', prefix: '/hub/', user: 'ada', server: '' };
const UNTOLD = { jobId: '12', token: '' };

test('the hub says how a session ended', () => {
  const told = { state: 'ended', ended: 1_790_000_000, why: 'its time was up', token: '2|a' };
  assert.deepEqual(fateFrom(200, told), told);
});

test('a refusal is no answer about the session', () => {
  assert.equal(fateFrom(403, { state: 'ended' }).state, 'stranger');
});

test('an answer of somebody else, such as a proxy, is none', () => {
  for (const [status, body] of [
    [503, null],
    [200, { state: 'fine' }],
    [200, null],
    [200, 'ended']
  ] as const) {
    assert.equal(fateFrom(status, body).state, 'silent');
  }
});

test('a moment that is none is not known', () => {
  assert.deepEqual(fateFrom(200, { state: 'ended', ended: 'now', why: 7 }), {
    state: 'ended',
    ended: null,
    why: '',
    token: ''
  });
});

test('a start leads back to the document', () => {
  const form = againUrl(HUB, UNTOLD, 'http://portal/user/ada/', 'my work/a & b.ipynb');
  assert.ok(form.startsWith('/hub/spawn/ada?next='), form);
  assert.equal(
    new URL(form, 'http://portal').searchParams.get('next'),
    '/user/ada/lab/tree/my%20work/a%20%26%20b.ipynb'
  );
});

test('a named session starts again as itself, at the host of the hub', () => {
  const hub = { ...HUB, host: 'https://portal.test', user: 'a@b', server: 'two' };
  const form = againUrl(hub, UNTOLD, 'https://ada.portal.test/user/a%40b/two/', '');
  assert.ok(form.startsWith('https://portal.test/hub/spawn/a%40b/two?next='), form);
  assert.equal(new URL(form).searchParams.get('next'), '/user/a%40b/two/lab');
});

test('with the token of the hub it starts without the form', () => {
  const hub = { ...HUB, host: 'https://portal.test', server: 'two' };
  const over = { jobId: '12', token: '2|1:0|10:1790000000|4:name|4:YWRh|0a' };
  const url = new URL(againUrl(hub, over, 'https://ada.portal.test/user/ada/two/', 'a b.ipynb'));
  assert.equal(`${url.origin}${url.pathname}`, 'https://portal.test/hub/portal/start-again/12');
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    token: over.token,
    server: 'two',
    next: '/user/ada/two/lab/tree/a%20b.ipynb'
  });
});
