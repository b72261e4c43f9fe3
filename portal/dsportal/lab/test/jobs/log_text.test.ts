import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  isLeftBehind,
  MOST_LETTERS,
  lastLines,
  LogText,
  matchAt,
  matchPositions,
  plain
} from '../../src/jobs/log_text';

function whole(...pieces: string[]): string {
  const log = new LogText();
  let [text, open] = ['', ''];
  for (const piece of pieces) {
    const added = log.add(piece);
    text += added.done;
    open = added.open;
  }
  return text + open;
}

test('lines are told once, and the open one until it is complete', () => {
  const log = new LogText();
  assert.deepEqual(log.add('one\ntw'), { done: 'one\n', open: 'tw' });
  assert.deepEqual(log.add('o'), { done: '', open: 'two' });
  assert.deepEqual(log.add('\n'), { done: 'two\n', open: '' });
});

test('any cut gives the same text', () => {
  const text = 'a\r\n\u001b[31mred\u001b[0m\n10%\r20%\r30%\nend';
  for (let at = 0; at <= text.length; at += 1) {
    assert.equal(whole(text.slice(0, at), text.slice(at)), 'a\nred\n30%\nend', `cut at ${at}`);
  }
});

test('of a progress bar that never ends only the newest is kept', () => {
  const log = new LogText();
  let open = '';
  for (let part = 0; part < 5000; part += 1) {
    open = log.add(`\r${part} of 5000`).open;
  }
  assert.equal(open, '4999 of 5000');
  assert.ok(JSON.stringify(log).length < 100);
});

test('of a line that never ends only the newest is kept', () => {
  const log = new LogText();
  for (let piece = 0; piece < 12; piece += 1) {
    log.add('.'.repeat(MOST_LETTERS / 4));
  }
  assert.equal(log.add('end').open.slice(-5), '..end');
  assert.ok(JSON.stringify(log).length < 1.1 * MOST_LETTERS);
});

test('what would not be kept is not read', () => {
  assert.ok(!isLeftBehind({ next: 0, size: 2 ** 20 }));
  assert.ok(isLeftBehind({ next: 2 ** 18, size: 2 ** 33 }));
});

test('colours and titles are left out', () => {
  assert.equal(plain('\u001b]0;title\u0007\u001b[1;32mgood\u001b[K'), 'good');
});

test('text is found however it is written', () => {
  assert.deepEqual(matchPositions('Error: an error', 'ERROR'), [0, 10]);
  assert.deepEqual(matchPositions('aaa', 'aa'), [0, 1]);
  assert.deepEqual(matchPositions('aaa', ''), []);
});

test('a match is found among the parts of a text', () => {
  const found = ['aba', '', 'b', 'a'].map(text => matchPositions(text, 'a'));
  assert.deepEqual(
    [0, 1, 2].map(match => matchAt(found, match)),
    [
      [0, 0],
      [0, 2],
      [3, 0]
    ]
  );
});

test('the end of a log is its last whole lines', () => {
  const log = 'step 1\nstep 2\n\nValueError: x\n\n';
  assert.equal(lastLines(log, 100), 'step 1\nstep 2\nValueError: x');
  assert.equal(lastLines(log, 21), 'step 2\nValueError: x');
  assert.equal(lastLines('a'.repeat(50), 10), 'aaaaaaaaa…');
  assert.equal(lastLines('', 10), '');
});

test('the alphabets that tput sets are no part of the text', () => {
  assert.equal(plain('\u001b[1mwarning\u001b(B\u001b[m: slow'), 'warning: slow');
  assert.equal(plain('\u001b7a\u001b8\u001b=b\u001b%G'), 'ab');
});
