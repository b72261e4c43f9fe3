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

/**
 * Make a change; what has the keyboard's focus keeps it, also where it moves. Where it goes away,
 * another element has it.
 */
export function keepFocus(within: HTMLElement, change: () => void, other: HTMLElement): void {
  const focused = document.activeElement as HTMLElement | null;
  if (!focused || !within.contains(focused)) {
    change();
    return;
  }
  change();
  if (!within.contains(focused) || focused.matches(':disabled, [hidden]')) {
    other.focus();
  } else if (!within.contains(document.activeElement)) {
    focused.focus();
  }
}

/** More than there are at the right of the status bar. */
const MOST_ITEMS = 20;
// What has no room is left out, item by item: it wraps into a row that is not shown. At the right
// that begins with the left end, where JupyterLab's own items are, so that is filled from its right
// end: how much time is left and Stop are always in sight, and have room before what is at the left.
const STATUS_BAR = `
.jp-StatusBar-Left, .jp-StatusBar-Right { height: var(--jp-statusbar-height); overflow: clip; }
.jp-StatusBar-Left { flex: 0 1 auto; flex-wrap: wrap; min-width: 0; }
.jp-StatusBar-Right {
  flex: 0 1000000 auto;
  flex-flow: row-reverse wrap !important;
  min-width: min(17rem, 70%);
}
.jp-StatusBar-Middle, .jp-StatusBar-Left > *, .jp-StatusBar-Right > * { flex: none; }
${Array.from({ length: MOST_ITEMS }, (_, at) => `.jp-StatusBar-Right > :nth-last-child(${at + 1}) { order: ${at} }`).join('\n')}
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
