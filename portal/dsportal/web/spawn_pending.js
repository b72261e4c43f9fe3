require(["jquery", "jhapi"], ($, JHAPI) => {
  const WORDS = {
    notStarted: "Your session could not be started",
    notKnown: "Not known yet",
    now: "now",
    soon: "any moment",
    cancel: "Cancel",
    cancelling: "Cancelling…",
    silent: "the hub is not responding",
    notCancelled: (why) => `It could not be cancelled: ${why}.`,
    about: (when, left) => `about ${when} (in ${left})`,
  };
  const data = JSON.parse(document.getElementById("spawn-data").textContent);
  const api = new JHAPI(window.jhdata.base_url);
  const part = (id) => document.getElementById(id);
  const bar = part("progress-bar");
  const cancel = part("cancel");
  let since = null;
  let expected = null;
  let isOver = false;

  const clock = (date) => date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const span = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 60) return `${whole} s`;
    const minutes = Math.round(whole / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  };
  const day = (date) =>
    date.toDateString() === new Date().toDateString()
      ? ""
      : `${date.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" })}, `;

  const tick = () => {
    if (since !== null) part("progress-waited").textContent = span((Date.now() - since) / 1000);
    if (expected !== null) {
      const left = (expected - Date.now()) / 1000;
      part("progress-expected").textContent =
        left > 0 ? WORDS.about(`${day(expected)}${clock(expected)}`, span(left)) : WORDS.soon;
    }
  };

  const log = (words) => {
    const item = document.createElement("li");
    item.textContent = `${clock(new Date())} ${words}`;
    part("progress-log").append(item);
  };

  const over = (isFailed) => {
    isOver = true;
    bar.classList.remove("progress-bar-animated", "progress-bar-striped");
    if (isFailed) {
      bar.classList.add("bg-danger");
      cancel.hidden = true;
      part("again").hidden = false;
      part("progress-hint").hidden = true;
      part("progress-advice").hidden = true;
      part("progress-times").hidden = true;
      part("progress-title").textContent = WORDS.notStarted;
    }
  };

  const show = (event) => {
    const last = part("progress-message").textContent;
    if (event.progress !== undefined) {
      bar.style.width = `${event.progress}%`;
      bar.setAttribute("aria-valuenow", event.progress);
    }
    if (event.html_message && event.failed) {
      // Made and escaped by the hub: why a start failed, and the end of the job's log.
      part("progress-message").innerHTML = event.html_message;
    } else if (event.message && event.message !== last) {
      part("progress-message").textContent = event.message;
    }
    if (event.message && event.message !== last) log(event.message);
    part("progress-advice").textContent = event.advice || "";
    part("progress-advice").hidden = !event.advice;
    if (event.since) since = new Date(event.since);
    expected = event.expected ? new Date(event.expected) : null;
    if (expected === null && !isOver) {
      part("progress-expected").textContent =
        event.progress >= 70 ? WORDS.now : WORDS.notKnown;
    }
    tick();
    if (event.ready) {
      over(false);
      window.location.reload();
    }
    if (event.failed) over(true);
  };

  const listen = () => {
    const source = new EventSource(data.progress_url);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      show(event);
      if (event.ready || event.failed) source.close();
    };
    source.onerror = () => {
      // The hub restarts, or there is nothing to be told any more: the page itself knows.
      source.close();
      if (!isOver) setTimeout(() => window.location.reload(), 3000);
    };
  };

  cancel.disabled = false;
  cancel.addEventListener("click", () => {
    cancel.disabled = true;
    cancel.textContent = WORDS.cancelling;
    const done = () => {
      isOver = true;
      window.location = `${window.jhdata.base_url}home`;
    };
    const failed = (request) => {
      cancel.disabled = false;
      cancel.textContent = WORDS.cancel;
      const why = request.responseJSON && request.responseJSON.message;
      part("cancel-status").textContent = WORDS.notCancelled(why || WORDS.silent);
    };
    const options = { success: done, error: failed };
    if (data.server) api.stop_named_server(data.user, data.server, options);
    else api.stop_server(data.user, options);
  });

  listen();
  setInterval(tick, 1000);
  // As on JupyterHub's own pages: tells that the page's script has run.
  window._jupyterhub_page_loaded = true;
});
