// What panels are made of.

const styles = new Set<string>();

/** Add a style to the page, once. */
export function addStyle(css: string): void {
  if (!styles.has(css)) {
    styles.add(css);
    const style = document.createElement('style');
    style.textContent = css;
    document.head.append(style);
  }
}

/** Make an element with its text and class. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  text = ''
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

// What has no room at the right is cut off at its left end, where JupyterLab's own items are: how
// much time is left and Stop are always in sight.
const STATUS_BAR = `
.jp-StatusBar-Right { justify-content: flex-end; min-width: 0; overflow: hidden; }
.jp-StatusBar-Left, .jp-StatusBar-Middle, .jp-StatusBar-Right > * { flex: none; }
`;

/** Make a button for the status bar. */
export function statusButton(onClick: () => void): HTMLButtonElement {
  addStyle(STATUS_BAR);
  const button = element('button', 'jp-StatusBar-TextItem jp-mod-clickable');
  button.type = 'button';
  button.onclick = onClick;
  button.style.border = 'none';
  button.style.background = 'none';
  button.style.cursor = 'pointer';
  return button;
}
