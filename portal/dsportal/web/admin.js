// JupyterHub draws the table. Buttons that are a picture only get names here, and what it calls a
// server is called a session, as on every other page.
(() => {
  const place = document.getElementById("react-admin-hook");
  const OURS = "button, label, th, [role=button], .btn, .alert, [title]";
  const sessions = (words) =>
    words.replace(/\b([Ss])erver(?=s?\b)/g, (_, first) => (first === "S" ? "Session" : "session"));
  const rename = (node) => {
    // Text of the table's cells is the users'.
    for (const text of node.childNodes) {
      if (text.nodeType !== Node.TEXT_NODE) continue;
      const words = sessions(text.nodeValue);
      if (words !== text.nodeValue) text.nodeValue = words;
    }
    if (node.title) node.title = sessions(node.title);
  };
  const name = () => {
    for (const button of place.querySelectorAll('button[aria-controls$="-collapse"]:not([aria-label])')) {
      const user = button.getAttribute("aria-controls").replace(/-collapse$/, "");
      button.setAttribute("aria-label", `Details of ${user}`);
    }
    place.querySelectorAll(OURS).forEach(rename);
  };
  new MutationObserver(name).observe(place, { childList: true, subtree: true, characterData: true });
  name();
})();
