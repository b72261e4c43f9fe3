// The list of templates as data: what belongs together, and what is looked for.

/** What the session's server knows of a template: portal/dsportal/session/page/templates.py. */
export interface ITemplate {
  path: string;
  folder: string;
  /** Under which it is listed. */
  group: string;
  title: string;
  about: string;
  kernel: string;
}

/** The templates of each group, in the order of the list. */
export function groups(templates: ITemplate[]): Map<string, ITemplate[]> {
  const found = new Map<string, ITemplate[]>();
  for (const template of templates) {
    found.set(template.group, [...(found.get(template.group) ?? []), template]);
  }
  return found;
}

/** What a template is for, in a line: the first sentence that it says of itself. */
export function line(template: ITemplate): string {
  const [first = ''] = template.about.split(/(?<=[.?!])\s/);
  return [template.kernel, first].filter(Boolean).join(' · ');
}

/** Whether each word that is looked for begins a word of the template's texts. */
export function matches(template: ITemplate, sought: string): boolean {
  const { path, title, about, kernel } = template;
  const words = wordsOf([path, title, about, kernel].join(' '));
  return wordsOf(sought).every(part => words.some(word => word.startsWith(part)));
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
