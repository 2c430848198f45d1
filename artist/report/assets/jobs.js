// The job table: loads the jobs of runs, sorts, filters, and shows them page by page.

const LOADED = new Map();
const inflated = (key, packed) => {
  if (!LOADED.has(key)) LOADED.set(key, inflateJson(packed));
  return LOADED.get(key);
};

// The jobs of one run as objects; empty if the page leaves the run out.
async function jobsOf(index) {
  if (!DATA.jobs[index]) return [];
  const [shared, own] = DATA.jobs[index];
  const [work, table] = await Promise.all([
    inflated(`work ${shared}`, DATA.work[shared]), inflated(`jobs ${index}`, own)]);
  const run = DATA.runs[index];
  const policy = DATA.policies[run.policy] + (run.replicate ? `, ${run.replicate}` : "");
  return work.jobs.map((id, i) => {
    const jct = table.wait[i] + table.run[i];
    return {
      index, handle: i, policy, id, model: work.models[work.model[i]], gpus: work.gpus[i],
      arrival: work.arrival[i], wait: table.wait[i], run: table.run[i], jct,
      slowdown: jct / work.alone[i], restarts: table.restarts[i],
      placements: table.ways[table.way[i]], stays: table.stays[i],
      tiers: table.tiers[table.tier[i]].map((level) => table.levels[level]),
      cause: table.causes[table.cause[i]], measure: work.measure,
    };
  });
}

const COLUMNS = [
  { key: "id", label: "Job" },
  { key: "policy", label: "Run" },
  { key: "model", label: "Model" },
  { key: "gpus", label: "GPUs", show: number },
  { key: "arrival", label: "Arrival", of: "time" },
  { key: "wait", label: "Wait", of: "jct" },
  { key: "run", label: "Run time", of: "jct" },
  { key: "jct", label: "JCT", of: "jct" },
  { key: "slowdown", label: "Slowdown", show: (v) => `${number(v)} ×` },
  { key: "restarts", label: "Restarts", show: number },
  { key: "cause", label: "Longest wait: cause" },
  { key: "placements", label: "Placements" },
];
const WORDS = new Set(["id", "policy", "model", "cause", "placements"]);
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

class JobTable {
  constructor() {
    this.host = document.getElementById("jobs-table");
    this.control = Object.fromEntries(["search", "run", "model", "tier", "cause", "restarts", "rows",
      "back", "on", "count", "left-out"].map((n) => [n, document.getElementById(`jobs-${n}`)]));
    this.sort = { key: "slowdown", down: true };
    this.open = new Set();
    this.jobs = [];
    this.page = 0;
    const again = () => { this.page = 0; this.draw(); };
    this.control.search.addEventListener("input", again);
    for (const name of ["model", "tier", "cause", "restarts", "rows"]) {
      this.control[name].addEventListener("change", again);
    }
    this.control.run.addEventListener("change", () => this.load());
    this.control.back.addEventListener("click", () => this.turn(-1));
    this.control.on.addEventListener("click", () => this.turn(1));
    new ResizeObserver(() => this.fit()).observe(this.host);
  }

  // Offers the runs of the chosen setting; the chosen policy's first run comes first.
  show() {
    const here = DATA.runs.map((run, index) => ({ ...run, index }))
      .filter((run) => run.setting === chosen.setting);
    const name = (run) => DATA.policies[run.policy] + (run.replicate ? `, ${run.replicate}` : "");
    this.here = here.map((run) => run.index);
    options(this.control.run, [
      ...(here.length > 1 ? [["all", "all of this setting"]] : []),
      ...here.map((run) => [run.index, name(run) + (DATA.jobs[run.index] ? "" : " (not in this page)")]),
    ]);
    const first = here.find((run) => run.policy === chosen.policy);
    this.control.run.value = first.index;
    for (const option of this.control.run.options) {
      option.disabled = option.value !== "all" && !DATA.jobs[option.value];
    }
    return this.load();
  }

  async load() {
    const wanted = this.control.run.value;
    const runs = wanted === "all" ? this.here : [Number(wanted)];
    const parts = await Promise.all(runs.map(jobsOf));
    if (wanted !== this.control.run.value) return;
    this.jobs = parts.flat();
    this.open.clear();
    this.page = 0;
    this.offer("model", this.jobs.map((job) => job.model));
    this.offer("tier", this.jobs.flatMap((job) => job.tiers), DATA.levels);
    this.offer("cause", this.jobs.map((job) => job.cause).filter(Boolean));
    options(this.control.restarts, [["", "any"], ["yes", "yes"], ["no", "no"]]);
    this.control["left-out"].textContent = leftOut(runs, this.jobs);
    this.draw();
  }

  offer(name, values, order) {
    const select = this.control[name];
    const before = select.value;
    const names = [...new Set(values)].sort(order
      ? (a, b) => order.indexOf(a) - order.indexOf(b) : inOrder);
    options(select, [["", "any"], ...names.map((value) => [value, value])]);
    if (names.includes(before)) select.value = before;
    select.parentElement.hidden = names.length < 2 && !before;
  }

