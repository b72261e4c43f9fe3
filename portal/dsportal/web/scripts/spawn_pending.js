require(["jquery", "jhapi"], ($, JHAPI) => {
  const WORDS = {
    notStarted: "Your session could not be started",
    requested: "Session requested",
    waiting: ({ gpus, server }) => {
      const start = server ? `“${server}” is waiting` : "Waiting";
      if (!gpus) return `${start} in the queue`;
      return `${start} for ${gpus === 1 ? "1 GPU" : `${gpus} GPUs`}`;
    },
    starting: ({ server }) => (server ? `Starting JupyterLab for “${server}”` : "Starting JupyterLab"),
    notKnown: "Not known yet",
    now: "now",
    soon: "any moment",
    cancel: "Cancel",
    cancelling: "Cancelling…",
    cancelled: "The start was cancelled",
    isCancelled: (job) =>
      `${job ? `Job ${job}` : "It"} was cancelled before JupyterLab started. Nothing is reserved.`,
    notified: "Your browser will tell you when the session is ready.",
    notNotified: "Your browser blocks notifications from the portal.",
    notEncrypted:
      "Browsers allow notifications only over HTTPS. You can follow the progress in this tab's title.",
    noNotifications:
      "This browser does not support notifications. You can follow the progress in this tab's title.",
    titles: {
      waiting: ({ position, waiting }) => (position ? `${position} of ${waiting} · Waiting` : "Waiting"),
      starting: "Starting JupyterLab",
      ready: "Ready",
      notStarted: "Not started",
      cancelled: "Cancelled",
    },
    ready: "Your session is ready",
    fewer: (gpus) =>
      `${gpus === 1 ? "1 GPU is" : `${gpus} GPUs are`} free now: ask for ${gpus === 1 ? "it" : "them"} instead`,
    position: ({ position, waiting, partition }) => `${position} of ${waiting} in ${partition}, by priority`,
    silent: "the hub is not responding",
    notCancelled: (why) => `It could not be cancelled: ${why.replace(/\.$/, "")}.`,
    by: (when, left) => `by ${when} (within ${left})`,
  };
  const data = JSON.parse(document.getElementById("spawn-data").textContent);
  const api = new JHAPI(window.jhdata.base_url);
  const part = (id) => document.getElementById(id);
  const bar = part("progress-bar");
  const cancel = part("cancel");
  const change = part("change");
  const fewer = part("fewer");
  const notify = part("notify");
  const NOTIFY = "portal-notify";
  // The hub says something every 10 seconds (jupyterhub_gpu_slurm/session/start.py).
  const SILENCE_MILLISECONDS = 60000;
  const RETRY_MILLISECONDS = 3000;
  let job = null;
  let isCancelled = false;
  let since = null;
  let expected = null;
  let isOver = false;
  // By how much the hub's clock is ahead: the browser's may be off.
  let ahead = 0;

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
    const now = Date.now() + ahead;
    if (since !== null) part("progress-waited").textContent = span((now - since) / 1000);
    if (expected !== null) {
      const left = (expected - now) / 1000;
      part("progress-expected").textContent =
        left > 0 ? WORDS.by(`${day(expected)}${clock(expected)}`, span(left)) : WORDS.soon;
    }
  };

  // What somebody sees who works in another tab.
  const entitle = (words) => {
    document.title = `${words} · ${data.title}`;
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
      for (const one of [cancel, change, fewer, notify, part("notify-words")]) one.hidden = true;
      part("again").hidden = false;
      part("progress-hint").hidden = true;
      part("progress-advice").hidden = true;
      part("progress-times").hidden = true;
      part("progress-title").textContent = WORDS.notStarted;
      entitle(WORDS.titles.notStarted);
    }
  };

  // JupyterHub's own events call the session a server, and a start a spawn.
  const wordsOf = ({ ready, message = "" }) =>
    ready
      ? WORDS.ready
      : message
          .replace(/^Server requested$/, WORDS.requested)
          .replace(/^Spawn cancelled$/, WORDS.cancelled)
          .replace(/^Spawn failed/, WORDS.notStarted);

  const show = (event) => {
    if (event.job) job = event.job;
    if (event.now) ahead = new Date(event.now) - Date.now();
    // The end of a start that is being cancelled looks like any: failed, or for a moment ready.
    if (isCancelled) return;
    const words = wordsOf(event);
    const last = part("progress-message").textContent;
    if (event.progress !== undefined) {
      bar.style.width = `${event.progress}%`;
      bar.setAttribute("aria-valuenow", event.progress);
    }
    if (event.html_message && event.failed) {
      // Made and escaped by the hub: why a start failed, and the end of the job's log.
      part("progress-message").innerHTML = event.html_message;
    } else if (words && words !== last) {
      part("progress-message").textContent = words;
    }
    if (words && words !== last) log(words);
    if (event.state === "PENDING") {
      part("progress-title").textContent = WORDS.waiting(data);
      entitle(WORDS.titles.waiting(event));
    }
    if (event.state === "RUNNING") {
      part("progress-title").textContent = WORDS.starting(data);
      entitle(WORDS.titles.starting);
    }
    part("progress-advice").textContent = event.advice || "";
    part("progress-advice").hidden = !event.advice;
    fewer.hidden = !event.fewer_free;
    if (event.fewer_free) {
      fewer.textContent = WORDS.fewer(event.fewer_free);
      fewer.value = event.fewer_free;
    }
    part("progress-position-row").hidden = !event.position;
    if (event.position) part("progress-position").textContent = WORDS.position(event);
    if (event.since) since = new Date(event.since);
    expected = event.expected ? new Date(event.expected) : null;
    if (expected === null && !isOver) {
      part("progress-expected").textContent =
        event.state === "RUNNING" ? WORDS.now : WORDS.notKnown;
    }
    tick();
    if (event.ready) {
      over(false);
      entitle(WORDS.titles.ready);
      tell();
      window.location.reload();
    }
    if (event.failed) over(true);
  };

  // A notification, where the user has asked for one on this page, and does not look at it.
  const tell = () => {
    const isWanted = sessionStorage.getItem(NOTIFY) && Notification.permission === "granted";
    sessionStorage.removeItem(NOTIFY);
    if (!isWanted || document.hasFocus()) return;
    try {
      new Notification(WORDS.ready, { tag: NOTIFY });
    } catch {
      // Chrome on Android asks for the permission, and refuses the notification.
    }
  };
  const mayNotify = window.isSecureContext && "Notification" in window;
  notify.hidden = !mayNotify || sessionStorage.getItem(NOTIFY) !== null;
  part("notify-words").hidden = mayNotify;
  part("notify-words").textContent = window.isSecureContext ? WORDS.noNotifications : WORDS.notEncrypted;
  notify.addEventListener("click", async () => {
    const isGranted = (await Notification.requestPermission()) === "granted";
    if (isGranted) sessionStorage.setItem(NOTIFY, "1");
    // Not hidden: the buttons after it stay where they are.
    notify.disabled = true;
    part("cancel-status").textContent = isGranted ? WORDS.notified : WORDS.notNotified;
  });

  // The hub restarts, or there is nothing to be told any more: the page itself knows. Without a network
  // the browser's own page would take its place, and stay.
  const renew = async () => {
    const headers = { "X-XSRFToken": window.jhdata.xsrf_token };
    const signal = AbortSignal.timeout(SILENCE_MILLISECONDS);
    const asked = fetch(window.location.href, { headers, redirect: "manual", signal });
    const answer = await asked.catch(() => null);
    if (isOver) return;
    if (answer) window.location.reload();
    else setTimeout(renew, RETRY_MILLISECONDS);
  };
  let source = null;
  let alarm = null;
  const leave = () => {
    clearTimeout(alarm);
    source.close();
  };
  const lost = () => {
    leave();
    setTimeout(renew, RETRY_MILLISECONDS);
  };
  // A connection that has died on the way is no error to the browser: nothing comes any more.
  const watch = () => {
    clearTimeout(alarm);
    alarm = setTimeout(lost, SILENCE_MILLISECONDS);
  };
  const listen = () => {
    source = new EventSource(data.progress_url);
    source.onmessage = (message) => {
      watch();
      const event = JSON.parse(message.data);
      show(event);
      if (event.ready || event.failed) leave();
    };
    source.onerror = lost;
    watch();
  };

  // Until the session is gone, the hub would lead back here.
  const whenGone = (then) => {
    const look = (user) => {
      if (user.servers && user.servers[data.server]) setTimeout(() => whenGone(then), 500);
      else then();
    };
    api.get_user(data.user, { success: look, error: () => setTimeout(() => whenGone(then), 2000) });
  };
  const end = (then) => {
    for (const button of [cancel, change, fewer]) button.disabled = true;
    cancel.textContent = WORDS.cancelling;
    isCancelled = isOver = true;
    const failed = (request) => {
      isCancelled = isOver = false;
      for (const button of [cancel, change, fewer]) button.disabled = false;
      cancel.textContent = WORDS.cancel;
      const why = request.responseJSON && request.responseJSON.message;
      part("cancel-status").textContent = WORDS.notCancelled(why || WORDS.silent);
      // What came meanwhile was not shown, and was perhaps the last.
      if (source.readyState === EventSource.CLOSED) listen();
    };
    const options = { success: () => whenGone(then), error: failed };
    if (data.server) api.stop_named_server(data.user, data.server, options);
    else api.stop_server(data.user, options);
  };
  cancel.addEventListener("click", () =>
    end(() => {
      over(true);
      bar.parentElement.hidden = true;
      part("progress-title").textContent = WORDS.cancelled;
      entitle(WORDS.titles.cancelled);
      part("progress-message").textContent = WORDS.isCancelled(job);
    }),
  );
  change.addEventListener("click", () =>
    end(() => {
      window.location = part("again").href;
    }),
  );
  // The form again, filled in with what was asked for but for the number; its forecast tells more.
  fewer.addEventListener("click", () =>
    end(() => {
      const asked = Object.entries({ ...data.options, gpus: fewer.value });
      const chosen = asked.filter(([, value]) => value !== null && value !== "");
      window.location = `${part("again").href}?${new URLSearchParams(chosen)}`;
    }),
  );
  for (const button of [cancel, change]) button.disabled = false;

  listen();
  setInterval(tick, 1000);
  // As on JupyterHub's own pages: tells that the page's script has run.
  window._jupyterhub_page_loaded = true;
});
