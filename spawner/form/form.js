(() => {
  const rows = JSON.parse(document.getElementById("gpu-form-data").textContent);
  const partition = document.getElementById("gpu-form-partition");
  const hours = document.getElementById("gpu-form-hours");
  const sizes = [...document.querySelectorAll('.gpu-form-size input[name="gpus"]')];
  const update = () => {
    const row = rows.find((candidate) => candidate.name === partition.value);
    for (const size of sizes) {
      size.disabled = Number(size.value) > row.max_gpus;
    }
    const chosen = sizes.find((size) => size.checked);
    if (!chosen || chosen.disabled) {
      sizes.filter((size) => !size.disabled).at(-1).checked = true;
    }
    if (row.max_hours === null) {
      hours.removeAttribute("max");
    } else {
      hours.max = row.max_hours;
    }
  };
  partition.addEventListener("change", update);
  update();
})();
