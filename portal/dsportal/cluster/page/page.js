// Keeps the page as the cluster is: the stream brings the parts that changed.
"use strict";

const RETRY_MILLISECONDS = 3000;
// The service says something every 20 seconds at least (watch.py).
const SILENCE_MILLISECONDS = 60000;
const xsrf = document.body.dataset.xsrf;
let chosen = "";

function localTimes(within) {
  const today = new Date().toDateString();
  for (const element of within.querySelectorAll("time")) {
    const moment = new Date(element.dateTime);
    const clock = { hour: "2-digit", minute: "2-digit" };
    const day = moment.toDateString() === today ? {} : { day: "numeric", month: "short" };
    element.textContent = moment.toLocaleString(undefined, { ...day, ...clock });
  }
}

function replace(id, html) {
  const element = document.getElementById(id);
  if (!element) return;
  const focused = element.contains(document.activeElement) && meaning(document.activeElement);
  element.innerHTML = html;
  localTimes(element);
  if (!focused) return;
  const buttons = [...element.querySelectorAll("button")];
  buttons.find((button) => meaning(button) === focused)?.focus();
}

// The text of a part is new, but who was on a button by keyboard stays on it, wherever it is now: at its
// old place may be the button that stops somebody else's session.
const meaning = (button) => button.value || button.dataset.partition;

function showPartition() {
  for (const chip of document.querySelectorAll("[data-partition]")) {
    chip.setAttribute("aria-pressed", String(chip.dataset.partition === chosen));
  }
  for (const node of document.querySelectorAll(".node")) {
    const of = node.dataset.partitions?.split(" ") ?? [];
    node.hidden = chosen !== "" && !of.includes(chosen);
  }
}

function show(parts) {
  for (const [id, html] of Object.entries(parts)) {
    if (id === "layout") {
      if (html !== document.body.dataset.layout) location.reload();
    } else replace(id, html);
  }
  showPartition();
}

function dated(seconds) {
  const element = document.getElementById("as-of");
  element.dateTime = new Date(seconds * 1000).toISOString();
  element.textContent = new Date(seconds * 1000).toLocaleTimeString();
}

function take(name, data) {
  if (data.as_of) dated(data.as_of);
  if (name === "parts") show(data.parts);
  if (name === "end") location.reload();
}

// EventSource cannot send the header that proves that this page asks.
async function follow() {
  const silence = new AbortController();
  const listen = () => setTimeout(() => silence.abort(), SILENCE_MILLISECONDS);
  let alarm = listen();
  const { signal } = silence;
  const answer = await fetch("events", { headers: { "X-XSRFToken": xsrf }, signal });
  if (answer.status === 403) return location.reload();
  if (!answer.ok) throw new Error(String(answer.status));
  live("live");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    clearTimeout(alarm);
    if (done) return undefined;
    alarm = listen();
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const lines = event.match(/^event: (.*)\ndata: (.*)$/);
      if (lines) take(lines[1], JSON.parse(lines[2]));
    }
  }
}

function live(words) {
  const place = document.getElementById("live");
  const text = words ? `· ${words}` : "";
  // What is set again is read out again.
  if (place.textContent !== text) place.textContent = text;
}

async function stay() {
  for (;;) {
    try {
      await follow();
    } catch {
      // The portal is away for a moment, or the network is.
    }
    live("reconnecting");
    await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
  }
}

document.addEventListener("click", (event) => {
  const chip = event.target.closest?.("[data-partition]");
  if (!chip) return;
  chosen = chip.dataset.partition === chosen ? "" : chip.dataset.partition;
  showPartition();
});

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button?.classList.contains("stop") && !confirm(button.dataset.question)) event.preventDefault();
});

localTimes(document);
stay();
