// The portal's logo and accent colours in JupyterLab, as on the hub's pages.

import {
  ILabShell,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IThemeManager } from '@jupyterlab/apputils';
import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ITranslator } from '@jupyterlab/translation';

import { accents, type ILook } from './colours';
import { logoLabel } from './words';

/** JupyterLab's own; a theme that a user or a site adds keeps its colours. */
const THEMES = ['JupyterLab Light', 'JupyterLab Dark'];

const PHONE_PIXELS = 600;

/** The portal's look. */
export const look: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:look',
  description: "Shows the portal's logo and accent colours.",
  autoStart: true,
  requires: [ITranslator],
  optional: [ILabShell, IThemeManager],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    shell: ILabShell | null,
    themes: IThemeManager | null
  ): void => {
    const given = readLook();
    if (!given.accent || !given.accent_dark) {
      return;
    }
    const texts = translator.load('data_scientist_portal');
    void app.restored.then(() => {
      showLogo(given, logoLabel(given.title, texts));
      makeRoom(shell);
    });
    const paint = (): void => {
      const theme = themes?.theme ?? '';
      const colours = accents(given, themes?.isLight(theme) ?? true);
      for (const [name, colour] of Object.entries(colours)) {
        // A theme's own rules are weaker than what stands at the element.
        const isOurs = THEMES.includes(theme);
        document.documentElement.style.setProperty(name, isOurs ? colour : null);
      }
    };
    themes?.themeChanged.connect(paint);
    if (themes?.theme) {
      paint();
    }
  }
};

/** On a phone the documents come first: the file browser opens with a touch on its picture. */
function makeRoom(shell: ILabShell | null): void {
  if (shell && window.innerWidth < PHONE_PIXELS) {
    shell.mode = 'single-document';
    shell.collapseLeft();
  }
}

/** What the session's server put into the page: portal/dsportal/session/page/look.py. */
export function readLook(): ILook {
  return {
    title: '',
    ...(JSON.parse(PageConfig.getOption('portalLook') || '{}') as Partial<ILook>)
  };
}

/** Put the logo, which the hub has, into the place of Jupyter's; it leads to the hub's page. */
function showLogo(given: ILook, label: string): void {
  const place = document.getElementById('jp-MainLogo');
  const hub = PageConfig.getOption('hubPrefix');
  if (!place || !hub) {
    return;
  }
  const link = document.createElement('a');
  link.href = URLExt.join(hub, 'home');
  link.target = '_blank';
  link.title = label;
  link.setAttribute('aria-label', label);
  Object.assign(link.style, { display: 'flex', height: '100%', alignItems: 'center' });
  const picture = document.createElement('img');
  picture.src = `${URLExt.join(hub, 'logo')}?v=${given.version ?? ''}`;
  picture.alt = '';
  Object.assign(picture.style, { height: '20px', margin: '0 4px 0 8px' });
  link.append(picture);
  place.replaceChildren(link);
}
