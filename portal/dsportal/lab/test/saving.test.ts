import assert from 'node:assert/strict';
import { test } from 'node:test';

import { StateDB } from '@jupyterlab/statedb';

import { skipUnchanged } from '../src/session/saving';

function watched(): { state: StateDB; saved: string[] } {
  const state = new StateDB();
  skipUnchanged(state);
  const saved: string[] = [];
  state.changed.connect((_, change) => saved.push(change.id));
  return { state, saved };
}

void test('a value is saved once', async () => {
  const { state, saved } = watched();
  await state.save('columns', { name: 139.5 });
  await state.save('columns', { name: 139.5 });
  await state.save('columns', { name: 140 });
  await state.save('folder', { name: 140 });
  assert.deepEqual(saved, ['columns', 'columns', 'folder']);
  assert.deepEqual(await state.toJSON(), { columns: { name: 140 }, folder: { name: 140 } });
});

void test('the last of several that come at once stays', async () => {
  const { state } = watched();
  await state.save('columns', 1);
  await Promise.all([state.save('columns', 2), state.save('columns', 1)]);
  assert.equal(await state.fetch('columns'), 1);
});

void test('one that cannot be saved keeps no other from it', async () => {
  const state = new StateDB({
    connector: Object.assign(new StateDB.Connector(), {
      fetch: (id: string) => (id === 'ill' ? Promise.reject(new Error(id)) : Promise.resolve())
    })
  });
  skipUnchanged(state);
  await assert.rejects(state.save('ill', 1));
  await state.save('well', 1);
  assert.deepEqual((await state.list('well')).ids, ['well']);
});
