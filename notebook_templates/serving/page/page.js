// The model server's page: chooses a model, waits until it is loaded, tries it.
'use strict';

const LOOK_MILLISECONDS = 700;
const MOST_BYTES = Number(document.body.dataset.mostBytes);
const SILENT = 'The model server does not answer. Has the session ended?';
let hasConversation = false; // instead of a prompt
let messages = []; // of the conversation, as the API has them
const byId = id => document.getElementById(id);
// What the browser shows as this page's address, whatever the session has put before it.
const address = new URL('.', location.href).href.replace(/\/$/, '');

const isOf = (answer, type) => (answer.headers.get('Content-Type') ?? '').includes(type);

/** Ask the server; raises an error with its own words. */
async function reach(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    throw error.name === 'AbortError' ? error : new Error(SILENT);
  }
  if (!answer.ok) {
    const body = isOf(answer, 'application/json') ? await answer.json() : {};
    const said = body.error?.message ?? body.message ?? `The answer was ${answer.status}.`;
    throw new Error(said);
  }
  return answer;
}

const ask = async (path, options) => (await reach(path, options)).json();

const json = body => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body)
});

const post = (path, body) => ask(path, json(body));

/** Give each event of an answer that comes in parts, until it ends or is aborted. */
async function* events(path, body, signal) {
  const answer = await reach(path, { ...json({ ...body, stream: true }), signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      throw new Error(SILENT);
    }
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, '');
      if (data === '[DONE]') {
        return;
      }
      const event = JSON.parse(data);
      if (event.error) {
        throw new Error(event.error.message);
      }
      yield event;
    }
  }
}

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
    showForm(served.has_chat_template);
    showPrograms(model.kind);
  }
}

/** Show a conversation for a model that was taught some, a prompt for others. */
function showForm(isChat) {
  if (isChat === hasConversation) {
    return;
  }
  hasConversation = isChat;
  clear();
  byId('prompt-label').textContent = isChat ? 'Message' : 'Prompt';
  byId('prompt').value = isChat ? '' : 'This License';
  byId('prompt').rows = isChat ? 2 : 4;
  // An answer may be as long as the model can take.
  byId('prompt-form').elements.max_tokens.value = isChat ? '' : 40;
  byId('write').textContent = isChat ? 'Send' : 'Complete';
  byId('clear').hidden = !isChat;
}

function clear() {
  messages = [];
  byId('written').textContent = '';
  byId('conversation').replaceChildren();
  byId('conversation').hidden = true;
  byId('clear').disabled = true;
}

const EXAMPLES = {
  chat: {
    path: 'chat/completions',
    body: '{"messages": [{"role": "user", "content": "Hello"}]}',
    read: '["choices"][0]["message"]["content"]'
  },
  text: {
    path: 'completions',
    body: '{"prompt": "This License", "max_tokens": 40}',
    read: '["choices"][0]["text"]'
  },
  image: { path: 'classify', read: '["classes"]' }
};

function showPrograms(kind) {
  byId('address').textContent = address;
  const isText = kind === 'text';
  const { path, body, read } = EXAMPLES[isText && hasConversation ? 'chat' : kind];
  const url = `${address}/v1/${path}`;
  const sent = isText ? `json=${body},` : 'data=open("image.png", "rb"),';
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
    ? `-H 'Content-Type: application/json' -d '${body}'`
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
    clear();
    byId('result').hidden = true;
    await post('load', { folder });
    await follow();
  });
});

/** Add somebody's message to the conversation; returns what shows its text. */
function addTurn(role, text) {
  const turn = document.createElement('li');
  const name = document.createElement('strong');
  const content = document.createElement('span');
  name.textContent = role === 'user' ? 'You' : 'Model';
  content.textContent = text;
  turn.className = role;
  turn.append(name, content);
  byId('conversation').append(turn);
  byId('conversation').hidden = false;
  turn.scrollIntoView({ block: 'nearest' });
  return content;
}

/** Send the conversation with a new message; what is answered, or was until Stop, stays in it. */
async function converse(message, sampling, signal) {
  const asked = [...messages, { role: 'user', content: message }];
  const question = addTurn('user', message);
  byId('clear').disabled = true;
  let answer = null;
  try {
    const body = { ...sampling, messages: asked };
    for await (const event of events('v1/chat/completions', body, signal)) {
      answer ??= addTurn('assistant', '');
      answer.append(event.choices[0].delta.content ?? '');
      byId('conversation').scrollTop = byId('conversation').scrollHeight;
    }
  } finally {
    if (answer?.textContent) {
      messages = [...asked, { role: 'assistant', content: answer.textContent }];
      byId('prompt').value = '';
    } else {
      question.parentElement.remove();
      answer?.parentElement.remove();
    }
    byId('conversation').hidden = !messages.length;
    byId('clear').disabled = !messages.length;
  }
}

async function complete(prompt, sampling, signal) {
  byId('written').textContent = prompt;
  for await (const event of events('v1/completions', { ...sampling, prompt }, signal)) {
    byId('written').append(event.choices[0].text);
  }
}

byId('prompt-form').addEventListener('submit', event => {
  event.preventDefault();
  const given = new FormData(event.target);
  const prompt = given.get('prompt');
  const sampling = {
    max_tokens: Number(given.get('max_tokens')) || undefined,
    temperature: Number(given.get('temperature'))
  };
  const written = new AbortController();
  const stop = () => written.abort();
  byId('stop').addEventListener('click', stop);
  byId('stop').disabled = false;
  byId('text').ariaBusy = 'true';
  void attempt(byId('write'), async () => {
    try {
      await (hasConversation ? converse : complete)(prompt, sampling, written.signal);
    } catch (error) {
      if (error.name !== 'AbortError') {
        throw error;
      }
    } finally {
      byId('stop').removeEventListener('click', stop);
      byId('stop').disabled = true;
      byId('text').ariaBusy = 'false';
    }
  });
});

byId('prompt').addEventListener('keydown', event => {
  const isSent = event.key === 'Enter' && !event.shiftKey && !event.isComposing;
  if (hasConversation && isSent) {
    event.preventDefault();
    if (!byId('write').disabled) {
      byId('prompt-form').requestSubmit(byId('write'));
    }
  }
});

byId('clear').addEventListener('click', clear);

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
