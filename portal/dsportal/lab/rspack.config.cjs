// What the extension's builder (@jupyter/builder) is told besides: the sources are TypeScript, whose
// types are checked by themselves, and the same sources give the same bytes, in whatever folder.
module.exports = {
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
