import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  addressFor,
  addressNear,
  holdsEvents,
  selectedFolder,
  shown,
  type IItem
} from '../src/launcher/tensorboards';

function item(path: string, type = 'directory'): IItem {
  return { type, path, name: path.split('/').pop() ?? '' };
}

test('one selected folder is meant, several things or a file are not', () => {
  const logs = item('work/logs');
  assert.equal(selectedFolder([logs]), 'work/logs');
  assert.equal(selectedFolder([]), null);
  assert.equal(selectedFolder([logs, item('work/data')]), null);
  assert.equal(selectedFolder([item('work/a.ipynb', 'notebook')]), null);
});

test('event files are known by their names, and a folder of that name is none', () => {
  const events = 'logs/events.out.tfevents.1795275869.node001.26099.0';
  assert.ok(holdsEvents([item('logs/a.txt', 'file'), item(events, 'file')]));
  assert.ok(!holdsEvents([item(events), item('logs/events.txt', 'file')]));
  assert.ok(!holdsEvents([]));
});

test('a folder of any name is one word of the address', () => {
  assert.equal(addressFor('logs/a & b?c#d'), 'tensorboard/?folder=logs%2Fa%20%26%20b%3Fc%23d');
  assert.equal(addressFor(''), 'tensorboard/?folder=');
  assert.equal(addressNear('work'), 'tensorboard/?near=work');
});

test('a folder is shown as below the home', () => {
  assert.deepEqual(['', 'logs/mnist'].map(shown), ['~', '~/logs/mnist']);
});