  chosenJobs() {
    const { search, model, tier, cause, restarts } = this.control;
    const text = search.value.trim().toLowerCase();
    const { key, down } = this.sort;
    const order = WORDS.has(key) ? (a, b) => inOrder(a[key], b[key]) : (a, b) => a[key] - b[key];
    return this.jobs.filter((job) => (!text || job.id.toLowerCase().includes(text))
      && (!model.value || job.model === model.value)
      && (!tier.value || job.tiers.includes(tier.value))
      && (!cause.value || job.cause === cause.value)
      && (!restarts.value || (job.restarts > 0) === (restarts.value === "yes")),
    ).sort((a, b) => (down ? -1 : 1) * order(a, b) || a.handle - b.handle || a.index - b.index);
  }

  turn(by) {
    this.page += by;
    this.draw();
  }

  sortBy(key) {
    const words = WORDS.has(key);
    this.sort = { key, down: this.sort.key === key ? !this.sort.down : !words };
    this.page = 0;
    this.draw();
    this.host.querySelector(`[data-sort=${key}]`).focus();
  }

  columns() {
    return COLUMNS.filter(({ key }) => (key !== "policy" || this.control.run.value === "all")
      && (key !== "cause" || this.jobs.some((job) => job.cause)));
  }

  draw() {
    const jobs = this.chosenJobs();
    const size = Number(this.control.rows.value);
    const last = Math.max(0, Math.ceil(jobs.length / size) - 1);
    this.page = Math.max(0, Math.min(last, this.page));
    const from = this.page * size;
    const shown = jobs.slice(from, from + size);
    const columns = this.columns();
    this.host.replaceChildren(html("table", { class: "jobs" },
      html("thead", {}, html("tr", {}, ...columns.map((column) => this.head(column)))),
      html("tbody", {}, ...shown.flatMap((job) => this.rows(job, columns)))));
    const all = jobs.length === this.jobs.length ? "" : ` of ${counted(this.jobs.length, "job")}`;
    this.control.count.textContent = !jobs.length ? "No job fits."
      : `${number(from + 1)} to ${number(from + shown.length)} of ${counted(jobs.length, "job")}`
        + (all ? ` that fit,${all}` : "");
    this.control.back.disabled = this.page === 0;
    this.control.on.disabled = this.page === last;
    this.fit();
  }

  head(column) {
    const sorted = this.sort.key === column.key;
    const unit = column.of ? ` (${unitOf(column.of)})` : "";
    const mark = sorted ? (this.sort.down ? " ↓" : " ↑") : "";
    const button = html("button", { type: "button", "data-sort": column.key },
      column.label + unit, html("span", { "aria-hidden": "true" }, mark));
    button.addEventListener("click", () => this.sortBy(column.key));
    const order = this.sort.down ? "descending" : "ascending";
    return html("th", { scope: "col", class: WORDS.has(column.key) ? "words" : null,
      "aria-sort": sorted ? order : "none" }, button);
  }

  rows(job, columns) {
    const key = `${job.index} ${job.handle}`;
    const open = this.open.has(key);
    const id = `job-${job.index}-${job.handle}`;
    const button = html("button", { type: "button", class: "opener", "aria-expanded": open,
      "aria-controls": open ? id : null }, job.id);
    button.addEventListener("click", () => {
      if (!this.open.delete(key)) this.open.add(key);
      this.draw();
      this.host.querySelector(`[data-job="${key}"] button`).focus();
    });
    const row = html("tr", { "data-job": key }, html("th", { scope: "row" }, button),
      ...columns.slice(1).map((column) => html("td", { class: WORDS.has(column.key) ? "words" : null },
        column.of ? inUnit(job[column.key], column.of) : (column.show || String)(job[column.key]))));
    if (!open) return [row];
    const inside = html("div", { class: "inside" }, "…");
    jobDetails(job).then((parts) => { inside.replaceChildren(...parts.filter(Boolean)); });
    return [row, html("tr", { id, class: "opened" },
      html("td", { colspan: columns.length }, inside))];
  }

  // An opened row is as wide as what can be seen of the table.
  fit() {
    for (const inside of this.host.querySelectorAll(".inside")) {
      inside.style.width = `${this.host.clientWidth - 8}px`;
    }
  }
}

function options(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => html("option", { value }, text)));
}

const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

// What the page does not hold, in words.
function leftOut(runs, jobs) {
  const texts = ["The page holds times with five significant digits; the table rounds them further."];
  if (jobs.some((job) => job.measure !== "alone_s")) {
    texts.push("These runs lack alone_s: slowdown is relative to the time without communication.");
  }
  const of = (indices) => indices.map((i) => DATA.runs[i].name).join(", ");
  const without = runs.filter((i) => !DATA.jobs[i]);
  if (without.length) texts.push(`Jobs of ${of(without)} are left out to keep the page below 3 MB.`);
  const total = DATA.runs.length;
  const count = (test) => DATA.runs.filter((_, i) => test(i)).length;
  texts.push(`In this page: jobs of ${count((i) => DATA.jobs[i])} of ${counted(total, "run")}, stays of `
    + `${count(detailed)}, waits of ${count((i) => DATA.waits[i])} (of the worst jobs, if there is no `
    + "room for all). artist why RUN JOB prints what is left out.");
  return texts.join(" ");
}
