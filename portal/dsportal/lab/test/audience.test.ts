import assert from 'node:assert/strict';
import { test } from 'node:test';

import { namesIn, namesOf } from '../src/share/audience';

test('names are separated as people type them, and each counts once', () => {
  assert.deepEqual(namesIn(' ann, bob;carla ann\n'), ['ann', 'bob', 'carla']);
  assert.deepEqual(namesIn(' , '), []);
});

test('an audience is named by its people, its group, or its link', () => {
  assert.equal(namesOf({ kind: 'people', names: ['ann', 'bob'] }, 'anyone'), 'ann, bob');
  assert.equal(namesOf({ kind: 'group', names: ['lab'] }, 'anyone'), 'lab');
  assert.equal(namesOf({ kind: 'link', names: [] }, 'anyone'), 'anyone');
});
