// JupyterHub draws the table (its admin-react.js). Here its words become those of the other pages, what
// is a picture only gets a name, and what cannot be undone is asked about. What has no place here
// is hidden by design.css, and refused by the hub.
(() => {
  const place = document.getElementById("react-admin-hook");
  const data = JSON.parse(document.getElementById("admin-data").textContent);
  // Text of the table's cells is the users'.
  const OURS = "button, label, th, h1, h4, [role=button], .btn, .alert, [title]";
  const WORDS = {
    "Spawn Page": "Choose and Start",
    "Edit User": "Delete User",
    "Editing user ": "Delete user ",
    "Failed to edit user.": "The user was not deleted. Stop their sessions first; nobody can delete themselves.",
  };
  const LABELS = { "user-search": "Search users", "pagination-limit": "Items per page" };
  const QUESTIONS = {
    "shutdown-button":
      "Shut down the hub? Sessions keep running. The portal's service starts the hub again: for up to " +
      "a minute nobody can log in or start a session.",
    "delete-user":
      "Delete this user from the hub, with their tokens and logins? Their account and files stay: if " +
      "they log in again, they are back.",
  };
  const sessions = (words) =>
    WORDS[words] ||
    words.replace(/\b([Ss])erver(?=s?\b)/g, (_, first) => (first === "S" ? "Session" : "session"));
  const rename = (node) => {
    for (const text of node.childNodes) {
      if (text.nodeType !== Node.TEXT_NODE) continue;
      // A user's name follows the first words of a heading.
      if (node.tagName === "H1" && text !== node.firstChild) continue;
      const words = sessions(text.nodeValue);
      if (words !== text.nodeValue) text.nodeValue = words;
    }
    if (node.title) node.title = sessions(node.title);
  };
  const userOf = (part) => part.closest("tr").querySelector('[data-testid^="user-name-div-"]').textContent;
  const complete = () => {
    for (const button of place.querySelectorAll('button[aria-controls$="-collapse"]:not([aria-label])')) {
      const user = button.getAttribute("aria-controls").replace(/-collapse$/, "");
      button.setAttribute("aria-label", `Details of ${user}`);
    }
    for (const field of place.querySelectorAll("input[aria-label]")) {
      field.ariaLabel = LABELS[field.ariaLabel] || field.ariaLabel;
    }
    for (const icon of place.querySelectorAll(".sort-icon:not([role])")) {
      icon.setAttribute("role", "button");
      icon.setAttribute("aria-label", `Sort by ${icon.parentElement.textContent.trim().toLowerCase()}`);
      icon.tabIndex = 0;
    }
    for (const names of place.querySelectorAll("#add-user-textarea")) {
      names.placeholder = "One username per line";
      names.setAttribute("aria-label", "Usernames, one per line");
    }
    for (const button of place.querySelectorAll(".actions > a > .btn-primary")) {
      button.parentElement.hidden = !data.opens_all && userOf(button) !== data.user;
    }
    for (const form of place.querySelectorAll('.actions > a[href*="/spawn/"]:not([href*="?"])')) {
      // The form would lead into the session, which is the user's.
      if (userOf(form) !== data.user) form.search = new URLSearchParams({ next: location.pathname });
    }
    place.querySelectorAll(OURS).forEach(rename);
  };
  place.addEventListener("keydown", (event) => {
    if (!event.target.matches(".sort-icon") || ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    event.target.click();
  });
  document.addEventListener(
    "click",
    (event) => {
      const button = event.target.closest("#shutdown-button, #delete-user");
      if (button && !confirm(QUESTIONS[button.id])) event.stopPropagation();
    },
    true,
  );
  new MutationObserver(complete).observe(place, { childList: true, subtree: true, characterData: true });
  complete();
})();
