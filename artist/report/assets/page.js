// Puts the page together: which setting and policy are looked at, cards, tables, the timeline.

// Figures on paper have these widths, in pixels: across the page, and two beside each other.
let ON_PAPER = false;
const ACROSS = 640;
const BESIDE = 303;

// `beside`: the policy of the second timeline; -1: none, undefined: not chosen yet.
const chosen = { setting: 0, policy: 0, beside: undefined };

const matches = (figure) =>
  (figure.setting === undefined || figure.setting === chosen.setting)
  && (figure.policy === undefined || figure.policy === chosen.policy);

function card(figure, beside) {
  const plot = html("div", { class: "plot" });
  const table = html("details", {}, html("summary", {}, "Table"));
  table.addEventListener("toggle", () => {
    if (table.open && table.children.length === 1) table.append(tableOf(figure));
  });
  const element = html("figure", { class: figure.wide ? "card wide" : "card", id: "fig-" + figure.name },
    html("figcaption", {}, html("h3", {}, figure.title),
      figure.note ? html("p", { class: "note" }, figure.note) : null),
    plot,
    html("div", { class: "foot" }, table, html("p", { class: "source" }, figure.source)));
  let width = 0;
  const draw = (room) => {
    if (!room || room === width) return;
    width = room;
    plot.replaceChildren(...DRAW[figure.kind](figure, width, beside).filter(Boolean));
  };
  const onPaper = () => (plot.closest(".card:not(.wide)") ? BESIDE : ACROSS);
  plot.draw = () => draw(ON_PAPER && plot.clientWidth ? onPaper() : plot.clientWidth);
  new ResizeObserver(plot.draw).observe(plot);
  return element;
}

// `words`: the class of cells that are no numbers.
function dataTable(head, body, words = "") {
  const kind = (cell) => (words && !/^[-\d.,]+$/.test(cell) ? words : null);
  return html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" }, html("table", {},
    html("thead", {}, html("tr", {}, ...head.map((h, i) =>
      html("th", { scope: "col", class: kind((body[0] || [])[i]) }, h)))),
    html("tbody", {}, ...body.map((row) => html("tr", {}, ...row.map((cell, i) =>
      i ? html("td", { "data-label": head[i], class: kind(cell) }, cell) : html("th", { scope: "row", "data-label": head[0] }, cell)))))));
}

// What the figure shows, as numbers: bars whole, curves at a dozen places.
function tableOf(figure) {
  if (TABLE[figure.kind]) return TABLE[figure.kind](figure);
  const names = figure.series.map((s) => s.name);
  if (figure.parts) return tableOfParts(figure);
  if (figure.categories.length) {
    const axis = figure.kind === "stack" ? figure.x : figure.y;
    return dataTable([axis.label, ...names], figure.categories.map((category, i) =>
      [category, ...figure.series.map((s) => interval(s, i, axis))]));
  }
  const all = figure.series.flatMap((s) => finite(xOf(figure, s)));
  const [from, to] = [all.reduce((a, b) => Math.min(a, b)), peak(all)];
  const places = Array.from({ length: 13 }, (_, i) => figure.x.log
    ? from * (to / from) ** (i / 12) : from + ((to - from) * i) / 12);
  return dataTable([titleOf(figure.x), ...names.map((n) => `${n}: ${titleOf(figure.y)}`)],
    places.map((x) => [number(x), ...figure.series.map((s) =>
      number(valueAt(xOf(figure, s), s.y, Math.min(x, to), figure.step !== false)))]));
}

// The parts of each series at a dozen places; the last part is the rest.
function tableOfParts(figure) {
  const edges = figure.series[0].x;
  const bins = Array.from({ length: 13 }, (_, i) => Math.round((edges.length - 2) * i / 12));
  const head = figure.series.flatMap((s) => figure.parts.map((part) => `${s.name}: ${part} (${figure.y.unit})`));
  const cells = (s, i) => {
    const known = s.parts.map((part) => part[i]);
    return [...known, Math.max(0, s.y[i] - known.reduce((a, b) => a + b, 0))].map(number);
  };
  return dataTable([titleOf(figure.x), ...head],
    bins.map((i) => [number(edges[i]), ...figure.series.flatMap((s) => cells(s, i))]));
}

