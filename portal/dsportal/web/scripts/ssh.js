// The page "Connect with SSH": its token, as a file, and its buttons that copy.
(() => {
  const { base_url: base, xsrf_token: xsrf, user } = window.jhdata;
  const form = document.getElementById("token-form");
  const status = document.getElementById("token-status");
  const button = form.querySelector("button");
  const save = (text, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const create = async () => {
    const days = Number(document.getElementById("token-days").value);
    const answer = await fetch(`${base}api/users/${encodeURIComponent(user)}/tokens`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-XSRFToken": xsrf },
      body: JSON.stringify({
        note: "SSH",
        scopes: [`access:servers!server=${user}/${form.dataset.server}`],
        ...(days ? { expires_in: days * 86400 } : {}),
      }),
    });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(told.message ?? `the portal answers with status ${answer.status}`);
    return told.token;
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      save(await create(), form.dataset.file);
      status.textContent = `Your browser has saved the file ${form.dataset.file}.`;
    } catch (error) {
      status.textContent = `The token was not created: ${error.message.replace(/\.$/, "")}. Try again, or log in again.`;
    }
    button.disabled = false;
  });
  for (const copy of document.querySelectorAll("[data-copy]")) {
    const lines = copy.previousElementSibling;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(lines.textContent);
        copy.textContent = "Copied";
      } catch {
        // Without HTTPS a page may not write to the clipboard: select, for Ctrl-C.
        window.getSelection().selectAllChildren(lines);
        copy.textContent = "Press Ctrl+C";
      }
      // The button's name stays what it copies.
      const said = copy.nextElementSibling;
      said.textContent = copy.textContent;
      setTimeout(() => {
        said.textContent = "";
        copy.textContent = "Copy";
      }, 2000);
    });
  }
})();
