import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toldBefore } from '../src/session/told';

test('what was told stays so when the page is loaded again', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value)
  };
  assert.equal(toldBefore(0, 'one', storage), 0);
  assert.equal(toldBefore(200, 'one', storage), 0);
  assert.equal(toldBefore(100, 'one', storage), 200);
  assert.equal(toldBefore(300, 'one', storage), 200);
  assert.equal(toldBefore(300, 'another session', storage), 0);
});