// The figures of all settings, and of the chosen one.
async function figuresHere() {
  const packed = DATA.ofSetting[chosen.setting];
  return packed ? [...DATA.figures, ...await inflated(`figures ${chosen.setting}`, packed)]
    : DATA.figures;
}

// Cards stand in pairs; one that would stand alone becomes as wide as a pair.
function widened(cards) {
  let alone = null;
  for (const one of [...cards, null]) {
    const wide = !one || one.classList.contains("wide");
    if (wide && alone) alone.classList.add("wide");
    alone = wide || alone ? null : one;
  }
  return cards;
}

const redraw = (within) => {
  for (const plot of within.querySelectorAll(".plot")) plot.draw();
};

// Whoever prints the page as soon as it is loaded gets all of it: an open frame is not loaded.
function untilDrawn(...drawn) {
  const frame = html("iframe", { hidden: "", "aria-hidden": "true" });
  document.body.append(frame);
  frame.contentDocument.open();
  Promise.allSettled(drawn).then(() => {
    frame.contentDocument.close();
    frame.remove();
  });
}

function startPrinting(again) {
  const turn = (onPaper) => () => {
    ON_PAPER = onPaper;
    redraw(document);
    again();
  };
  addEventListener("beforeprint", turn(true));
  addEventListener("afterprint", turn(false));
}

async function fill() {
  const wanted = chosen.setting;
  const here = await figuresHere();
  if (wanted !== chosen.setting) return;
  for (const slot of document.querySelectorAll("[data-section]")) {
    const found = here.filter((f) => f.section === slot.dataset.section
      && (slot.dataset.scope === "all") === (f.setting === undefined) && matches(f));
    const small = found.find((f) => f.kind === "rows");
    const beside = small && innerWidth > 760 ? rowsLayout(small.series.length).height : 0;
    slot.replaceChildren(...widened(found.map((figure) => card(figure, beside))));
    redraw(slot);
  }
  for (const element of document.querySelectorAll("[data-setting]")) {
    element.hidden = Number(element.dataset.setting) !== chosen.setting;
  }
}

function startPickers(changed) {
  const [setting, policy, beside] = ["setting", "policy", "beside"].map((id) =>
    document.getElementById(id));
  const offer = (select, values, value) => {
    select.replaceChildren(...values.map((index) => {
      const option = html("option", { value: index }, index < 0 ? "none" : DATA.policies[index]);
      option.selected = index === value;
      return option;
    }));
    select.parentElement.hidden = values.length < 2;
  };
  const policies = () => {
    const { policies: here, fastest } = DATA.settings[chosen.setting];
    if (!here.includes(chosen.policy)) chosen.policy = here[0];
    const others = fastest.filter((index) => index !== chosen.policy);
    if (chosen.beside !== -1 && !others.includes(chosen.beside)) chosen.beside = others[0] ?? -1;
    offer(policy, here, chosen.policy);
    offer(beside, [...others, -1], chosen.beside);
  };
  const listen = (select, key) => select.addEventListener("change", () => {
    chosen[key] = Number(select.value);
    policies();
    changed();
  });
  listen(setting, "setting");
  listen(policy, "policy");
  listen(beside, "beside");
  chosen.setting = Number(setting.value);
  policies();
}

function levelLegend(names, prefix) {
  return names.map((name, i) => {
    const swatch = html("i", { class: "swatch" });
    swatch.style.background = `var(--${prefix}${i % (prefix === "l" ? 6 : TONES)})`;
    return html("li", {}, swatch, name);
  });
}

