// The model server's page: chooses a model, waits until it is loaded, tries it.
'use strict';

const LOOK_MILLISECONDS = 700;
const MOST_BYTES = Number(document.body.dataset.mostBytes);
const byId = id => document.getElementById(id);
// What the browser shows as this page's address, whatever the session has put before it.
const address = new URL('.', location.href).href.replace(/\/$/, '');

/** Ask the server; raises an error with its own words. */
async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error('The model server does not answer. Has the session ended?');
  }
  const isJson = (answer.headers.get('Content-Type') ?? '').includes('application/json');
  const body = isJson ? await answer.json() : {};
  if (!answer.ok) {
    const said = body.error?.message ?? body.message ?? `The answer was ${answer.status}.`;
    throw new Error(said);
  }
  return body;
}

const post = (path, body) =>
  ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body)
  });

function complain(message) {
  byId('error').textContent = message;
  byId('error').hidden = !message;
}

/** Do something for the user, who sees what goes wrong. */
async function attempt(button, action) {
  complain('');
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    complain(error.message);
  } finally {
    button.disabled = false;
  }
}

function show(served) {
  const model = served.model;
  const words = {
    empty: '',
    loading: `Loading ${model?.name} (${model?.size_mb} MB), ${Math.round(served.seconds)} s`,
    ready: `${model?.name} is loaded; it took ${served.seconds?.toFixed(1)} s.`,
    failed: `${model?.name} is not loaded.`
  };
  byId('status').textContent = words[served.state];
  byId('progress').hidden = served.state !== 'loading';
  if (served.state === 'failed') {
    complain(served.error);
  }
  const isReady = served.state === 'ready';
  byId('text').hidden = !isReady || model.kind !== 'text';
  byId('image').hidden = !isReady || model.kind !== 'image';
  byId('openai').hidden = !isReady || model.kind !== 'text';
  byId('programs').hidden = !isReady;
  if (isReady) {
    showPrograms(model.kind);
  }
}

function showPrograms(kind) {
  byId('address').textContent = address;
  const isText = kind === 'text';
  const url = `${address}/v1/${isText ? 'completions' : 'classify'}`;
  const sent = isText
    ? 'json={"prompt": "This License", "max_tokens": 40},'
    : 'data=open("image.png", "rb"),';
  const read = isText ? '["choices"][0]["text"]' : '["classes"]';
  byId('python').textContent = [
    'import os',
    'import requests',
    '',
    'answer = requests.post(',
    `    "${url}",`,
    '    headers={"Authorization": f"Bearer {os.environ[\'TOKEN\']}"},',
    `    ${sent}`,
    '    timeout=60,',
    ')',
    'answer.raise_for_status()',
    `print(answer.json()${read})`
  ].join('\n');
  const data = isText
    ? `-H 'Content-Type: application/json' -d '{"prompt": "This License", "max_tokens": 40}'`
    : `-H 'Content-Type: image/png' --data-binary @image.png`;
  byId('curl').textContent =
    `curl -H "Authorization: Bearer $TOKEN" \\\n  ${data} \\\n  ${url}`;
}

/** Ask for the state until nothing is being loaded any more. */
async function follow() {
  let served = await ask('state');
  show(served);
  while (served.state === 'loading') {
    await new Promise(resolve => setTimeout(resolve, LOOK_MILLISECONDS));
    served = await ask('state');
    show(served);
  }
}

async function classify(file) {
  if (file.size > MOST_BYTES) {
    throw new Error(`${file.name} is larger than ${MOST_BYTES / 2 ** 20} MiB.`);
  }
  const given = await ask('v1/classify', {
    method: 'POST',
    headers: { 'Content-Type': file.type || 'application/octet-stream' },
    body: file
  });
  URL.revokeObjectURL(byId('picture').src);
  byId('picture').src = URL.createObjectURL(file);
  const rows = given.classes.map(one => {
    const row = document.createElement('tr');
    for (const text of [one.name, `${(100 * one.probability).toFixed(1)} %`]) {
      row.insertCell().textContent = text;
    }
    return row;
  });
  byId('classes').replaceChildren(...rows);
  byId('result').hidden = false;
}

byId('choice').addEventListener('submit', event => {
  event.preventDefault();
  const given = new FormData(event.target);
  const folder = given.get('other').trim() || given.get('folder');
  void attempt(event.submitter, async () => {
    if (!folder) {
      throw new Error('Choose a model, or enter a folder.');
    }
    byId('written').textContent = '';
    byId('result').hidden = true;
    await post('load', { folder });
    await follow();
  });
});

byId('prompt-form').addEventListener('submit', event => {
  event.preventDefault();
  const given = new FormData(event.target);
  void attempt(event.submitter, async () => {
    const answer = await post('v1/completions', {
      prompt: given.get('prompt'),
      max_tokens: Number(given.get('max_tokens')),
      temperature: Number(given.get('temperature'))
    });
    byId('written').textContent = given.get('prompt') + answer.choices[0].text;
  });
});

const drop = byId('drop');
const file = byId('file');
file.addEventListener('change', () => {
  if (file.files.length) {
    void attempt(file, () => classify(file.files[0]));
  }
});
drop.addEventListener('dragover', event => {
  event.preventDefault();
  drop.classList.add('over');
});
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', event => {
  event.preventDefault();
  drop.classList.remove('over');
  if (event.dataTransfer.files.length) {
    void attempt(file, () => classify(event.dataTransfer.files[0]));
  }
});

follow().catch(error => complain(error.message));
