// From the site's accents to JupyterLab's variables.

/** Title, whom to ask, accents and the version of the logo: portal/dsportal/look.py. */
export interface ILook {
  title: string;
  support?: string;
  accent?: string;
  accent_dark?: string;
  version?: string;
  /** Where the portal's documentation is, below the hub; empty where there is none. */
  documentation?: string;
}

/** The variables of a theme that are to be ours; lighter shades are for backgrounds. */
export function accents(look: ILook, isLight: boolean): Record<string, string> {
  const accent = (isLight ? look.accent : look.accent_dark) ?? '';
  // What stands on a button is white in both themes.
  const button = look.accent ?? '';
  const mix = (share: number, other: string): string =>
    `color-mix(in srgb, ${accent} ${share}%, ${other})`;
  return {
    '--jp-brand-color0': mix(80, isLight ? 'black' : 'white'),
    '--jp-brand-color1': accent,
    '--jp-brand-color2': mix(65, 'white'),
    '--jp-brand-color3': mix(30, 'white'),
    '--jp-brand-color4': mix(12, 'white'),
    '--jp-content-link-color': accent,
    '--jp-content-link-hover-color': accent,
    '--jp-accept-color-normal': button,
    '--jp-accept-color-hover': `color-mix(in srgb, ${button} 85%, black)`,
    '--jp-accept-color-active': `color-mix(in srgb, ${button} 70%, black)`
  };
}
