// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './clock';

export default [clock];
