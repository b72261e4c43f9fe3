// What the Slurm panel, the logs and the storage line look like, with JupyterLab's own colours.

import { LabIcon } from '@jupyterlab/ui-components';

import { element } from '../common/elements';

export const JOB_STYLE = `
.portal-Slurm { display: flex; flex-direction: column; height: 100%;
  background: var(--jp-layout-color1); color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1); min-width: 220px; }
.portal-Slurm h2 { margin: 0; padding: 10px 12px 4px; font-size: var(--jp-ui-font-size0);
  font-weight: 600; text-transform: uppercase; letter-spacing: 0.05em; }
.portal-Slurm-head { display: flex; align-items: center; padding-right: 8px; }
.portal-Slurm-head h2 { flex: 1; }
.portal-Slurm p { margin: 0; padding: 4px 12px; }
.portal-Slurm ul { margin: 0; padding: 0; list-style: none; }
.portal-Slurm [hidden] { display: none; }
.portal-Slurm-note { margin: 4px 12px 8px !important; padding: 6px 8px !important;
  border-left: 3px solid var(--jp-warn-color1); background: var(--jp-layout-color2); }
.portal-Slurm-jobs { flex: 1; min-height: 0; overflow-y: auto; }
.portal-Slurm-room { max-height: 35%; overflow-y: auto; padding-bottom: 6px;
  border-top: 1px solid var(--jp-border-color1); }
.portal-Slurm-room li { padding: 3px 12px; }
.portal-Slurm-room li > div:first-child { display: flex; gap: 8px; }
.portal-Slurm-room li span:first-child { flex: 1; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.portal-Bar { height: 4px; margin: 3px 0 2px; border-radius: 2px; overflow: hidden;
  background: var(--jp-layout-color3); }
.portal-Bar > div { height: 100%; background: var(--jp-brand-color1); }
.portal-Bar[data-full] > div { background: var(--jp-error-color1); }
.portal-Job { padding: 7px 12px 8px; border-top: 1px solid var(--jp-border-color2); }
.portal-Job-head { display: flex; align-items: baseline; gap: 8px; }
.portal-Job-name { flex: 1; font-weight: 600; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.portal-Job-state { white-space: nowrap; max-width: 60%; overflow: hidden; text-overflow: ellipsis; }
.portal-Job-state::before { content: ''; display: inline-block; width: 8px; height: 8px;
  margin-right: 5px; border-radius: 50%; background: var(--jp-layout-color4); }
.portal-Job[data-look='good'] .portal-Job-state::before { background: var(--jp-success-color1); }
.portal-Job[data-look='waiting'] .portal-Job-state::before { background: var(--jp-warn-color1); }
.portal-Job[data-look='bad'] .portal-Job-state::before { background: var(--jp-error-color1); }
.portal-Job-line { padding-top: 2px; overflow-wrap: anywhere; }
.portal-Job-line.portal-mod-reason { color: var(--jp-ui-font-color1); font-style: italic; }
.portal-Job-buttons { display: flex; gap: 6px; padding-top: 5px; }
.portal-Button { padding: 2px 8px; min-height: 24px; border: 1px solid var(--jp-border-color1);
  border-radius: 3px; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1);
  font: inherit; font-size: var(--jp-ui-font-size0); cursor: pointer; }
.portal-Button.portal-mod-plain { border-color: transparent; padding: 2px 4px; line-height: 0; }
.portal-Button:hover:not(:disabled) { background: var(--jp-layout-color2); }
.portal-Button:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.portal-Button:disabled { opacity: 0.6; cursor: default; }
.portal-Button[aria-pressed='true'] { border-color: var(--jp-brand-color1);
  background: var(--jp-layout-color2); font-weight: 600; }
.portal-Log { display: flex; flex-direction: column; background: var(--jp-layout-color0);
  color: var(--jp-content-font-color1); font-size: var(--jp-ui-font-size1); }
.portal-Log-bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 4px 8px;
  border-bottom: 1px solid var(--jp-border-color2); background: var(--jp-layout-color1); }
.portal-Log-bar input { width: 12em; min-width: 6em; height: 24px; padding: 0 6px;
  box-sizing: border-box; border: 1px solid var(--jp-border-color1); border-radius: 3px;
  background: var(--jp-layout-color0); color: var(--jp-ui-font-color1); font: inherit; }
.portal-Log-bar [role='status'] { min-width: 5em; }
.portal-Log-text { flex: 1; min-height: 0; margin: 0; padding: 8px 12px; overflow: auto;
  font-family: var(--jp-code-font-family); font-size: var(--jp-code-font-size);
  line-height: var(--jp-code-line-height); white-space: pre-wrap; overflow-wrap: anywhere; }
.portal-Log-text:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: -2px; }
/* The last parts are laid out always: the end is where a reader is. */
.portal-Log-text > div:not(:nth-last-child(-n + 2)) { content-visibility: auto;
  contain-intrinsic-size: auto 300px; }
.portal-Log-foot { padding: 3px 12px; border-top: 1px solid var(--jp-border-color2);
  background: var(--jp-layout-color1); overflow-wrap: anywhere; }
::highlight(portal-found) { background-color: var(--jp-search-selected-match-background-color, gold);
  color: var(--jp-search-selected-match-color, black); }
.portal-Storage { flex: 0 0 auto; padding: 4px 12px 5px; border-top: 1px solid var(--jp-border-color2);
  color: var(--jp-ui-font-color1); font-size: var(--jp-ui-font-size0); }
.portal-Storage[data-full] { font-weight: 600; }
.portal-Storage:empty { display: none; }
`;

/** The cluster: GPUs as squares, some of them taken. */
export const slurmIcon = new LabIcon({
  name: 'data-scientist-portal:slurm',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M3 3h8v8H3zM13 13h8v8h-8z"/>
    <path d="M13 3h8v8h-8zm2 2v4h4V5zM3 13h8v8H3zm2 2v4h4v-4z"/>
  </g></svg>`
});

/** Make a button. */
export function button(text: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', 'portal-Button', text);
  made.type = 'button';
  made.addEventListener('click', onClick);
  return made;
}

/** Make a bar that says nothing to those who cannot see it: the words stand beside it. */
export function bar(part: number, isFull = false): HTMLElement {
  const made = element('div', 'portal-Bar');
  made.setAttribute('aria-hidden', 'true');
  made.toggleAttribute('data-full', isFull);
  const filled = element('div');
  filled.style.width = `${Math.round(100 * part)}%`;
  made.append(filled);
  return made;
}
