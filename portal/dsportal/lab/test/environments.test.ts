import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ITexts } from '../src/common/time';
import { descriptionOf, folderText } from '../src/environments/words';

const texts: ITexts = {
  __: (text, ...values) =>
    values.reduce<string>((done, value, at) => done.replace(`%${at + 1}`, String(value)), text),
  _n: (one, many, count) => (count === 1 ? one : many).replace('%1', String(count))
};
const GIB = 2 ** 30;
const use = { mount: '/nas', kind: 'nfs4', size: 10 * GIB, used: 2 * GIB, free: 8 * GIB };
const folder = { name: 'isilon', path: '/nas/ann', trouble: '' };

test('a place is shown with its quota, or with the size of its storage', () => {
  const quota = { ...folder, storage: { ...use, is_quota: true } };
  const text = folderText(quota, texts);
  assert.equal(text, 'isilon: 2.0 GiB of your quota of 10 GiB used · /nas/ann');
  const disk = { ...folder, storage: { ...use, is_quota: false } };
  assert.equal(folderText(disk, texts), 'isilon: 2.0 GiB of 10 GiB used · /nas/ann');
  assert.equal(folderText({ ...folder, storage: null }, texts), 'isilon · /nas/ann');
});

test('a place that cannot be used says why', () => {
  const away = { ...folder, storage: null, trouble: '/nas has not responded since 10:12.' };
  assert.equal(folderText(away, texts), 'isilon: /nas has not responded since 10:12.');
});

test('an environment is shown with its size and where it lies', () => {
  const one = { name: 'nlp', path: '/nas/ann/nlp', in: 'isilon', on: 'jax/0.10', trouble: '' };
  const text = descriptionOf({ ...one, packages: ['einops'], size: 25_000_000 }, texts);
  assert.equal(text, 'on jax/0.10 · 24 MiB · isilon · einops');
});
