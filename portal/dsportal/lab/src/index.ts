// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './session/clock';
import { download } from './storage/download';
import { documentation } from './look/documentation';
import { idle } from './session/idle';
import { jobs } from './jobs/panel';
import { leave } from './session/leave';
import { connectionLost, life } from './session/life';
import { look } from './look/look';
import { notices } from './storage/notices';
import { notify } from './notify/plugin';
import { environments } from './environments/plugin';
import { executor } from './kernels/plugin';
import { quota } from './storage/quota';
import { restoring } from './session/restoring';
import { saving } from './session/saving';
import { searchResults } from './look/search_results';
import { sharing } from './share/plugin';
import { stop } from './session/stop';
import { tables } from './tables/plugin';
import { templates } from './launcher/templates';
import { tensorboard } from './launcher/tensorboard';
import { tools } from './launcher/tools';
import { use } from './usage/plugin';
import { visits } from './session/visits';
import { welcome } from './launcher/welcome';

export default [
  clock,
  connectionLost,
  documentation,
  download,
  environments,
  executor,
  idle,
  jobs,
  leave,
  life,
  look,
  notices,
  notify,
  quota,
  restoring,
  saving,
  searchResults,
  sharing,
  stop,
  tables,
  templates,
  tensorboard,
  tools,
  use,
  visits,
  welcome
];
