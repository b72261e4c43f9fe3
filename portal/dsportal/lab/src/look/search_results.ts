// The results of the search in files, by keyboard: jupyterlab-search-replace opens one by a click alone.

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

const RESULTS = '.jp-search-replace-list .search-tree-matches';

/** Opens a result with Enter. */
export const searchResults: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:search-results',
  description: 'Opens a result of the search in files with Enter.',
  autoStart: true,
  activate: (): void => {
    document.addEventListener('keydown', event => {
      const at = event.key === 'Enter' && event.target instanceof Element ? event.target : null;
      const result = at?.closest<HTMLElement>(RESULTS);
      if (result) {
        event.preventDefault();
        result.click();
      }
    });
  }
};
