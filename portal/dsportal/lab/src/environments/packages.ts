// Packages as a person writes them, in one field.

/** What stands between a package and its version, or its address, in `numpy >= 2`. */
const SIGN = /\s*[<>=!~]+\s*|\s*,\s*(?=[<>=!~])|\s+@\s+/;
const PART = new RegExp(`"[^"]*"|'[^']*'|(?:\\[[^\\]]*\\]|${SIGN.source}|[^\\s"'])+`, 'g');
const SIGNS = new RegExp(SIGN, 'g');

/**
 * Take packages apart at spaces, commas and new lines; quotes keep what is between them together,
 * and a comma between two versions, or in brackets, belongs to them, as do spaces around a sign.
 */
export function packagesIn(text: string): string[] {
  const parts = text.match(PART) ?? [];
  return parts
    .map(part => (/^["']/.test(part) ? part.slice(1, -1).trim() : withoutSpaces(part)))
    .flatMap(part => part.split(/,(?!\s*[<>=!~]|[^[]*\])/))
    .filter(part => part !== '' && part !== 'pip' && part !== 'install' && part !== '%pip');
}

function withoutSpaces(part: string): string {
  return part.replace(SIGNS, sign => sign.trim());
}

/** Say why this cannot be a name, or nothing: as the server has it. */
export function isName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/.test(text);
}
