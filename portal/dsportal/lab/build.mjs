// Build the extension into OUT: node build.mjs OUT
//
// JupyterLab loads an extension as a container of webpack's module federation: a script that puts
// an object with init() and get() into window._JUPYTERLAB. This writes one by hand around a bundle
// of esbuild's. Nothing of JupyterLab is bundled: what its page shares is taken from there.

import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const [out] = process.argv.slice(2);
const described = JSON.parse(readFileSync('package.json', 'utf-8'));
const { name, version, description, license } = described;

const bundle = await build({
  entryPoints: ['src/index.ts'],
  bundle: true,
  write: false,
  metafile: true,
  format: 'cjs',
  platform: 'neutral',
  target: 'es2022',
  external: ['@jupyterlab/*', '@lumino/*', 'react', 'react-dom'],
  logLevel: 'warning'
});
const shared = Object.values(bundle.metafile.outputs)
  .flatMap(output => output.imports)
  .filter(imported => imported.external)
  .map(imported => imported.path);

const container = `// Made by build.mjs of ${name}.
(() => {
const NEEDED = ${JSON.stringify([...new Set(shared)].sort())};
let scope = {};
const loaded = {};
async function take(name) {
  const versions = Object.values(scope[name] ?? {});
  // The page has one instance of each; if an extension brought another, the page's own counts.
  const chosen =
    versions.find(version => version.from === '@jupyterlab/application-top') ??
    versions.find(version => version.loaded) ??
    versions[0];
  if (!chosen) {
    throw new Error('JupyterLab does not share ' + name);
  }
  loaded[name] = (await chosen.get())();
}
function run(module, exports, require) {
${bundle.outputFiles[0].text}}
(globalThis._JUPYTERLAB ??= {})[${JSON.stringify(name)}] = {
  init: shared => { scope = shared; },
  get: async () => {
    await Promise.all(NEEDED.map(take));
    const module = { exports: {} };
    run(module, module.exports, name => loaded[name]);
    return () => module.exports;
  }
};
})();
`;

// It asks for the proxied servers that are not there: tools and TensorBoards have cards of ours.
const replaced = ['@jupyterhub/jupyter-server-proxy'];

const hash = createHash('sha256').update(container).digest('hex').slice(0, 16);
const load = `static/remoteEntry.${hash}.js`;
mkdirSync(join(out, 'static'), { recursive: true });
writeFileSync(join(out, load), container);
// What a plugin can be set to, by its name.
cpSync('schema', join(out, 'schemas', name), { recursive: true });
const installed = {
  name,
  version,
  description,
  license,
  jupyterlab: {
    extension: true,
    disabledExtensions: replaced,
    _build: { load, extension: './extension' }
  }
};
writeFileSync(join(out, 'package.json'), JSON.stringify(installed, null, 2) + '\n');
