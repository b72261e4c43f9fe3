import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answered } from '../src/launcher/answered';

test('it is asked until there is an answer, and less and less often', async context => {
  const pauses: number[] = [];
  context.mock.method(globalThis, 'setTimeout', (go: () => void, pause: number) => {
    pauses.push(pause);
    go();
  });
  let asked = 0;
  await answered(async () => ++asked > 4, 2, 10);
  assert.deepEqual(pauses, [2, 4, 8, 10]);
});
