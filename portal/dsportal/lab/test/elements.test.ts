import assert from 'node:assert/strict';
import { test } from 'node:test';

import { keepFocus } from '../src/common/elements';

/** Stands for an element of a page. */
class Node {
  isThere = true;
  isUsable = true;
  matches = () => !this.isUsable;
  focus = () => Object.assign(page, { activeElement: this });
}

const page = { activeElement: null as Node | null };
Object.assign(globalThis, { document: page });

function focusedAfter(change: (button: Node) => void, isWithin = true): string {
  const [button, other] = [new Node(), new Node()];
  const view = { contains: (node: Node | null) => isWithin && !!node?.isThere };
  button.focus();
  const made = () => change(button);
  keepFocus(view as unknown as HTMLElement, made, other as unknown as HTMLElement);
  return page.activeElement === other ? 'other' : page.activeElement === button ? 'button' : '';
}

test('the focus moves on where a change takes away or disables what has it', () => {
  assert.equal(
    focusedAfter(button => (button.isThere = false)),
    'other'
  );
  assert.equal(
    focusedAfter(button => (button.isUsable = false)),
    'other'
  );
});

test('the focus stays with what would lose it by being moved', () => {
  assert.equal(
    focusedAfter(() => (page.activeElement = null)),
    'button'
  );
});

test('the focus stays where nothing has become of what has it, or it is elsewhere', () => {
  assert.equal(
    focusedAfter(() => undefined),
    'button'
  );
  assert.equal(
    focusedAfter(button => (button.isUsable = false), false),
    'button'
  );
});
