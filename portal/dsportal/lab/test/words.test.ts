import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hour, type ITexts } from '../src/common/time';
import { copied } from '../src/launcher/words';
import * as words from '../src/session/words';

const texts: ITexts = {
  __: (text, ...values) =>
    values.reduce<string>((done, value, at) => done.replace(`%${at + 1}`, String(value)), text),
  _n: (one, many, count, ...values) => texts.__(count === 1 ? one : many, count, ...values)
};
const END = 1_790_000_000;
const now = (): number => Math.round(Date.now() / 1000);

test('the warnings fit into what JupyterLab shows of them', () => {
  const end = words.endWarning('2 h 05 min', END, '', texts);
  const unused = words.unusedWarning('2 h 05 min', END, texts);
  for (const warning of [end, unused]) {
    assert.ok(warning.includes('2 h 05 min'));
    assert.ok(warning.includes(`at ${hour(END)}`));
    assert.ok(warning.length <= 140, warning);
  }
});

test('a warning says why there is no more time, in place of what happens then', () => {
  const reason = 'Sessions cannot be extended on this portal.';
  const warning = words.endWarning('5 min', END, reason, texts);
  assert.ok(warning.endsWith(reason));
  assert.ok(!warning.includes('Kernels'));
});

test('a session says what it holds and where', () => {
  assert.equal(words.facts({ gpus: 2, node: 'node001' }, texts), '2 GPUs · node001');
  assert.equal(words.facts({ gpus: 0, node: 'node001' }, texts), 'no GPU · node001');
  assert.equal(words.facts({ gpus: 1, node: '' }, texts), '1 GPU');
  const job = { job_id: '7', gpus: 1, node: 'node001' };
  assert.equal(words.jobFacts(job, texts), 'Job 7 on node001, 1 GPU');
});

test('the question says when the session ends and how often it can be extended', () => {
  assert.equal(
    words.extensionQuestion(now(), 1, texts),
    `Ends at ${hour(now())}. 1 extension left. Extend by:`
  );
  assert.match(words.extensionQuestion(END, 3, texts), / 3 extensions left\. /);
});

test('an end that is not today is told with its day', () => {
  const [tomorrow, far] = [now() + 86_400, now() + 20 * 86_400];
  for (const said of [
    (end: number) => words.leaving(2, end, texts),
    (end: number) => words.endsAt(end, texts),
    (end: number) => words.extendableUntil(end, texts),
    (end: number) => words.extensionQuestion(end, 1, texts),
    (end: number) => words.extended(end, texts)
  ]) {
    assert.match(said(tomorrow), /\d(\s[AP]M)? on \w+day(?!, \w+ \d)/);
    assert.match(said(far), /\d(\s[AP]M)? on \w+day, .*\d/);
    assert.ok(!said(now()).includes(' on '), said(now()));
  }
});

test('what was asked for and not done has its reason', () => {
  assert.ok(words.notExtended('the hub is away', texts).endsWith('the hub is away'));
  assert.equal(words.notExtendable('No more today.', texts), 'No more today.');
  assert.ok(words.notExtendable('', texts).includes('cannot'));
  assert.ok(words.extended(END, texts).includes(`now ends at ${hour(END)}`));
});

test('an end is told with its moment and its reason, as far as they are known', () => {
  assert.equal(
    words.sessionEnded(now(), 'its time was up', texts),
    `It ended at ${hour(now())} because its time was up.`
  );
  assert.equal(words.sessionEnded(now(), '', texts), `It ended at ${hour(now())}.`);
  assert.ok(!words.sessionEnded(null, '', texts).includes('ended at'));
  assert.match(words.sessionEnded(now() - 2 * 86_400, '', texts), /^It ended on \w+day at \d/);
});

test('what is not saved is named, and else when the last of it was saved', () => {
  assert.match(words.saved(['a.ipynb', 'b.py'], END, texts), /^Not saved: a\.ipynb, b\.py\./);
  assert.ok(words.saved([], END, texts).includes(hour(END)));
  for (const changed of [[], ['a.ipynb']]) {
    assert.match(words.saved(changed, now() - 2 * 86_400, texts), / at \d.* on \w+day\.$/);
  }
  assert.equal(words.saved([], null, texts), '');
});

test('who else came in is told with the moment, and the day where that is over', () => {
  const visit = { name: 'root', at: now() };
  assert.equal(words.visited(visit, texts), `root opened this session at ${hour(visit.at)}.`);
  visit.at -= 3 * 86_400;
  assert.match(words.visited(visit, texts), /^root opened this session at \d.* on \w+day\.$/);
});

test('a lost connection says no more of the session than is known', () => {
  const said = (['silent', 'running', 'stopping'] as const).map(state =>
    words.notReached(state, texts)
  );
  assert.equal(new Set(said).size, 3);
  assert.match(said[0] ?? '', /^No connection/);
});

test('who closes the tab is told how many GPUs stay reserved, and until when', () => {
  assert.match(
    words.leaving(1, null, texts),
    /^1 GPU stays reserved .* until you stop the session\. Kernels keep running/
  );
  assert.match(words.leaving(4, 1_700_000_000, texts), /^4 GPUs stay reserved for you until \d/);
});

test('a copy says what was copied with it', () => {
  const alone = { path: 'work/mnist.ipynb', companions: [] };
  assert.equal(copied(alone, texts), 'work/mnist.ipynb is your own copy.');
  const both = { path: 'work/language.ipynb', companions: ['work/finetune.py'] };
  const said = copied(both, texts);
  assert.ok(said.startsWith('work/language.ipynb is your own copy'));
  assert.ok(said.includes('work/finetune.py'));
  assert.ok(said.length <= 140, said);
  const several = copied({ path: 'a.ipynb', companions: ['b.py', 'c.py'] }, texts);
  assert.equal(several, 'a.ipynb is your own copy, and so are b.py, c.py, which it uses.');
});

test('who stops a session is told which changes nothing can save', () => {
  assert.ok(words.stopQuestion([], texts).endsWith('changed documents are saved first.'));
  const said = words.stopQuestion(['templates/a.ipynb', 'b.py'], texts);
  assert.ok(said.endsWith('templates/a.ipynb, b.py.'));
});
