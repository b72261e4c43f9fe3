// What the extension's builder (@jupyter/builder) is told besides: the sources are TypeScript, whose
// types are checked by themselves, and the same sources give the same bytes, in whatever folder.

// What is shared, and which parts use it, is listed in an order that depends on the folder.
const LISTS = /\[[\d",\s]*\]/g;
const ENTRIES = /(?:"?\d+"?\s*:\s*\{[^{}]*\},?\s*)+/g;
const ENTRY = /"?\d+"?\s*:\s*\{[^{}]*\}/g;

function inOrder(text) {
  return text.replace(/(?:chunkMapping|moduleIdToConsumeDataMapping).*?\}\s*\}/gs, part =>
    part
      .replace(LISTS, list => JSON.stringify(JSON.parse(list).sort()))
      .replace(ENTRIES, entries => entries.match(ENTRY).sort().join(','))
  );
}

const sortShared = {
  apply(compiler) {
    const { Compilation, sources } = compiler.webpack;
    const name = 'sort-shared';
    compiler.hooks.thisCompilation.tap(name, compilation => {
      // Before names are made of contents.
      const stage = Compilation.PROCESS_ASSETS_STAGE_OPTIMIZE_COMPATIBILITY;
      compilation.hooks.processAssets.tap({ name, stage }, assets => {
        for (const [file, asset] of Object.entries(assets)) {
          const text = String(asset.source());
          const sorted = inOrder(text);
          if (sorted !== text) {
            compilation.updateAsset(file, new sources.RawSource(sorted));
          }
        }
      });
    });
  }
};

module.exports = {
  plugins: [sortShared],
  resolve: { extensions: ['.ts', '.js'] },
  optimization: { moduleIds: 'natural' },
  module: {
    rules: [
      {
        test: /\.ts$/,
        loader: 'builtin:swc-loader',
        options: { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } },
        type: 'javascript/auto'
      }
    ]
  }
};
