import assert from 'node:assert/strict';
import { test } from 'node:test';

import { groups, matches, type ITemplate } from '../src/launcher/template_list';

function template(folder: string, title: string, about = ''): ITemplate {
  return { path: `templates/${folder}/${title}.ipynb`, folder, title, about, kernel: 'PyTorch' };
}

const DIGITS = template('pytorch', 'Handwritten digits', 'Trains a small network.');

test('templates are grouped by their folders, in their order', () => {
  const all = [template('data', 'b'), DIGITS, template('data', 'a')];
  const found = [...groups(all)].map(([folder, members]) => [folder, members.map(m => m.title)]);
  assert.deepEqual(found, [
    ['data', ['b', 'a']],
    ['pytorch', ['Handwritten digits']]
  ]);
});

for (const sought of ['', '  ', 'digits', 'HAND', 'pytorch digits', 'train netw', 'ipynb']) {
  test(`'${sought}' finds the digits`, () => assert.ok(matches(DIGITS, sought)));
}

for (const sought of ['igits', 'digits jax', 'resnet']) {
  test(`'${sought}' does not find the digits`, () => assert.ok(!matches(DIGITS, sought)));
}
