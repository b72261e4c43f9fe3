import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';

import { changedPaths, readOnlyPaths, savedAt, saveChanged } from '../src/common/documents';

class Context {
  constructor(
    readonly path: string,
    dirty: boolean,
    writable = true
  ) {
    this.model = { dirty };
    this.contentsModel = { writable, last_modified: '2026-01-02T03:04:05Z' };
  }

  readonly isReady = true;
  readonly contentsModel: { writable: boolean; last_modified: string };
  readonly model: { dirty: boolean };
  saves = 0;

  async save(): Promise<void> {
    this.saves += 1;
    this.model.dirty = false;
  }
}

/** What JupyterLab gives for tabs in the main area, each with its document. */
function open(...contexts: Context[]): [JupyterFrontEnd.IShell, IDocumentManager] {
  const shell = { widgets: (area: string) => (area === 'main' ? contexts.entries() : []) };
  const documents = { contextForWidget: ([, context]: [number, Context]) => context };
  return [shell, documents] as unknown as [JupyterFrontEnd.IShell, IDocumentManager];
}

test('a notebook that is open as a text, too, is saved', async () => {
  const notebook = new Context('a.ipynb', true);
  const text = new Context('a.ipynb', false);
  const tabs = open(notebook, text);
  assert.deepEqual(changedPaths(...tabs), ['a.ipynb']);
  assert.deepEqual(await saveChanged(...tabs), []);
  assert.equal(notebook.saves, 1);
  assert.equal(text.saves, 0);
});

test('a document in two tabs is saved once', async () => {
  const one = new Context('a.py', true);
  const tabs = open(one, one);
  assert.deepEqual(changedPaths(...tabs), ['a.py']);
  await saveChanged(...tabs);
  assert.equal(one.saves, 1);
});

test('of one file that has changed twice, the path is told once', () => {
  const tabs = open(new Context('a.ipynb', true), new Context('a.ipynb', true));
  assert.deepEqual(changedPaths(...tabs), ['a.ipynb']);
});

test('a template that was run is not told to be saved', async () => {
  const template = new Context('templates/mnist.ipynb', true, false);
  const tabs = open(template);
  assert.deepEqual(changedPaths(...tabs), ['templates/mnist.ipynb']);
  assert.equal(savedAt(...tabs), null);
  assert.deepEqual(await saveChanged(...tabs), []);
  assert.equal(template.saves, 0);
  const both = open(template, new Context('a.ipynb', true));
  assert.deepEqual(readOnlyPaths(...both), ['templates/mnist.ipynb']);
  assert.equal(savedAt(...both), Date.parse('2026-01-02T03:04:05Z') / 1000);
});
