// The looks of a table, in JupyterLab's own colours, light and dark.

export const TABLE_STYLE = `
.dsp-Table {
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  display: flex;
  flex-direction: column;
  font-size: var(--jp-ui-font-size1);
}
.dsp-Table [hidden] { display: none; }
.dsp-Table-bar {
  align-items: center;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  display: flex;
  flex-wrap: wrap;
  gap: 4px 12px;
  padding: 6px 12px;
}
.dsp-Table-bar p {
  font-variant-numeric: tabular-nums;
  margin: 0;
  min-width: 0;
  overflow-wrap: anywhere;
}
.dsp-Table-rows { flex: 1; overflow: auto; }
.dsp-Table-rows:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: -2px; }
.dsp-Table table { border-collapse: separate; border-spacing: 0; }
.dsp-Table th, .dsp-Table td {
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  max-width: min(32em, 70vw);
  overflow: hidden;
  padding: 4px 10px;
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.dsp-Table thead th {
  background: var(--jp-layout-color2);
  position: sticky;
  top: 0;
  vertical-align: top;
}
.dsp-Table th small { display: block; font-weight: normal; }
.dsp-Table tbody th, .dsp-Table th.dsp-mod-number, .dsp-Table td.dsp-mod-number {
  font-variant-numeric: tabular-nums;
  text-align: right;
}
.dsp-Table tbody th { font-weight: normal; }
.dsp-Table tbody tr:hover > * { background: var(--jp-layout-color2); }
`;
