import assert from 'node:assert/strict';
import { test } from 'node:test';

import { groups, line, matches, type ITemplate } from '../src/launcher/template_list';

function template(folder: string, title: string, about = ''): ITemplate {
  return {
    path: `templates/${folder}/${title}.ipynb`,
    folder,
    group: folder.toUpperCase(),
    title,
    about,
    kernel: 'PyTorch'
  };
}

const DIGITS = template('pytorch', 'Handwritten digits', 'Trains a small network.');

test('templates are listed by their groups, in their order', () => {
  const all = [template('data', 'b'), DIGITS, template('data', 'a')];
  const found = [...groups(all)].map(([group, members]) => [group, members.map(m => m.title)]);
  assert.deepEqual(found, [
    ['DATA', ['b', 'a']],
    ['PYTORCH', ['Handwritten digits']]
  ]);
});

test('one line says what a template is for', () => {
  const two = template('data', 'Prepare', 'Is it 2.5 times faster? It asks.');
  assert.equal(line(two), 'PyTorch · Is it 2.5 times faster?');
  assert.equal(line(template('data', 'Silent')), 'PyTorch');
});

for (const sought of ['', '  ', 'digits', 'HAND', 'pytorch digits', 'train netw', 'ipynb']) {
  test(`'${sought}' finds the digits`, () => assert.ok(matches(DIGITS, sought)));
}

for (const sought of ['igits', 'digits jax', 'resnet']) {
  test(`'${sought}' does not find the digits`, () => assert.ok(!matches(DIGITS, sought)));
}
