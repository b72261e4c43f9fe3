// The looks of "My GPUs", in JupyterLab's own colours, light and dark.

export const USE_STYLE = `
.dsp-Use {
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1);
  line-height: 1.4;
  min-width: 220px;
  overflow: auto;
  padding: 0 12px 12px;
}
.dsp-Use h2 { font-size: var(--jp-ui-font-size2); margin: 12px 0 8px; }
.dsp-Use h3 {
  border-top: var(--jp-border-width) solid var(--jp-border-color2);
  font-size: var(--jp-ui-font-size1);
  margin: 14px 0 6px;
  padding-top: 10px;
}
.dsp-Use p { margin: 0; }
.dsp-Use small {
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size0);
  font-weight: normal;
}
.dsp-Use [hidden] { display: none; }
.dsp-Use .dsp-Use-hint {
  background: var(--jp-layout-color2);
  border-left: 4px solid var(--jp-warn-color1);
  margin-bottom: 6px;
  padding: 4px 8px;
}
.dsp-Use-figure {
  align-items: baseline;
  display: flex;
  gap: 8px;
}
.dsp-Use section > div { margin-top: 8px; }
.dsp-Use-figure strong {
  flex: 1;
  font-variant-numeric: tabular-nums;
  font-weight: 600;
  text-align: right;
}
.dsp-Use-mark::before {
  border-top: 2px solid var(--jp-brand-color1);
  content: '';
  display: inline-block;
  margin-right: 6px;
  vertical-align: middle;
  width: 14px;
}
.dsp-Use-mark.dsp-mod-second::before {
  border-top: 2px dashed var(--jp-accent-color1);
}
.dsp-Use-chart {
  background: var(--jp-layout-color2);
  border-radius: 2px;
  display: block;
  height: 44px;
  margin-top: 2px;
  width: 100%;
}
.dsp-Use-chart path { fill: none; vector-effect: non-scaling-stroke; }
.dsp-Use-chart .dsp-Use-area { fill: var(--jp-brand-color1); opacity: 0.15; }
.dsp-Use-line {
  stroke: var(--jp-brand-color1);
  stroke-linecap: round;
  stroke-linejoin: round;
  stroke-width: 1.5px;
}
.dsp-Use-line.dsp-mod-second {
  stroke: var(--jp-accent-color1);
  stroke-dasharray: 4 2;
}
.dsp-Use-limit {
  stroke: var(--jp-ui-font-color2);
  stroke-dasharray: 2 3;
  stroke-width: 1px;
}
.dsp-Use-cursor { stroke: var(--jp-ui-font-color1); stroke-width: 1px; }
.dsp-Use-axis {
  display: flex;
  font-size: var(--jp-ui-font-size0);
  justify-content: space-between;
}
.dsp-Use details { margin-top: 16px; }
.dsp-Use summary { cursor: pointer; }
.dsp-Use summary:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 2px;
}
.dsp-Use table {
  border-collapse: collapse;
  font-size: var(--jp-ui-font-size0);
  margin-top: 6px;
  width: 100%;
}
.dsp-Use th, .dsp-Use td {
  border-bottom: var(--jp-border-width) solid var(--jp-border-color2);
  font-weight: normal;
  padding: 4px 0;
  text-align: left;
  vertical-align: top;
}
.dsp-Use th[scope='col'], .dsp-Use th[scope='rowgroup'] { font-weight: 600; }
.dsp-Use th[scope='rowgroup'] { padding-top: 12px; }
.dsp-Use th[scope='col'], .dsp-Use td {
  padding: 4px 0 4px 8px;
  text-align: right;
  white-space: nowrap;
}
.dsp-Use td { font-variant-numeric: tabular-nums; }
.dsp-Use-item {
  background: none;
  border: none;
  cursor: pointer;
}
.dsp-Use-item.dsp-mod-hint { font-weight: 600; }
.dsp-Use-item.dsp-mod-hint::before {
  background: var(--jp-warn-color1);
  border-radius: 50%;
  content: '';
  display: inline-block;
  height: 8px;
  margin-right: 6px;
  width: 8px;
}
`;
