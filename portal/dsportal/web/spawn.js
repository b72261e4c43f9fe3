(() => {
  // One click, one start; a page that the browser brings back takes another.
  const start = document.getElementById("start");
  start.form.addEventListener("submit", () => {
    start.disabled = true;
    start.textContent = "Starting…";
  });
  window.addEventListener("pageshow", () => {
    start.disabled = false;
    start.textContent = "Start";
  });
})();
