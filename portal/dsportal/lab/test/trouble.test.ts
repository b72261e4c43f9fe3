import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ITrouble } from '../src/storage/trouble';
import { fullWords, troubleWords } from '../src/storage/words';
import { hour, type ITexts } from '../src/common/time';

const texts: ITexts = {
  __: (text, ...values) =>
    values.reduce<string>((done, value, at) => done.replace(`%${at + 1}`, String(value)), text),
  _n: (one, many, count) => (count === 1 ? one : many).replace('%1', String(count))
};
const HANGS: ITrouble = {
  name: 'isilon',
  point: '/mnt/isilon',
  state: 'hangs',
  since: Date.now() / 1000,
  reason: ''
};

test('a mount that does not answer is named, with the hour and whom to ask', () => {
  const words = troubleWords(HANGS, 'hpc@example.org', texts);
  assert.equal(
    words,
    `isilon (/mnt/isilon) has not responded since ${hour(HANGS.since)}. The portal keeps trying. Help: hpc@example.org`
  );
  assert.ok(words.length <= 140);
});

test('a mount that has not answered for days is told with the day', () => {
  const words = troubleWords({ ...HANGS, since: HANGS.since - 3 * 86_400 }, '', texts);
  assert.match(words, / since \d.* on \w+day\. The portal/);
});

test('a mount that fails has the reason, one that is missing has none', () => {
  const failing = { ...HANGS, name: '', state: 'fails' as const, reason: 'Input/output error' };
  assert.match(
    troubleWords(failing, '', texts),
    /^\/mnt\/isilon has been failing .*: Input\/output error\. Tell /
  );
  const missing = { ...HANGS, state: 'missing' as const };
  assert.match(troubleWords(missing, '', texts), /is not mounted on this node\. Tell /);
});

test('a storage that is nearly full says by how much', () => {
  const storage = {
    name: 'isilon',
    mount: '/mnt/isilon',
    kind: 'nfs',
    size: 100,
    used: 95,
    free: 5
  };
  const words = fullWords({ ...storage, is_quota: true }, texts);
  assert.equal(
    words,
    'isilon: 95 B of your quota of 100 B used. Delete or move what you do not need.'
  );
});