function startTimelines() {
  const hosts = ["timeline", "timeline-beside"].map((id) => document.getElementById(id));
  const message = document.getElementById("timeline-message");
  const legend = document.getElementById("timeline-legend");
  const table = document.getElementById("timeline-table");
  const timelines = hosts.map((host) => new ClusterTimeline(host.lastElementChild));
  const [first, second] = timelines;
  [first.beside, second.beside] = [second, first];
  const shown = () => timelines.filter((one) => one.run);
  const describe = () => {
    const one = shown()[0];
    if (!one) return;
    const names = { level: levelLegend(DATA.levels, "l"), model: levelLegend(one.run.models, "j") };
    legend.replaceChildren(...(names[one.colour]
      || [html("li", {}, "Neighbouring jobs have different colours; point at one to see all of it.")]));
  };
  const rows = () => table.replaceChildren(table.firstElementChild,
    ...shown().flatMap((one) => placementTable(one)));
  table.addEventListener("toggle", () => { if (table.open) rows(); });
  for (const button of document.querySelectorAll("[data-act]")) {
    button.addEventListener("click", () => {
      const [name, ...values] = button.dataset.act.split(" ");
      if (shown().length) shown()[0][name](...values.map(Number));
      if (table.open) rows();
    });
  }
  for (const input of document.querySelectorAll("[name=colour]")) {
    input.addEventListener("change", () => {
      for (const one of timelines) { one.colour = input.value; one.draw(); }
      describe();
    });
  }
  const show = async () => {
    const { setting, policy, beside } = chosen;
    const wanted = [policy, beside];
    const packs = wanted.map((index) => DATA.packs[`${setting}-${index}`]);
    table.open = false;
    message.hidden = Boolean(packs[0] && (packs[1] || !(beside >= 0)));
    const runs = await Promise.all(packs.map((packed) => packed && inflate(packed)));
    if (setting !== chosen.setting || policy !== chosen.policy || beside !== chosen.beside) return;
    const end_s = Math.max(...runs.map((run) => (run ? run.total * run.step : 0)));
    timelines.forEach((one, i) => {
      one.run = runs[i] || null;
      hosts[i].hidden = !runs[i];
      hosts[i].firstElementChild.textContent = beside >= 0 ? DATA.policies[wanted[i]] ?? "" : "";
    });
    timelines.forEach((one, i) => { if (runs[i]) one.show(runs[i], DATA.policies[wanted[i]], end_s); });
    describe();
  };
  return { show, draw: () => timelines.forEach((one) => one.draw()) };
}

// The placements that a timeline shows, as a table.
function placementTable({ run, view, label }) {
  const inView = run.job.map((_, i) => i)
    .filter((i) => run.ends[i] > view.t0 && run.ends[i] - run.length[i] < view.t1);
  const body = inView.slice(0, 200).map((i) => run.factsOf(i)).map((f) => [String(f.row),
    f.job, f.model, f.gpus, f.level, f.placement, inUnit(f.start, "time"),
    inUnit(f.length, "time")]);
  return [
    html("p", { class: "note" }, `${label}: ${number(inView.length)} placements in view`
      + (inView.length > 200 ? ", the first 200 of them. Zoom in for the others." : ".")),
    dataTable(["row", "job", "model", "GPUs", "level", "machine:GPUs", `from (${unitOf("time")})`,
      `for (${unitOf("time")})`], body),
  ];
}

document.body.append(tooltip, spoken);
const timeline = startTimelines();
const jobTable = new JobTable();
const showChosen = () => [fill(), timeline.show(), jobTable.show()];
startPickers(showChosen);
untilDrawn(...showChosen());
startPrinting(() => timeline.draw());
startTheme(document.getElementById("theme"), () => timeline.draw());
matchMedia("print").addEventListener("change", () => timeline.draw());
addEventListener("scroll", hideTooltip, { passive: true });
