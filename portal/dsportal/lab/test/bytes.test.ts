import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bytes, fullness, type IStorage } from '../src/common/bytes';
import { storageSummary } from '../src/common/words';
import { source } from '../src/storage/words';

const texts = {
  __: (text: string, ...values: unknown[]) => text.replace(/%(\d)/g, (_, n) => `${values[n - 1]}`),
  _n: (one: string) => one
};
const TIB = 1024 ** 4;
const NAS: IStorage = {
  name: 'isilon',
  mount: '/mnt/isilon',
  kind: 'nfs4',
  size: 2 * TIB,
  used: 1.5 * TIB,
  free: 0.5 * TIB,
  is_quota: false
};

for (const [amount, words] of [
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 KiB'],
  [1024 * 1023, '1.0 MiB'],
  [25_000_000, '24 MiB'],
  [24.5 * 1024 ** 2, '25 MiB'],
  [34.4 * 1024 ** 3, '34 GiB'],
  [1.25 * TIB, '1.3 TiB'],
  [5000 * 1024 ** 5, '5000 PiB']
] as const) {
  test(`${amount} bytes are ${words}`, () => assert.equal(bytes(amount), words));
}

test('a quota is called so only where it is one', () => {
  assert.equal(storageSummary(NAS, texts), 'isilon: 1.5 TiB of 2.0 TiB used');
  assert.match(storageSummary({ ...NAS, is_quota: true }, texts), /of your quota of 2.0 TiB used/);
  assert.match(source(NAS, texts), /as reported by the file server/);
  assert.match(source({ ...NAS, is_quota: true }, texts), /your own quota/);
  assert.match(source({ ...NAS, kind: 'ext4' }, texts), /shares it/);
});

test('a quota is named as it was granted, also where it is exceeded or the storage is full', () => {
  const quota = { ...NAS, is_quota: true, size: TIB };
  for (const [used, free] of [
    [1.5 * TIB, 0],
    [0.5 * TIB, 1024]
  ] as const) {
    const words = storageSummary({ ...quota, used, free }, texts);
    assert.equal(words, `isilon: ${bytes(used)} of your quota of 1.0 TiB used`);
  }
});

test('what is set aside for root does not count', () => {
  assert.equal(fullness({ ...NAS, used: 90, free: 5, size: 100 }), 90 / 95);
  assert.equal(fullness({ ...NAS, used: 0, free: 0 }), 1);
});
