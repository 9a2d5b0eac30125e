// The planner's page: fields, a worker that plans in WebAssembly, and what it answers. Nothing leaves the page.
(() => {
  const page = document.getElementById("plan-here");

  // From least to most a slider moves by factors, since 1 is as far from 10 as 10 is from 100.
  const FIELDS = [
    { name: "examples", label: "Data", unit: "examples", value: 60000, least: 100, most: 1e8, whole: true,
      hint: "Rows, images or texts whose privacy is protected one by one." },
    { name: "batch_size", label: "Batch size", unit: "examples a step", value: 500, least: 8, most: 1e5, whole: true,
      hint: "The mean gradient of so many examples is one step." },
    { name: "epochs", label: "Passes over the data", unit: "epochs", value: 4, least: 1, most: 100, whole: true,
      not: ["federated"], hint: "" },
    { name: "steps", label: "Steps", unit: "rounds", value: 1000, least: 10, most: 10000, whole: true,
      only: ["federated"], hint: "Rounds of training, each with a batch of users." },
    { name: "epsilon", label: "Epsilon", unit: "", value: 2, least: 0.1, most: 20,
      hint: "The privacy loss. Below 1 is strong, above 8 is weak." },
    { name: "delta", label: "Delta", unit: "", value: null,
      hint: "The chance that epsilon may fail. Empty: the power of ten at or below a tenth of 1 / data." },
    { name: "setting", label: "Batches", value: "poisson", options: [
      ["poisson", "Sampled at random (mostly the least noise)"],
      ["cyclic", "Shuffled once, then in turn"],
      ["shuffled", "Shuffled anew in every epoch"],
      ["b-min-sep", "Sampled, at a distance"],
      ["single", "Each example at most once"],
      ["stream", "In the order of arrival, once"],
      ["federated", "Users who are available"],
    ], hint: "" },
    { name: "min_sep", label: "Rounds between two of a user's", unit: "rounds", value: 100, least: 1, most: 10000,
      whole: true, only: ["federated"], hint: "A user takes part again after this many rounds at the earliest." },
    { name: "max_participations", label: "Rounds of a user at most", unit: "rounds", value: null, whole: true,
      only: ["federated"], hint: "Empty: as many as fit." },
    { name: "dim", label: "Parameters of the model", unit: "numbers", value: null, whole: true,
      hint: "Empty: any model of up to 2^30. With it, the memory of the noise is known." },
    { name: "memory", label: "Memory for noise", unit: "bytes", value: null, whole: true,
      hint: "A limit, such as 2e9 for 2 GB; needs the number of parameters." },
    { name: "thorough", label: "Thorough search", value: false,
      hint: "Seconds or minutes instead of a moment, for up to a fifth less noise." },
  ];
  const HINTS = {
    "poisson": "Every step draws its batch at random, which hides who took part.",
    "cyclic": "Every epoch uses the same batches in the same order: simple, and good for correlated noise.",
    "shuffled": "Every epoch has its own order, as loaders do: more noise than with one order.",
    "b-min-sep": "Every step draws from those who did not take part of late. Takes seconds.",
    "single": "At most one pass over shuffled data.",
    "stream": "At most one pass, neither shuffled nor sampled.",
    "federated": "Whoever is available takes part; the privacy unit is a user.",
  };

  // The worker: compiles the module once, then answers requests.
  function work() {
    let planner;
    onmessage = async ({ data }) => {
      try {
        if (!planner) {
          const module = await WebAssembly.compile(data.module);
          // The drawing library names functions of a browser that figures never call.
          const imports = {};
          for (const { module: from, name } of WebAssembly.Module.imports(module)) {
            (imports[from] ??= {})[name] = () => { throw new Error(`${name} was called`); };
          }
          planner = (await WebAssembly.instantiate(module, imports)).exports;
          return postMessage({ ready: true });
        }
        const text = new TextEncoder().encode(data.request), begun = performance.now();
        const bytes = (from, length) => new Uint8Array(planner.memory.buffer, from, length);
        bytes(planner.room(text.length), text.length).set(text);
        const length = planner.answer();
        const answer = JSON.parse(new TextDecoder().decode(bytes(planner.start(), length)));
        postMessage({ answer, seconds: (performance.now() - begun) / 1000 });
      } catch (error) {
        postMessage({ failed: String(error) });
      }
    };
  }

  const source = URL.createObjectURL(new Blob([`(${work})()`], { type: "text/javascript" }));
  // Milliseconds after which an older request is dropped for a newer one.
  const PATIENCE = 1500;
  // The request of the fields, if they are right; the one that is sent next; and the one that is answered.
  let current = null, waiting = null, answering = null;
  let module, worker, begun = 0;

  async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  function start() {
    worker?.terminate();
    worker = new Worker(source);
    answering = "start";
    worker.onmessage = ({ data }) => {
      const request = answering;
      answering = null;
      if (data.answer && request === current) show(data.answer, data.seconds);
      if (data.failed) {
        refuse({ parameter: "", message: `The planner failed: ${data.failed}` });
        if (request !== "start") return start();
      }
      next();
    };
    worker.postMessage({ module });
  }

  // The choices at other batch sizes, when their panel is open and the fields rest: in a worker of their own, so that no
  // plan waits for them, and dropped as soon as a field changes.
  const REST = 300;
  let across, rest;
  function drop() {
    clearTimeout(rest);
    across?.terminate();
  }
  function askAcross(shown) {
    drop();
    const request = JSON.stringify({ ...JSON.parse(current), across_batch_sizes: true });
    rest = setTimeout(() => {
      across = new Worker(source);
      across.onmessage = ({ data }) => {
        if (data.ready) return across.postMessage({ request });
        across.terminate();
        shown(data);
      };
      across.postMessage({ module });
    }, REST);
  }

  function next() {
    if (answering || !waiting) return;
    [answering, waiting, begun] = [waiting, null, performance.now()];
    worker.postMessage({ request: answering });
  }

  // Plans the newest request; an older one that takes long is dropped.
  function plan() {
    drop();
    const { request, wrong } = read();
    history.replaceState(null, "", "#" + link());
    current = waiting = wrong ? null : JSON.stringify(request);
    if (wrong) return refuse(wrong);
    page.dataset.state = "working";
    if (answering && answering !== "start" && performance.now() - begun > PATIENCE) start();
    next();
  }

  // Elements.
  function make(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made && name !== "list") made[name] = value; else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const result = make("div", { className: "result" }), form = make("form");
  const entries = {};

  function fieldOf(field) {
    const id = `planner-${field.name}`;
    const wrong = make("div", { className: "wrong", role: "alert" });
    const hint = make("div", { className: "hint", textContent: field.hint, id: `${id}-hint` });
    const box = make("div", { className: "field" });
    let input, slider;
    if (field.options) {
      input = make("select", { id }, ...field.options.map(([value, text]) => make("option", { value }, text)));
      box.append(make("label", { htmlFor: id }, field.label), input);
    } else if (typeof field.value === "boolean") {
      input = make("input", { id, type: "checkbox" });
      box.append(make("label", { htmlFor: id }, input, field.label));
    } else {
      input = make("input", { id, inputMode: "decimal", autocomplete: "off" });
      const entry = make("div", { className: "entry" }, input, make("span", { className: "unit" }, field.unit));
      box.append(make("label", { htmlFor: id }, field.label), entry);
      if (field.most) {
        slider = make("input", { type: "range", min: 0, max: 1, step: "any", "aria-label": `${field.label}, slider` });
        slider.oninput = () => { input.value = written(rounded(at(field, slider.value), field.whole)); plan(); };
        box.append(slider);
      }
    }
    input.setAttribute("aria-describedby", hint.id);
    box.append(hint, wrong);
    input.oninput = () => { place(entries[field.name]); fit(); plan(); };
    entries[field.name] = { field, input, slider, box, wrong, hint };
    return box;
  }

  const at = ({ least, most }, share) => least * (most / least) ** share;
  function place({ field, input, slider }) {
    const value = number(input.value);
    if (slider && value > 0) slider.value = Math.log(value / field.least) / Math.log(field.most / field.least);
  }
  function rounded(value, whole) {
    const digits = Number(value.toPrecision(value < 100 ? 2 : 3));
    return whole ? Math.round(digits) : digits;
  }
  const number = text => text.trim() === "" ? NaN : Number(text.trim().replaceAll(/[\s_,]/g, ""));
  const written = value => String(value);

  // Shows what the setting needs.
  function fit() {
    const setting = entries.setting.input.value;
    for (const { field, box } of Object.values(entries)) {
      box.hidden = Boolean(field.only && !field.only.includes(setting) || field.not?.includes(setting));
    }
    entries.setting.hint.textContent = HINTS[setting];
  }

  // The request of the fields, or what is wrong with them.
  function read() {
    const request = {};
    for (const { field, input, box } of Object.values(entries)) {
      if (box.hidden) continue;
      if (field.name === "thorough") { request.quick = !input.checked; continue; }
      if (field.options) { request[field.name] = input.value; continue; }
      if (input.value.trim() === "") {
        if (field.value === null) continue;
        return { wrong: { parameter: field.name, message: `${field.label} is empty but must be a number` } };
      }
      const value = number(input.value), whole = field.whole && (!Number.isSafeInteger(value) || value < 0);
      if (!Number.isFinite(value) || whole) {
        const kind = field.whole ? "a whole number" : "a number";
        return { wrong: { parameter: field.name, message: `${field.label} is ${input.value} but must be ${kind}` } };
      }
      request[field.name] = value;
    }
    return { request };
  }

  // What the address holds of the request, and back.
  function link() {
    const kept = Object.values(entries).filter(({ box }) => !box.hidden).map(({ field, input }) =>
      [field.name, input.type === "checkbox" ? String(input.checked) : input.value.trim()]);
    return new URLSearchParams(kept.filter(([, value]) => value !== "")).toString();
  }
  function fill() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const entry of Object.values(entries)) {
      const { field, input } = entry, value = given.get(field.name);
      if (input.type === "checkbox") input.checked = value === "true";
      else input.value = value ?? (given.size && field.value === null ? "" : field.value ?? "");
      if (field.options && !input.value) input.value = field.value;
      place(entry);
    }
    fit();
  }

  function refuse({ parameter, message }) {
    const entry = entries[parameter] && !entries[parameter].box.hidden ? entries[parameter] : null;
    clear();
    if (entry) entry.input.setAttribute("aria-invalid", "true");
    (entry?.wrong ?? general).textContent = message;
    page.dataset.state = "refused";
  }
  function clear() {
    for (const { input, wrong } of Object.values(entries)) {
      input.removeAttribute("aria-invalid");
      wrong.textContent = "";
    }
    general.textContent = "";
  }
  const general = make("div", { className: "wrong", role: "alert" });

  // Numbers as people read them.
  const digits = (value, count = 3) => Number(value.toPrecision(count)).toString();
  const many = value => value.toLocaleString("en");
  function bytes(count) {
    const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    const power = count ? Math.min(units.length - 1, Math.floor(Math.log2(count) / 10)) : 0;
    return `${digits(count / 1024 ** power)} ${units[power]}`;
  }

  function show(answer, seconds) {
    clear();
    if (answer.error) return refuse(answer.error);
    const { plan } = answer, { reference } = plan, chosen = plan.candidates[plan.chosen];
    const share = chosen.loss / reference.loss, name = reference.amplified ? "DP-SGD" : "independent noise";
    const gain = share < 0.995 ? `${Math.round(100 * (1 - share))}% less noise than ${name}`
      : share > 1.005 ? `${Math.round(100 * (share - 1))}% more noise than ${name}` : `As much noise as ${name}`;
    const why = share > 1.005 ? `${name} needs its batches drawn at random at every step.`
      : `At the same privacy, over ${many(plan.steps)} steps.`;
    const fact = (label, value) => make("div", {}, label, make("b", {}, value));
    const facts = make("div", { className: "facts" },
      fact("Mechanism", chosen.name), fact("Noise multiplier", digits(chosen.noise_multiplier, 4)),
      fact("Noise on a step's sum", digits(plan.noise_std, 4)), fact("Delta", plan.delta.toExponential()),
      ...(chosen.state_bytes == null ? [] : [fact("Memory for noise", bytes(chosen.state_bytes))]));
    result.replaceChildren(
      make("div", { className: "head" }, make("strong", {}, gain), make("p", {}, why)), facts,
      heading("What it promises"), ...plan.summary.map(text => make("p", {}, text)), details(plan),
      drawn(plan.figures), otherSizes(),
      heading("Mechanisms tried"), candidates(plan), heading("Take it along"), ...taken(plan));
    page.dataset.state = "planned";
    page.dataset.seconds = seconds;
  }

  function drawn(figures) {
    return make("div", { className: "figures", innerHTML: figures.map(svg => `<div>${svg}</div>`).join("") });
  }

  // A mechanism, with its batches.
  const BATCHES = { "gdp": "", "sampled-gaussian": ", sampled", "balls-in-bins": ", in bins", "b-min-sep": ", at a distance" };
  const named = row => row.name + BATCHES[row.accountant];

  // The panel of other batch sizes, which are planned once it is opened.
  function otherSizes() {
    const content = make("div", { role: "status" }), state = word => { panel.dataset.state = word; };
    const panel = make("details", { className: "sizes" }, make("summary", {}, "Bands against batch size"), content);
    const shown = ({ failed, answer }) => {
      state(answer?.batches ? "planned" : "failed");
      if (!answer?.batches) return content.replaceChildren(failed ?? answer.error.message);
      const { rows, figures } = answer.batches, own = JSON.parse(current).batch_size;
      const cells = row => [many(row.batch_size), many(row.steps), named(row), digits(row.share)];
      content.replaceChildren(drawn(figures), table(["Batch size", "Steps", "Mechanism", "Noise"], rows.map(row => make("tr",
        row.batch_size === own ? { className: "chosen" } : {}, ...cells(row).map(text => make("td", {}, text))))),
      make("p", { className: "hint" }, "Quick searches, all else as in the fields. The noise is relative to that of "
        + `${rows.every(row => row.is_dp_sgd) ? "DP-SGD" : "independent noise"} with the same batch size.`));
    };
    panel.ontoggle = () => {
      if (!panel.open || !panel.isConnected) return drop();
      if (panel.dataset.state === "planned") return;
      state("working");
      content.textContent = "Planning at seven batch sizes\u2026";
      askAcross(shown);
    };
    panel.open = result.querySelector(".sizes")?.open ?? false;
    return panel;
  }

  const heading = text => make("h3", {}, text);
  const table = (head, rows) => make("div", { className: "scrolls" }, make("table", { className: "plain" },
    ...(head ? [make("thead", {}, make("tr", {}, ...head.map(text => make("th", {}, text))))] : []),
    make("tbody", {}, ...rows)));

  function details(plan) {
    const rows = plan.details.map(([about, text]) =>
      make("tr", {}, make("th", {}, about), make("td", {}, text)));
    const list = (title, items) => items.length
      ? [heading(title), make("ul", {}, ...items.map(text => make("li", {}, text)))] : [];
    const all = make("details", { className: "details" }, make("summary", {}, "The whole statement"),
      table(null, rows), ...list("Assumptions", plan.assumptions), ...list("Not covered", plan.not_covered));
    all.open = result.querySelector("details")?.open ?? false;
    return all;
  }

  function candidates(plan) {
    const known = plan.candidates.some(row => row.state_bytes != null);
    const head = ["Mechanism", "Noise multiplier", "Noise", "Independent = 1", ...(known ? ["Memory"] : [])];
    const row = (found, chosen) => make("tr", chosen ? { className: "chosen" } : {},
      ...[named(found) + (chosen ? " \u2190" : ""), digits(found.noise_multiplier, 4),
        digits(found.loss), digits(found.relative_to_independent), ...(known ? [bytes(found.state_bytes)] : [])]
        .map(text => make("td", {}, text)));
    const sorted = plan.candidates.map((found, i) => [found, i === plan.chosen])
      .concat(plan.baselines.map(found => [found, false])).sort(([a], [b]) => a.loss - b.loss);
    const left = plan.left_out.map(([name, why]) => make("p", { className: "hint" }, `${name} was left out: ${why}.`));
    return make("div", {}, table(head, sorted.map(([found, chosen]) => row(found, chosen))), ...left);
  }

  function taken(plan) {
    const file = URL.createObjectURL(new Blob([plan.toml], { type: "application/toml" }));
    const save = () => make("a", { href: file, download: "plan.toml" }).click();
    const copy = text => ({ target }) => navigator.clipboard.writeText(text).then(() => {
      const before = target.textContent;
      target.textContent = "Copied";
      setTimeout(() => { target.textContent = before; }, 1200);
    });
    const button = (text, onclick) => make("button", { type: "button", onclick }, text);
    const block = (name, text) => make("pre", { className: name }, text);
    return [
      make("p", {}, button("Save plan.toml", save), button("Copy link", event => copy(location.href)(event)),
        button("Copy command", copy(plan.command)), button("Copy Python", copy(plan.python))),
      block("command", plan.command), block("python", plan.python),
      make("details", {}, make("summary", {}, "plan.toml"), block("toml", plan.toml)),
    ];
  }

  async function begin() {
    if (!self.PLANNER_WASM) throw "assets/planner-wasm.js is missing, which scripts/site.sh build writes. On the command line, antinoise plan does the same.";
    form.append(...FIELDS.map(fieldOf), general);
    form.onsubmit = event => event.preventDefault();
    page.className = "planner";
    page.replaceChildren(make("div", { className: "columns" }, form, result));
    fill();
    addEventListener("hashchange", () => { fill(); plan(); });
    module = await unpacked(self.PLANNER_WASM);
    start();
    plan();
  }

  begin().catch(error => { page.textContent = `The planner cannot run: ${error}`; page.dataset.state = "failed"; });
})();
