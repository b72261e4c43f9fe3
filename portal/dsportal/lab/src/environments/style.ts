// What the user's environments look like, with JupyterLab's own colours.

export const ENVIRONMENTS_STYLE = `
.portal-Environments { box-sizing: border-box; height: 100%; overflow-y: auto; padding: 16px 20px;
  background: var(--jp-layout-color1); color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1); }
.portal-Environments > * { box-sizing: border-box; max-width: 56rem; }
.portal-Environments h2 { margin: 0 0 4px; font-size: var(--jp-ui-font-size3); }
.portal-Environments h3 { margin: 20px 0 4px; font-size: var(--jp-ui-font-size2); }
.portal-Environments p { margin: 4px 0; overflow-wrap: anywhere; }
.portal-Environments ul { margin: 8px 0 0; padding: 0; list-style: none; }
.portal-Environments li { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 12px;
  padding: 8px 0; border-top: 1px solid var(--jp-border-color2); }
.portal-Environments li > div { flex: 1 1 14rem; min-width: 0; overflow-wrap: anywhere; }
.portal-Environments small { display: block; color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1); }
.portal-Environments label { display: block; margin: 8px 0 2px; font-weight: 600; }
.portal-Environments input, .portal-Environments select { box-sizing: border-box; width: 100%;
  height: 30px; padding: 0 8px; border: 1px solid var(--jp-border-color1); border-radius: 3px;
  background: var(--jp-layout-color0); color: var(--jp-ui-font-color1); font: inherit; }
.portal-Environments input:focus-visible, .portal-Environments select:focus-visible {
  outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.portal-Environments form button { margin-top: 12px; }
.portal-Environments pre { max-height: 40vh; margin: 8px 0; padding: 8px; overflow: auto;
  background: var(--jp-layout-color2); color: var(--jp-content-font-color1);
  font-family: var(--jp-code-font-family); font-size: var(--jp-code-font-size);
  white-space: pre-wrap; overflow-wrap: anywhere; }
.portal-Environments [hidden] { display: none; }
`;
