(() => {
  const data = JSON.parse(document.getElementById("gpu-form-data").textContent);
  const part = (id) => document.getElementById(id);
  const partition = part("gpu-form-partition");
  const hours = part("gpu-form-hours");
  const type = part("gpu-form-type");
  const forecast = part("gpu-form-forecast");
  const sizes = [...document.querySelectorAll('.gpu-form-size input[name="gpus"]')];
  const typed = type ? [...type.options].filter((option) => option.value) : [];
  let available = data.available;

  const rowOf = () => data.partitions.find((row) => row.name === partition.value);
  const chosenType = () => (type ? type.value : "");
  const chosenSize = () => sizes.find((size) => size.checked);

  // What the partition has at all: only that can be chosen.
  const narrow = () => {
    const row = rowOf();
    for (const option of typed) option.disabled = !(option.value in row.types);
    if (type && type.selectedOptions[0].disabled) type.value = "";
    const most = chosenType() ? row.types[chosenType()] : row.max_gpus;
    for (const size of sizes) size.disabled = Number(size.value) > most;
    const chosen = chosenSize();
    if (!chosen || chosen.disabled) {
      sizes.filter((size) => !size.disabled).at(-1).checked = true;
    }
    if (row.max_hours === null) hours.removeAttribute("max");
    else hours.max = row.max_hours;
  };

  // What it has free: the rest waits for its turn.
  const mark = () => {
    const now = available.find((one) => one.partition === partition.value);
    const kind = now && now.kinds.find((one) => one.type === chosenType());
    for (const place of document.querySelectorAll(".gpu-form-now")) {
      const gpus = Number(place.dataset.gpus);
      const most = kind ? kind.largest_free : now && now.largest_free;
      const isFree = now && (gpus ? gpus <= most : now.has_room_without_gpu);
      const words = !now ? "" : isFree ? "free now" : "waits for its turn";
      if (place.textContent.trim() !== words) place.textContent = words;
      place.classList.toggle("is-free", Boolean(isFree));
    }
  };

  const cell = (row, words, isFigure) => {
    const made = row.insertCell();
    made.textContent = words;
    if (isFigure) made.className = "text-end";
  };
  const list = () => {
    const body = part("gpu-form-cluster");
    if (!body) return;
    const rows = [];
    for (const one of available) {
      for (const [index, kind] of one.kinds.entries()) {
        const row = document.createElement("tr");
        cell(row, index === 0 ? one.partition : "");
        cell(row, kind.label);
        cell(row, `${kind.free} of ${kind.total}`, true);
        cell(row, kind.largest_free ? `at most ${kind.largest_free}` : "none", true);
        rows.push(row);
      }
      if (one.kinds.length === 0) {
        const row = document.createElement("tr");
        cell(row, one.partition);
        cell(row, "no GPUs");
        row.lastChild.colSpan = 3;
        rows.push(row);
      }
      if (one.shards_total) {
        const row = document.createElement("tr");
        cell(row, "");
        cell(row, "shared parts (shards)");
        cell(row, `${one.shards_free} of ${one.shards_total}`, true);
        cell(row, "–", true);
        rows.push(row);
      }
    }
    body.replaceChildren(...rows);
  };

  const get = async (what, query, signal) => {
    const url = `${data.api_url.replace("{what}", what)}${query}`;
    const headers = { "X-XSRFToken": (window.jhdata || {}).xsrf_token || "" };
    const answer = await fetch(url, { headers, signal, credentials: "same-origin" });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.message || "The portal does not answer.");
    return body;
  };

  const inWords = (start) => {
    const minutes = Math.max(1, Math.round((start - Date.now()) / 60000));
    const span =
      minutes < 90 ? `${minutes} minute${minutes === 1 ? "" : "s"}` : `${Math.round(minutes / 60)} hours`;
    const clock = start.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    const isToday = start.toDateString() === new Date().toDateString();
    const day = isToday ? "" : `${start.toLocaleDateString([], { weekday: "long" })}, `;
    return `Starts about ${day}${clock} (in about ${span}).`;
  };
  const WORDS = {
    now: () => "Starts now.",
    later: (answer) => inWords(new Date(answer.start)),
    never: (answer) => `Can never start here: ${answer.why}`,
    unknown: () => "When it would start is not known at the moment.",
  };
  const tell = (state, words) => {
    forecast.hidden = false;
    forecast.dataset.state = state;
    if (forecast.textContent !== words) forecast.textContent = words;
  };

  let asking = null;
  let soon = null;
  const foretell = async () => {
    if (!forecast || !data.api_url) return;
    if (asking) asking.abort();
    asking = new AbortController();
    const query = new URLSearchParams({
      gpus: chosenSize().value,
      hours: hours.value,
      partition: partition.value,
    });
    if (chosenType()) query.set("gpu_type", chosenType());
    forecast.setAttribute("aria-busy", "true");
    try {
      const answer = await get("forecast", `?${query}`, asking.signal);
      tell(answer.state, WORDS[answer.state](answer));
    } catch (error) {
      if (error.name === "AbortError") return;
      tell("unknown", error.message);
    }
    forecast.removeAttribute("aria-busy");
  };
  const foretellSoon = () => {
    clearTimeout(soon);
    soon = setTimeout(foretell, 250);
  };

  const refresh = async () => {
    if (document.hidden || !data.api_url) return;
    try {
      const before = JSON.stringify(available);
      available = (await get("availability", "")).partitions;
      mark();
      list();
      // Each forecast is a question to Slurm of this user's own.
      if (JSON.stringify(available) !== before) foretellSoon();
    } catch {
      // What is shown was true a moment ago; the next look may succeed.
    }
  };

  const update = () => {
    narrow();
    mark();
    foretellSoon();
  };
  for (const field of [partition, type, ...sizes]) {
    if (field) field.addEventListener("change", update);
  }
  hours.addEventListener("input", foretellSoon);
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, data.interval * 1000);
  update();
})();
