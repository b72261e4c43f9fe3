// Packages as a person writes them, in one field.

/**
 * Take packages apart at spaces, commas and new lines; quotes keep what is between them together,
 * and a comma between two versions, or in brackets, belongs to them.
 */
export function packagesIn(text: string): string[] {
  const parts = text.match(/"[^"]*"|'[^']*'|(?:\[[^\]]*\]|[^\s"'])+/g) ?? [];
  return parts
    .map(part => part.replace(/^["']|["']$/g, '').trim())
    .flatMap(part => part.split(/,(?!\s*[<>=!~]|[^[]*\])/))
    .filter(part => part !== '' && part !== 'pip' && part !== 'install' && part !== '%pip');
}

/** Say why this cannot be a name, or nothing: as the server has it. */
export function isName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/.test(text);
}
