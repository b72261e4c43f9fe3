// JupyterHub's script for this page gives the buttons what they do; these are what it leaves out.
require(["home"]);
(() => {
  const wait = () => {
    if (window._jupyterhub_page_loaded) document.body.classList.add("is-ready");
    else setTimeout(wait, 20);
  };
  wait();
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
    if (stop.style.display !== "none") return;
    state.textContent = "Not running";
    state.classList.remove("is-on");
    document.getElementById("state-words").textContent = "It holds no GPUs.";
  }).observe(stop, { attributes: true, attributeFilter: ["style"] });
})();
