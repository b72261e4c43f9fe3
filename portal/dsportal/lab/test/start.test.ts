import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Signal } from '@lumino/signaling';

import { isStarting, startEnded, type IStarting } from '../src/kernels/start';

interface IState {
  kernelDisplayStatus: string;
  isReady: boolean;
  isDisposed: boolean;
  session: { kernel: object | null } | null;
}

class Document {
  constructor(state: Partial<IState> = {}) {
    Object.assign(this, state);
    this.context = this as unknown as IStarting;
  }

  context: IStarting;
  kernelDisplayStatus = 'initializing';
  isReady = false;
  isDisposed = false;
  session: { kernel: object | null } | null = null;
  kernelChanged = new Signal<this, void>(this);
  statusChanged = new Signal<this, void>(this);
  disposed = new Signal<this, void>(this);
  /** Never fulfilled, as JupyterLab's is for a first start that fails. */
  first: Promise<boolean> = new Promise(() => {});

  initialize(): Promise<boolean> {
    return this.first;
  }

  become(state: Partial<IState>): void {
    Object.assign(this, state);
    this.statusChanged.emit();
  }
}

async function hasEnded(wait: Promise<void>): Promise<boolean> {
  let isOver = false;
  void wait.then(() => {
    isOver = true;
  });
  await new Promise(resolve => setImmediate(resolve));
  return isOver;
}

test('a kernel that runs, and none that is to come, are not waited for', async () => {
  for (const state of [
    { kernelDisplayStatus: 'idle', session: { kernel: {} } },
    { kernelDisplayStatus: 'restarting', session: { kernel: {} } },
    { kernelDisplayStatus: 'unknown', isReady: true }
  ]) {
    const { context } = new Document(state);
    assert.ok(!isStarting(context));
    await startEnded(context);
  }
});

test('a first kernel is waited for until it is there', async () => {
  const document = new Document();
  const wait = startEnded(document.context);
  document.become({ kernelDisplayStatus: 'starting' });
  assert.ok(!(await hasEnded(wait)));
  document.become({ session: { kernel: {} }, kernelDisplayStatus: 'starting' });
  assert.ok(await hasEnded(wait));
});

test('a kernel that does not start is not waited for any longer', async () => {
  const document = new Document();
  const wait = startEnded(document.context);
  document.become({ isReady: true, kernelDisplayStatus: 'unknown' });
  assert.ok(await hasEnded(wait));
});

test('a kernel that the user is to choose is not waited for', async () => {
  const document = new Document();
  document.first = Promise.resolve(true);
  assert.ok(await hasEnded(startEnded(document.context)));
});

test('another kernel is waited for, though the first is long there', async () => {
  const document = new Document({ isReady: true, kernelDisplayStatus: 'starting' });
  document.first = Promise.resolve(false);
  document.session = { kernel: null };
  const wait = startEnded(document.context);
  assert.ok(!(await hasEnded(wait)));
  document.become({ session: { kernel: {} }, kernelDisplayStatus: 'idle' });
  assert.ok(await hasEnded(wait));
});

test('a notebook that is closed meanwhile ends the wait', async () => {
  const document = new Document();
  const wait = startEnded(document.context);
  document.isDisposed = true;
  document.disposed.emit();
  assert.ok(await hasEnded(wait));
});

test('cells are run in the order in which they were asked for', async () => {
  const document = new Document();
  const order: number[] = [];
  const waits = [1, 2, 3].map(async number => {
    await startEnded(document.context);
    order.push(number);
  });
  document.become({ session: { kernel: {} } });
  await Promise.all(waits);
  assert.deepEqual(order, [1, 2, 3]);
});
