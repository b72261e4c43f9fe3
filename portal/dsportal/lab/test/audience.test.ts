import assert from 'node:assert/strict';
import { test } from 'node:test';

import { namesIn, namesOf, ownFirst } from '../src/share/audience';
import type { IShare } from '../src/share/server';

test('names are separated as people type them, and each counts once', () => {
  assert.deepEqual(namesIn(' ann, bob;carla ann\n'), ['ann', 'bob', 'carla']);
  assert.deepEqual(namesIn(' , '), []);
});

test('an audience is named by its people, its group, or its link', () => {
  assert.equal(namesOf({ kind: 'people', names: ['ann', 'bob'] }, 'anyone'), 'ann, bob');
  assert.equal(namesOf({ kind: 'group', names: ['lab'] }, 'anyone'), 'lab');
  assert.equal(namesOf({ kind: 'link', names: [] }, 'anyone'), 'anyone');
});

test('shares of a notebook that was renamed are listed, after those of the one that is open', () => {
  const share = (id: string, path: string) => ({ id, path }) as IShare;
  const shares = [share('1', 'old.ipynb'), share('2', 'new.ipynb'), share('3', 'a/new.ipynb')];
  assert.deepEqual(
    ownFirst(shares, 'new.ipynb').map(one => one.id),
    ['2', '1', '3']
  );
});
