(() => {
  const part = (id) => document.getElementById(id);
  const password = part("password_input");
  if (!password) return;
  part("insecure-login-warning").hidden = window.isSecureContext;
  const show = part("show-password");
  show.hidden = false;
  show.addEventListener("click", () => {
    const isShown = password.type === "password";
    password.type = isShown ? "text" : "password";
    show.textContent = isShown ? "Hide" : "Show";
    show.setAttribute("aria-label", `${show.textContent} what is typed`);
  });
})();
