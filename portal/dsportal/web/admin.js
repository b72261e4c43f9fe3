// JupyterHub draws the table, with buttons that are a picture only: these are their names.
(() => {
  const place = document.getElementById("react-admin-hook");
  const name = () => {
    for (const button of place.querySelectorAll('button[aria-controls$="-collapse"]:not([aria-label])')) {
      const user = button.getAttribute("aria-controls").replace(/-collapse$/, "");
      button.setAttribute("aria-label", `Details of ${user}`);
    }
  };
  new MutationObserver(name).observe(place, { childList: true, subtree: true });
  name();
})();
