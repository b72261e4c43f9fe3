// What the buttons of all pages have in common.
(() => {
  // A link that is called a button works with the space bar, as buttons do.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("a[role=button][href]")) return;
    event.preventDefault();
    event.target.click();
  });
  // One click is one order; a page that the browser brings back takes another. A form that a script has
  // dealt with is not on its way.
  const buttons = [...document.querySelectorAll("form[method=post i] button[type=submit]")];
  const words = new Map(buttons.map((button) => [button, button.textContent]));
  const show = (button, isBusy) => {
    button.disabled = isBusy;
    if (button.dataset.busy) button.textContent = isBusy ? button.dataset.busy : words.get(button);
  };
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    for (const button of buttons) if (button.form === event.target) show(button, true);
  });
  window.addEventListener("pageshow", () => {
    for (const button of buttons) show(button, false);
  });
})();
