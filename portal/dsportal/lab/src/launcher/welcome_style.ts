// How the welcome looks, in JupyterLab's own colours.

export const WELCOME_STYLE = `
.portal-welcome {
  overflow-y: auto; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1);
  border-bottom: 1px solid var(--jp-border-color2); font-size: var(--jp-ui-font-size1); line-height: 1.5;
}
.portal-welcome-inner { container-type: inline-size; max-width: 68rem; margin: 0 auto; padding: 20px 32px 24px; }
.portal-welcome header { display: flex; align-items: center; gap: 12px; }
.portal-welcome h2 { flex: 1; margin: 0; font-size: var(--jp-ui-font-size3); font-weight: 600; }
.portal-welcome h3 { margin: 0 0 2px; font-size: var(--jp-ui-font-size1); font-weight: 600; }
.portal-welcome p { margin: 0; color: var(--jp-ui-font-color1); opacity: .86; }
.portal-welcome ul, .portal-welcome ol { list-style: none; margin: 16px 0 0; padding: 0; display: grid; gap: 12px 28px; }
.portal-welcome-folders { grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
.portal-welcome-folders li { display: flex; gap: 12px; align-items: flex-start; }
.portal-welcome-folders p { padding-top: 4px; }
.portal-welcome-steps { grid-template-columns: repeat(auto-fit, minmax(min(14rem, 100%), 1fr)); counter-reset: step; }
.portal-welcome-steps li { position: relative; padding-left: 36px; counter-increment: step; }
.portal-welcome-steps li::before {
  content: counter(step); position: absolute; left: 0; top: 0; width: 24px; height: 24px; line-height: 24px;
  border-radius: 50%; text-align: center; font-weight: 600; color: white; background: var(--jp-accept-color-normal);
}
.portal-welcome-buttons { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 8px; }
.portal-welcome button {
  display: inline-flex; align-items: center; gap: 6px; min-height: 28px; flex: none; padding: 2px 12px; cursor: pointer;
  border: 1px solid var(--jp-border-color0); border-radius: 6px; background: none; color: var(--jp-ui-font-color0);
  font: inherit; font-weight: 500;
}
.portal-welcome button:hover { background: var(--jp-layout-color2); }
.portal-welcome button:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 2px; }
.portal-welcome .portal-welcome-close { border: none; padding: 4px; min-width: 28px; justify-content: center; }
.portal-welcome .portal-welcome-steps li:first-child button { background: var(--jp-accept-color-normal); border-color: transparent; color: white; }
.portal-welcome .portal-welcome-steps li:first-child button:hover { background: var(--jp-accept-color-hover); }
.portal-welcome button span { display: flex; }
@container (max-width: 30rem) {
  .portal-welcome-folders li { flex-direction: column; gap: 4px; }
}
@media (max-width: 40rem) {
  .portal-welcome-inner { padding: 12px 16px 20px; }
}
`;
