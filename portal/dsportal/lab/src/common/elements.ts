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

/** Make a button for the status bar. */
export function statusButton(onClick: () => void): HTMLButtonElement {
  const button = element('button', 'jp-StatusBar-TextItem jp-mod-clickable');
  button.type = 'button';
  button.onclick = onClick;
  button.style.border = 'none';
  button.style.background = 'none';
  button.style.cursor = 'pointer';
  return button;
}
