import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isName, packagesIn } from '../src/environments/packages';

test('packages are taken apart as people write them', () => {
  assert.deepEqual(packagesIn('einops, timm  lightning\n'), ['einops', 'timm', 'lightning']);
  assert.deepEqual(packagesIn('pip install "numpy>=2,<3"'), ['numpy>=2,<3']);
  assert.deepEqual(packagesIn('pip install "numpy>=2, <3"'), ['numpy>=2, <3']);
  assert.deepEqual(packagesIn("'a b.whl'"), ['a b.whl']);
  assert.deepEqual(packagesIn('  '), []);
});

test('a version or an address may stand apart from its package', () => {
  assert.deepEqual(packagesIn('numpy >= 2, < 3 timm'), ['numpy>=2,<3', 'timm']);
  assert.deepEqual(packagesIn('numpy >2 ,<3 , timm'), ['numpy>2,<3', 'timm']);
  assert.deepEqual(packagesIn('torch == 2.13.0, ray[data] ~= 2'), [
    'torch==2.13.0',
    'ray[data]~=2'
  ]);
  assert.deepEqual(packagesIn('a @ https://b/c.whl git+https://d/e@v1'), [
    'a@https://b/c.whl',
    'git+https://d/e@v1'
  ]);
});

test('a package keeps the parts of it that are asked for', () => {
  assert.deepEqual(packagesIn('pip install "ray[data,train]"'), ['ray[data,train]']);
  assert.deepEqual(packagesIn('ray[data, train]<3 timm'), ['ray[data, train]<3', 'timm']);
  assert.deepEqual(packagesIn('timm,ray[data,train],dask[array]'), [
    'timm',
    'ray[data,train]',
    'dask[array]'
  ]);
});

test('a name is what the server takes', () => {
  for (const name of ['nlp', 'my-nlp_2.0', '3d']) {
    assert.ok(isName(name), name);
  }
  for (const name of ['', '.x', '-x', 'a b', '../x', 'ä', 'x'.repeat(51)]) {
    assert.ok(!isName(name), name);
  }
});
