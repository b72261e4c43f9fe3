// The list of templates in a dialog: one of them is chosen, with mouse or keyboard.

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { groups, line, matches, type ITemplate } from './template_list';
import { templateDialogLabels } from './words';

/** Chosen first: until then, Enter leads to what is listed and creates nothing. */
export class TemplateDialog extends Dialog<string | null> {
  constructor(
    private _choice: TemplateChoice,
    options: Partial<Dialog.IOptions<string | null>>
  ) {
    super({ ...options, body: _choice });
    const create = this.node.querySelector<HTMLButtonElement>('.jp-Dialog-button.jp-mod-accept');
    const update = (): void => {
      if (create) {
        create.disabled = _choice.getValue() === null;
      }
    };
    _choice.onChange = update;
    _choice.onDoubleClick = () => this.resolve();
    update();
  }

  override handleEvent(event: Event): void {
    const isEnter = event.type === 'keydown' && (event as KeyboardEvent).key === 'Enter';
    const isInList = this._choice.node.contains(event.target as Node | null);
    if (isEnter && isInList && this._choice.getValue() === null) {
      event.preventDefault();
      event.stopPropagation();
      this._choice.chooseFirst();
    } else {
      super.handleEvent(event);
    }
  }
}

/** Radio buttons under the names of groups, and a field that narrows them. */
export class TemplateChoice extends Widget implements Dialog.IBodyWidget<string | null> {
  constructor(templates: ITemplate[], texts: TranslationBundle) {
    super();
    const labels = templateDialogLabels(texts);
    this.addClass('portal-templates');
    this._search = document.createElement('input');
    this._search.type = 'search';
    this._search.placeholder = labels.search;
    this._search.setAttribute('aria-label', labels.searchLabel);
    this._search.className = 'jp-mod-styled';
    this._search.style.marginBottom = '8px';
    this._search.addEventListener('input', () => this._narrow());
    this._none = document.createElement('p');
    this._none.textContent = labels.none;
    this._none.setAttribute('role', 'status');
    const list = document.createElement('div');
    Object.assign(list.style, { height: '55vh', width: 'min(38rem, 80vw)', overflowY: 'auto' });
    for (const [title, members] of groups(templates)) {
      list.append(this._group(title, members));
    }
    list.append(this._none);
    this.node.append(this._search, list);
    this._narrow();
  }

  /** The path of the chosen template. */
  getValue(): string | null {
    const chosen = this._rows.find(row => row.input.checked && !row.node.hidden);
    return chosen?.template.path ?? null;
  }

  /** Called when another template is chosen, or none. */
  onChange: () => void = () => undefined;

  /** Called when a template is double-clicked: it is chosen then. */
  onDoubleClick: () => void = () => undefined;

  /** Choose the first that is shown, and go there. */
  chooseFirst(): void {
    const first = this._rows.find(row => !row.node.hidden);
    first?.input.focus();
    first?.input.click();
  }

  protected override onAfterAttach(): void {
    // A dialog gives all inputs the looks of a text field.
    for (const { input } of this._rows) {
      input.classList.remove('jp-mod-styled');
    }
  }

  private _group(title: string, members: ITemplate[]): HTMLElement {
    const group = document.createElement('fieldset');
    // Else it is as wide as its longest line, which then ends outside the list.
    Object.assign(group.style, { border: 'none', margin: '0 0 1rem', padding: '0', minWidth: '0' });
    const legend = document.createElement('legend');
    legend.textContent = title;
    legend.style.fontWeight = 'bold';
    group.append(legend, ...members.map(template => this._row(template)));
    this._groups.push(group);
    return group;
  }

  private _row(template: ITemplate): HTMLElement {
    const node = document.createElement('label');
    Object.assign(node.style, { display: 'block', padding: '0.25rem 0', cursor: 'pointer' });
    const input = document.createElement('input');
    input.type = 'radio';
    input.name = 'portal-template';
    input.addEventListener('change', () => this.onChange());
    const title = document.createElement('span');
    title.textContent = template.title;
    const about = document.createElement('small');
    about.textContent = line(template);
    about.title = template.about;
    Object.assign(about.style, {
      display: 'block',
      paddingLeft: '1.6rem',
      opacity: '0.8',
      overflow: 'hidden',
      textOverflow: 'ellipsis',
      whiteSpace: 'nowrap'
    });
    node.addEventListener('dblclick', () => this.onDoubleClick());
    node.append(input, ' ', title, about);
    this._rows.push({ template, node, input });
    return node;
  }

  /** Show what fits. */
  private _narrow(): void {
    for (const row of this._rows) {
      row.node.hidden = !matches(row.template, this._search.value);
      row.node.style.display = row.node.hidden ? 'none' : 'block';
    }
    for (const group of this._groups) {
      group.hidden = !group.querySelector('label:not([hidden])');
    }
    this._none.hidden = this._rows.some(row => !row.node.hidden);
    this.onChange();
  }

  private _search: HTMLInputElement;
  private _none: HTMLElement;
  private _groups: HTMLElement[] = [];
  private _rows: { template: ITemplate; node: HTMLElement; input: HTMLInputElement }[] = [];
}
