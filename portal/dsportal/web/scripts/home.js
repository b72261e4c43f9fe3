// JupyterHub's script for this page gives the buttons what they do; these are what it leaves out.
require(["home"]);
(() => {
  const wait = () => {
    if (window._jupyterhub_page_loaded) document.body.classList.add("is-ready");
    else setTimeout(wait, 20);
  };
  wait();
  const clock = { hour: "2-digit", minute: "2-digit" };
  const day = { weekday: "short", day: "numeric", month: "short" };
  for (const time of document.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    const isToday = moment.toDateString() === new Date().toDateString();
    const hour = moment.toLocaleTimeString([], clock);
    time.textContent = isToday ? hour : `${moment.toLocaleDateString([], day)}, ${hour}`;
  }
  // By how much the hub's clock is ahead: the browser's may be off.
  let ahead = 0;
  const count = () => {
    const now = Date.now() + ahead;
    for (const left of document.querySelectorAll("[data-left]")) {
      const minutes = Math.max(0, Math.floor((new Date(left.dataset.left) - now) / 60000));
      const hours = minutes >= 60 ? `${Math.floor(minutes / 60)} h ` : "";
      left.textContent = minutes ? `${hours}${minutes % 60} min` : "under a minute";
    }
  };
  count();
  setInterval(count, 10000);
  // What each session uses: asked for while somebody looks.
  const { base_url: base, xsrf_token: xsrf } = window.jhdata;
  const ask = async (url) => {
    const answer = await fetch(url, { headers: { "X-XSRFToken": xsrf } }).catch(() => null);
    const date = answer?.headers.get("Date");
    if (date) ahead = new Date(date) - Date.now();
    return answer;
  };
  const gib = (bytes) => `${Number((bytes / 2 ** 30).toFixed(1))}`;
  const words = ({ cores, memory_bytes: memory }, has) => {
    const parts = [];
    const noun = has.cores === "1" ? "core" : "cores";
    if (cores !== null) parts.push(`${Number(cores.toFixed(1))} of ${has.cores} ${noun}`);
    if (memory !== null) parts.push(`${gib(memory)} of ${gib(has.memoryMb * 2 ** 20)} GiB`);
    return parts.join(", ") || "Not known yet";
  };
  const measure = async () => {
    if (document.hidden) return;
    for (const use of document.querySelectorAll("[data-use]")) {
      const url = `${base}portal/use?${new URLSearchParams({ server: use.dataset.use })}`;
      const answer = await ask(url);
      const told = answer?.ok && !answer.redirected && (await answer.json().catch(() => null));
      use.textContent = told ? words(told, use.dataset) : "Not known";
    }
    count();
  };
  measure();
  setInterval(measure, 10000);
  document.addEventListener("visibilitychange", measure);
  // A session is ready or ends elsewhere, too: by its time, in another tab, by an admin.
  const state = document.getElementById("state");
  const shown = state.textContent.trim();
  const told = (page) =>
    [...page.querySelectorAll("[data-session], [data-left]")]
      .map((one) => one.dataset.session ?? one.dataset.left)
      .join(" ");
  const first = told(document);
  const renew = async () => {
    const isBusy = document.hidden || document.activeElement?.matches("input, select");
    // What somebody has clicked here is under way.
    if (isBusy || state.textContent.trim() !== shown) return;
    const answer = await ask(location.href);
    // To the login, which has expired.
    if (answer?.redirected) window.location.reload();
    if (!answer?.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (told(page) !== first) window.location.reload();
  };
  if (document.querySelector('[data-session]:not([data-session="False"])')) setInterval(renew, 15000);
  for (const one of document.querySelectorAll(".stop-server:not(.hidden)")) {
    new MutationObserver(() => {
      if (one.classList.contains("hidden")) window.location.reload();
    }).observe(one, { attributes: true, attributeFilter: ["class"] });
  }
  // A refusal is said in a dialog; JupyterHub's script leaves the buttons of that session dead.
  document.getElementById("error-dialog").addEventListener("hidden.bs.modal", () => {
    if (document.querySelector(".home-server-row .btn[disabled]")) window.location.reload();
  });
  // It takes no session without a name, and does not say so.
  const added = document.querySelector(".add-server-row");
  const check = (event) => {
    const isOrder = event.key ? event.key === "Enter" : event.target.closest(".new-server-btn");
    if (isOrder && !added.querySelector("input").reportValidity()) event.stopPropagation();
  };
  for (const kind of ["click", "keypress"]) added?.addEventListener(kind, check, true);
  const stop = document.getElementById("stop");
  if (!stop) return;
  stop.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (document.body.classList.contains("is-ready")) stop.click();
    }
  });
  stop.addEventListener("click", () => {
    state.textContent = "Stopping";
  });
  // JupyterHub's script says in a dialog why it could not be stopped; the session runs on.
  require(["jquery"], ($) => {
    $(document).on("ajaxError", () => {
      state.textContent = shown;
      $("#start").off("click").attr("disabled", false);
    });
  });
  // It hides the button when the session has stopped.
  new MutationObserver(() => {
    if (stop.style.display === "none") window.location.reload();
  }).observe(stop, { attributes: true, attributeFilter: ["style"] });
})();
