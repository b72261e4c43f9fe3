import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ServerConnection } from '@jupyterlab/services';

import { fallSilent, isAway, readVisits, tell } from '../src/common/server';
import { stopSharing } from '../src/share/server';

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
  await assert.rejects(stopSharing(settings, 'id'), isAway);
  assert.equal(await tell(settings, 'saved'), false);
  assert.equal(asked, 1);
});
