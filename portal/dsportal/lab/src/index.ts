// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './clock';
import { idle } from './idle';
import { jobs } from './jobs';
import { look } from './look';
import { notices } from './notices';
import { quota } from './quota';
import { templates } from './templates';
import { tensorboard } from './tensorboard';
import { tools } from './tools';
import { use } from './use';
import { visits } from './visits';
import { welcome } from './welcome';

export default [
  clock,
  idle,
  jobs,
  look,
  notices,
  quota,
  templates,
  tensorboard,
  tools,
  use,
  visits,
  welcome
];
