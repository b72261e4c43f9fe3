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
  const count = () => {
    for (const left of document.querySelectorAll("[data-left]")) {
      const minutes = Math.max(0, Math.floor((new Date(left.dataset.left) - Date.now()) / 60000));
      const hours = minutes >= 60 ? `${Math.floor(minutes / 60)} h ` : "";
      left.textContent = minutes ? `${hours}${minutes % 60} min` : "under a minute";
    }
  };
  count();
  setInterval(count, 10000);
  const stop = document.getElementById("stop");
  if (!stop) return;
  stop.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      stop.click();
    }
  });
  const state = document.getElementById("state");
  stop.addEventListener("click", () => {
    state.textContent = "Stopping";
  });
  // It hides the button when the session has stopped.
  new MutationObserver(() => {
    if (stop.style.display === "none") window.location.reload();
  }).observe(stop, { attributes: true, attributeFilter: ["style"] });
})();
