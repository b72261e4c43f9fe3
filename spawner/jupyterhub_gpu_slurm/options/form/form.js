(() => {
  const data = JSON.parse(document.getElementById("gpu-form-data").textContent);
  const part = (id) => document.getElementById(id);
  const partition = part("gpu-form-partition");
  const hours = part("gpu-form-hours");
  const type = part("gpu-form-type");
  const forecast = part("gpu-form-forecast");
  const image = part("gpu-form-image");
  const choices = [...document.querySelectorAll("select[data-choice]")];
  const profiles = [...document.querySelectorAll("a[data-profile]")];
  const sizes = [...document.querySelectorAll('.gpu-form-size input[name="gpus"]')];
  const fields = [partition, type, image, hours, ...choices].filter(Boolean);
  const typed = type ? [...type.options].filter((option) => option.value) : [];
  let available = data.available;
  let countedAfter = -Infinity;

  const rowOf = () => data.partitions.find((row) => row.name === partition.value);
  const chosenType = () => (type ? type.value : "");
  const choice = (name) => choices.find((one) => one.name === name);
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
    const qos = choice("qos");
    if (qos) {
      const account = choice("account");
      const names = data.qos[account ? account.value : ""];
      for (const option of qos.options) {
        option.disabled = option.value !== "" && !names.includes(option.value);
      }
      if (qos.selectedOptions[0].disabled) qos.value = "";
    }
    if (row.max_hours === null) hours.removeAttribute("max");
    else hours.max = row.max_hours;
    hours.setAttribute("aria-invalid", String(!hours.checkValidity()));
  };

  // What it has free: the rest is queued. Null where that is not known, as of nodes with a feature,
  // and of a reservation's.
  const isCounted = () =>
    data.is_counted && !["reservation", "constraint"].some((name) => (choice(name) || {}).value);
  const isFree = (gpus) => {
    const now = available.find((one) => one.partition === partition.value);
    if (!now || !isCounted()) return null;
    if (gpus === 0) return now.has_room_without_gpu;
    const kind = now.kinds.find((one) => one.type === chosenType());
    return gpus <= (kind || now).largest_free;
  };
  const mark = () => {
    for (const place of document.querySelectorAll(".gpu-form-now")) {
      const free = isFree(Number(place.dataset.gpus));
      const words = free === null ? "" : free ? "free now" : "busy now";
      if (place.textContent.trim() !== words) place.textContent = words;
      place.classList.toggle("is-free", Boolean(free));
    }
  };

  const cell = (row, words, isFigure) => {
    const made = row.insertCell();
    made.textContent = words;
    if (isFigure) made.className = "text-end";
  };
  // Partitions of the same nodes have one row: what is free there is free once.
  const byNodes = () => {
    const groups = new Map();
    for (const one of available) {
      const first = one.shares_nodes_with || one.partition;
      groups.set(first, [...(groups.get(first) || []), one]);
    }
    return [...groups.values()].map((group) => ({
      ...group[0],
      names: group.map((one) => one.partition).join(", "),
    }));
  };
  // Each row names its partitions to those who hear it, the first one to all.
  const rowFor = (one, isFirst) => {
    const row = document.createElement("tr");
    const name = document.createElement("span");
    name.textContent = one.names;
    if (!isFirst) name.className = "visually-hidden";
    const head = document.createElement("th");
    head.scope = "row";
    head.append(name);
    row.append(head);
    return row;
  };
  const list = () => {
    const body = part("gpu-form-cluster");
    if (!body) return;
    const rows = [];
    for (const one of byNodes()) {
      for (const [index, kind] of one.kinds.entries()) {
        const row = rowFor(one, index === 0);
        cell(row, kind.label);
        cell(row, `${kind.free} of ${kind.total}`, true);
        cell(row, kind.largest_free ? `at most ${kind.largest_free}` : "none", true);
        rows.push(row);
      }
      if (one.kinds.length === 0) {
        const row = rowFor(one, true);
        cell(row, "no GPUs");
        row.lastChild.colSpan = 3;
        rows.push(row);
      }
      if (one.shards_total) {
        const row = rowFor(one, false);
        cell(row, "shared parts (shards)");
        cell(row, `at least ${one.shards_free} of ${one.shards_total}`, true);
        cell(row, "–", true);
        rows.push(row);
      }
    }
    body.replaceChildren(...rows);
  };

  // By how much the portal's clock is ahead: the browser's may be off.
  let ahead = 0;
  class Refused extends Error {}
  const get = async (what, query, signal) => {
    const url = `${data.api_url.replace("{what}", what)}${query}`;
    const headers = { "X-XSRFToken": (window.jhdata || {}).xsrf_token || "" };
    const answer = await fetch(url, { headers, signal, credentials: "same-origin" });
    const date = answer.headers.get("Date");
    if (date) ahead = new Date(date) - Date.now();
    if (answer.status === 403) throw new Refused(WORDS.loggedOut);
    const body = await answer.json();
    if (!answer.ok) throw new Refused(body.message);
    return body;
  };
  const inWords = (start) => {
    const minutes = Math.max(1, Math.round((start - Date.now() - ahead) / 60000));
    const hoursLeft = Math.round(minutes / 60);
    const span =
      minutes < 90
        ? `${minutes} minute${minutes === 1 ? "" : "s"}`
        : hoursLeft < 48
          ? `${hoursLeft} hours`
          : `${Math.round(hoursLeft / 24)} days`;
    const clock = start.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    const isToday = start.toDateString() === new Date().toDateString();
    const day =
      hoursLeft < 144
        ? start.toLocaleDateString([], { weekday: "long" })
        : start.toLocaleDateString([], { day: "numeric", month: "long", year: "numeric" });
    // What is free may be older than the forecast: only what was counted later contradicts it.
    const isKept = countedAfter > toldAt && isFree(Number(chosenSize().value));
    const others = isKept ? ` ${WORDS.kept}` : "";
    // Slurm assumes that each job uses all of its time: it is often earlier, hardly ever later.
    return `Should start by ${isToday ? "" : `${day}, `}${clock} (within ${span}).${others}`;
  };
  const WORDS = {
    asking: () => "Asking Slurm when it would start…",
    now: () => "Starts now.",
    later: (answer) => inWords(new Date(answer.start)),
    never: (answer) => `Can never start here: ${answer.why}`,
    refused: () =>
      rowOf().max_hours === null
        ? `The session time must be ${hours.min} hours or more.`
        : `The session time must be from ${hours.min} to ${rowOf().max_hours} hours.`,
    unknown: (answer) => `The start time is not known at the moment. ${answer.why}`.trim(),
    kept: "These resources are free, but Slurm is keeping them for other jobs.",
    loggedOut: "Your login has expired; reload this page.",
    silent: "The portal is not responding.",
  };
  // "Now" held when there was as much free as then; Slurm is being asked again.
  const stateNow = () =>
    told.state === "now" && isFree(Number(chosenSize().value)) !== toldFree ? "asking" : told.state;
  const tell = () => {
    const state = stateNow();
    const words = WORDS[state](told);
    forecast.hidden = false;
    forecast.dataset.state = state;
    if (forecast.textContent !== words) forecast.textContent = words;
  };

  // A forecast costs Slurm a look at its whole queue. It is asked for anew when the choice changes,
  // when what is free says otherwise, and else at times.
  const LASTS_SECONDS = { now: 60, later: 60, never: 300, unknown: 30, refused: Infinity };
  let told = { state: "asking" };
  let toldAt = 0;
  let toldFree = null;
  const isOld = () =>
    Date.now() - toldAt > 1000 * (LASTS_SECONDS[told.state] || 0) ||
    isFree(Number(chosenSize().value)) !== toldFree;

  // A look must not abort the question that the last one led to: a slow Slurm would be asked for ever.
  const PATIENCE_SECONDS = 30;
  let asking = null;
  let askedAt = 0;
  let soon = null;
  const isAsking = () => asking !== null && Date.now() - askedAt < 1000 * PATIENCE_SECONDS;
  const foretell = async () => {
    if (asking) asking.abort();
    const mine = (asking = new AbortController());
    askedAt = Date.now();
    const query = new URLSearchParams({
      gpus: chosenSize().value,
      hours: hours.value,
      partition: partition.value,
    });
    if (chosenType()) query.set("gpu_type", chosenType());
    for (const one of choices) if (one.value) query.set(one.name, one.value);
    forecast.setAttribute("aria-busy", "true");
    try {
      told = await get("forecast", `?${query}`, mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      const why = error instanceof Refused ? error.message : WORDS.silent;
      told = { state: "unknown", why };
    }
    if (mine.signal.aborted) return;
    asking = null;
    toldAt = Date.now();
    toldFree = isFree(Number(chosenSize().value));
    tell();
    forecast.removeAttribute("aria-busy");
  };
  const foretellSoon = () => {
    if (!forecast || !data.api_url) return;
    clearTimeout(soon);
    if (!hours.checkValidity()) {
      told = { state: "refused" };
      tell();
      return;
    }
    soon = setTimeout(foretell, 250);
  };

  const refresh = async () => {
    if (document.hidden || !data.api_url) return;
    try {
      available = (await get("availability", "")).partitions;
      countedAfter = Date.now() - 1000 * data.interval;
      mark();
      list();
    } catch {
      // What is shown was true a moment ago; the next look may succeed.
    }
    if (!forecast) return;
    tell(); // the minutes that are left, and whether "now" still holds
    if (isOld() && !isAsking()) foretellSoon();
  };

  const update = () => {
    narrow();
    mark();
    // What was foretold, or is being foretold, is of another choice.
    if (asking) asking.abort();
    asking = null;
    told = { state: "asking" };
    if (forecast) forecast.removeAttribute("aria-busy");
    if (forecast && data.api_url) tell();
    foretellSoon();
  };
  // A profile is a link, so that it works without this script, too.
  const markProfile = (chosen) => {
    for (const link of profiles) {
      if (link === chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const take = (values) => {
    sizes.find((size) => size.value === values.gpus).checked = true;
    for (const field of fields) field.value = values[field.name] || "";
    update();
  };
  for (const link of profiles) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      take(data.profiles[Number(link.dataset.profile)]);
      markProfile(link);
    });
  }
  const choose = () => {
    markProfile(null);
    update();
  };
  for (const field of [...fields, ...sizes]) {
    field.addEventListener(field === hours ? "input" : "change", choose);
  }
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, data.interval * 1000);
  update();
})();
