import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ServerConnection } from '@jupyterlab/services';

import { fallSilent, isAway, readVisits } from '../src/common/server';

test('nothing is asked of a session that has ended', async () => {
  let asked = 0;
  const settings = ServerConnection.makeSettings({
    baseUrl: 'http://session/',
    fetch: async () => {
      asked += 1;
      return Response.json({ visits: [] });
    }
  });
  assert.deepEqual(await readVisits(settings), { visits: [] });
  fallSilent();
  await assert.rejects(readVisits(settings), isAway);
  assert.equal(asked, 1);
});
