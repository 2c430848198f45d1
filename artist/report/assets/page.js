// Puts the page together: which setting and policy are looked at, cards, tables, the timeline.

const chosen = { setting: 0, policy: 0 };

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
  new ResizeObserver(() => {
    if (!plot.clientWidth || plot.clientWidth === width) return;
    width = plot.clientWidth;
    plot.replaceChildren(...DRAW[figure.kind](figure, width, beside).filter(Boolean));
  }).observe(plot);
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

async function fill() {
  const wanted = chosen.setting;
  const here = await figuresHere();
  if (wanted !== chosen.setting) return;
  for (const slot of document.querySelectorAll("[data-section]")) {
    const found = here.filter((f) => f.section === slot.dataset.section
      && (slot.dataset.scope === "all") === (f.setting === undefined) && matches(f));
    const small = found.find((f) => f.kind === "rows");
    const beside = small && innerWidth > 760 ? rowsLayout(small.series.length).height : 0;
    slot.replaceChildren(...found.map((figure) => card(figure, beside)));
  }
  for (const element of document.querySelectorAll("[data-setting]")) {
    element.hidden = Number(element.dataset.setting) !== chosen.setting;
  }
}

function startPickers(changed) {
  const setting = document.getElementById("setting");
  const policy = document.getElementById("policy");
  const policies = () => {
    const here = DATA.settings[chosen.setting].policies;
    if (!here.includes(chosen.policy)) chosen.policy = here[0];
    policy.replaceChildren(...here.map((index) => {
      const option = html("option", { value: index }, DATA.policies[index]);
      option.selected = index === chosen.policy;
      return option;
    }));
    policy.parentElement.hidden = here.length < 2;
  };
  setting.addEventListener("change", () => {
    chosen.setting = Number(setting.value);
    policies();
    changed();
  });
  policy.addEventListener("change", () => { chosen.policy = Number(policy.value); changed(); });
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

function startTimeline() {
  const host = document.getElementById("timeline");
  const message = document.getElementById("timeline-message");
  const legend = document.getElementById("timeline-legend");
  const table = document.getElementById("timeline-table");
  const timeline = new ClusterTimeline(host);
  const describe = () => {
    const { run, colour } = timeline;
    if (!run) return;
    const shown = { level: levelLegend(DATA.levels, "l"), model: levelLegend(run.models, "j") };
    legend.replaceChildren(...(shown[colour]
      || [html("li", {}, "Neighbouring jobs have different colours; point at one to see all of it.")]));
  };
  const rows = () => {
    const { run, view } = timeline;
    const inView = run.job.map((_, i) => i)
      .filter((i) => run.ends[i] > view.t0 && run.ends[i] - run.length[i] < view.t1);
    const body = inView.slice(0, 200).map((i) => run.factsOf(i)).map((f) => [String(f.row),
      f.job, f.model, String(f.gpus), f.level, f.placement, inUnit(f.start, "time"),
      inUnit(f.length, "time")]);
    table.replaceChildren(table.firstElementChild,
      html("p", { class: "note" }, `${number(inView.length)} placements in view`
        + (inView.length > 200 ? ", the first 200 of them. Zoom in for the others." : ".")),
      dataTable(["row", "job", "model", "GPUs", "level", "machine:GPUs", `from (${unitOf("time")})`,
        `for (${unitOf("time")})`], body));
  };
  table.addEventListener("toggle", () => { if (table.open && timeline.run) rows(); });
  for (const button of document.querySelectorAll("[data-act]")) {
    button.addEventListener("click", () => {
      const [name, ...values] = button.dataset.act.split(" ");
      if (timeline.run) timeline[name](...values.map(Number));
      if (table.open) rows();
    });
  }
  for (const input of document.querySelectorAll("[name=colour]")) {
    input.addEventListener("change", () => {
      timeline.colour = input.value;
      describe();
      timeline.draw();
    });
  }
  const show = async () => {
    const key = `${chosen.setting}-${chosen.policy}`;
    const packed = DATA.packs[key];
    table.open = false;
    host.hidden = !packed;
    message.hidden = Boolean(packed);
    if (!packed) { timeline.run = null; return; }
    const run = await inflate(packed);
    if (key !== `${chosen.setting}-${chosen.policy}`) return;
    timeline.show(run, DATA.policies[chosen.policy]);
    describe();
  };
  return { show, draw: () => timeline.draw() };
}

document.body.append(tooltip, spoken);
const timeline = startTimeline();
const jobTable = new JobTable();
const showChosen = () => { fill(); timeline.show(); jobTable.show(); };
startPickers(showChosen);
showChosen();
startTheme(document.getElementById("theme"), () => timeline.draw());
addEventListener("scroll", hideTooltip, { passive: true });
