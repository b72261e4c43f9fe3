import assert from 'node:assert/strict';
import { test } from 'node:test';

import { accents } from '../src/look/colours';

const LOOK = { title: 'Portal', accent: '#3556c4', accent_dark: '#9db4ff' };

test('each theme has its own accent', () => {
  assert.equal(accents(LOOK, true)['--jp-brand-color1'], '#3556c4');
  assert.equal(accents(LOOK, false)['--jp-brand-color1'], '#9db4ff');
});

test('the white words on a button stand on the accent of light pages in both themes', () => {
  for (const isLight of [true, false]) {
    assert.equal(accents(LOOK, isLight)['--jp-accept-color-normal'], '#3556c4');
  }
});
