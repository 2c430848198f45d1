// The cluster timeline: machines downwards, time to the right, a rectangle per job placement.
// Two of them, one policy each, show the same time and machines, and point out the same job.

async function inflateJson(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const RUNS = new Map();
async function inflate(packed) {
  if (RUNS.has(packed)) return RUNS.get(packed);
  const run = await inflateJson(packed);
  let end = 0;
  run.ends = run.end.map((difference) => (end += difference));
  run.total = Math.max(1, ...run.ends.slice(-1));
  run.levelOf = (i) => run.levels[run.kinds[0][run.kind[i]]];
  run.factsOf = (i) => placementFacts(run, i);
  RUNS.set(packed, run);
  return run;
}

// One row of placements.parquet.
function placementFacts(run, i) {
  const place = run.places[run.place[i]];
  const sharers = run.sharers ? run.sharers[i] : 1; // a job draws on its part of shared lanes
  const machines = new Map();
  for (let s = 0; s < place.length; s += 3) {
    const gpus = Math.round(place[s + 2] * sharers);
    machines.set(place[s], (machines.get(place[s]) || 0) + gpus);
  }
  const gpus = [...machines.values()].reduce((a, b) => a + b, 0);
  return {
    row: i, job: run.jobs[run.job[i]], model: run.models[run.model[run.job[i]]],
    gpus: sharers > 1 ? `${gpus}, shared by ${sharers} jobs` : String(gpus),
    level: run.levelOf(i), shape: run.shapes[run.kinds[1][run.kind[i]]],
    speed: run.kinds[2][run.kind[i]], ended: run.endings[run.ended[i]],
    placement: [...machines].map(([m, g]) => `${m}:${g}`).join(" "),
    start: (run.ends[i] - run.length[i]) * run.step, length: run.length[i] * run.step,
  };
}

const TONES = 10;

// Each job has a colour of its own, from its number: the golden angle keeps neighbours apart.
function jobColour(handle, dark) {
  const step = Math.floor(handle / 5) % 3;
  const [light, chroma] = dark ? [0.66 + 0.08 * step, 0.13] : [0.45 + 0.07 * step, 0.14];
  return `oklch(${light.toFixed(2)} ${chroma} ${((handle * 137.508) % 360).toFixed(1)})`;
}

class ClusterTimeline {
  constructor(host) {
    this.canvas = html("canvas", { tabindex: 0, role: "img", "aria-describedby": "timeline-help" });
    this.host = host;
    host.append(this.canvas);
    this.colour = "level";
    this.run = null;
    this.beside = null; // the other timeline
    startGestures(this);
    new ResizeObserver(() => this.draw()).observe(host);
  }

  // `end_s`: the end of the axis.
  show(run, label, end_s) {
    this.run = run;
    this.label = label;
    this.until = end_s / run.step;
    this.canvas.setAttribute("aria-label", `Cluster timeline of ${label}: ${run.machines} machines,`
      + ` ${run.job.length} placements, ${withUnit(run.total * run.step, "time")}`);
    this.reset();
  }

  reset() {
    this.view = { t0: 0, t1: this.until, m0: 0, m1: Math.min(this.run.machines, 160) };
    this.held = null;
    this.#redraw();
  }

  // Draws both timelines: what is shown here is shown beside, too.
  #redraw() {
    this.draw();
    const other = this.beside;
    if (!other || !other.run) return;
    const scale = this.run.step / other.run.step;
    const { t0, t1, m0, m1 } = this.view;
    other.view = { t0: t0 * scale, t1: t1 * scale, m0, m1 };
    other.held = this.held !== null && other.run.jobs[this.held] === this.run.jobs[this.held]
      ? this.held : null;
    other.draw();
  }

  // Zooms about a place in the picture, 0 to 1.
  zoom(factor, at = 0.5) {
    const { t0, t1 } = this.view;
    const span = Math.min(this.until, Math.max(20, (t1 - t0) / factor));
    this.#moveTo(t0 + (t1 - t0 - span) * at, span);
  }

  pan(share, down = 0) {
    const { t0, t1, m0, m1 } = this.view;
    this.#moveTo(t0 + (t1 - t0) * share, t1 - t0);
    const shift = Math.max(-m0, Math.min(this.run.machines - m1, down * (m1 - m0)));
    this.view.m0 += shift;
    this.view.m1 += shift;
    this.#redraw();
  }

  #moveTo(start, span) {
    const t0 = Math.max(0, Math.min(this.until - span, start));
    Object.assign(this.view, { t0, t1: t0 + span });
    this.#redraw();
  }

  #layout() {
    const width = this.host.clientWidth;
    const shown = this.view.m1 - this.view.m0;
    const share = this.beside && this.beside.run ? 0.55 : 1;
    const tall = Math.max(220 * share, Math.min(640, shown * (width < 600 ? 14 : 22)) * share);
    return { width, height: tall + 30, left: 44, right: width - 4, top: 4, bottom: tall + 4 };
  }

  draw() {
    if (!this.run || !this.view || !this.host.clientWidth) return;
    const box = (this.box = this.#layout());
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.canvas.style.height = box.height + "px";
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = styleOf("idle");
    pen.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    this.#drawPlacements(pen, box);
    this.#drawAxes(pen, box);
  }

  #drawPlacements(pen, box) {
    const { run, view } = this;
    const palette = this.#palette();
    const x = linear(view.t0, view.t1, box.left, box.right);
    const row = (box.bottom - box.top) / (view.m1 - view.m0);
    const lane = (row > 5 ? row - 1 : row) / run.lanes;
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    pen.clip();
    for (let i = 0; i < run.job.length; i++) {
      const end = run.ends[i];
      const start = end - run.length[i];
      if (end <= view.t0 || start >= view.t1 || start === end) continue;
      const left = x(start);
      const wide = Math.max(x(end) - left, 0.6);
      const gap = wide > 6 ? 0.8 : 0;
      pen.fillStyle = palette(i);
      pen.globalAlpha = this.held === null || run.job[i] === this.held ? 1 : 0.18;
      const place = run.places[run.place[i]];
      for (let s = 0; s < place.length; s += 3) {
        if (place[s] + 1 <= view.m0 || place[s] >= view.m1) continue;
        const y = box.top + (place[s] - view.m0) * row + place[s + 1] * lane;
        pen.fillRect(left, y, wide - gap, Math.max(place[s + 2] * lane - (lane > 3 ? 0.5 : 0), 0.5));
      }
    }
    pen.restore();
  }

  #palette() {
    const { run } = this;
    const tones = Array.from({ length: TONES }, (_, i) => styleOf("j" + i));
    const levels = Array.from({ length: 6 }, (_, i) => styleOf("l" + i));
    const order = DATA.levels;
    const dark = isDark();
    if (this.colour === "level") return (i) => levels[order.indexOf(run.levelOf(i)) % 6];
    if (this.colour === "model") return (i) => tones[run.model[run.job[i]] % TONES];
    return (i) => jobColour(run.job[i], dark);
  }

  #drawAxes(pen, box) {
    const { run, view } = this;
    pen.font = "11px " + styleOf("font");
    pen.fillStyle = styleOf("quiet");
    const row = (box.bottom - box.top) / (view.m1 - view.m0);
    run.racks.forEach((first, index) => {
      const y = box.top + (first - view.m0) * row;
      if (y < box.top - 1 || y > box.bottom - 12) return;
      pen.fillRect(0, Math.max(y - 0.5, box.top), box.right, 1);
      pen.fillText("rack " + index, 0, y + 12);
    });
    const unit = [DATA.units.time.seconds, DATA.units.time.name];
    const x = linear(view.t0 * run.step, view.t1 * run.step, box.left, box.right);
    const [from, to] = [view.t0 * run.step / unit[0], view.t1 * run.step / unit[0]];
    const step = niceTicks(to - from, Math.max(2, (box.right - box.left) / 90))[1];
    const title = `Time (${unit[1]})`;
    const room = pen.measureText(title).width + 18;
    pen.textAlign = "center";
    for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
      const at = x(v * unit[0]);
      if (at > box.right - room) break; // no tick without a label
      pen.fillRect(at, box.bottom, 1, 4);
      pen.fillText(number(Number(v.toPrecision(10))), at, box.bottom + 17);
    }
    pen.textAlign = "right";
    pen.fillText(title, box.right, box.bottom + 17);
  }

  release() {
    hideTooltip();
    if (this.held === null) return;
    this.held = null;
    this.#redraw();
  }

  // The row under the pointer.
  find(event) {
    const frame = this.canvas.getBoundingClientRect();
    const { run, view, box } = this;
    const t = view.t0 + ((event.clientX - frame.left - box.left) / (box.right - box.left))
      * (view.t1 - view.t0);
    const m = view.m0 + ((event.clientY - frame.top - box.top) / (box.bottom - box.top))
      * (view.m1 - view.m0);
    const machine = Math.floor(m);
    const lane = (m - machine) * run.lanes;
    return run.job.findIndex((_, i) => {
      if (t < run.ends[i] - run.length[i] || t >= run.ends[i]) return false;
      const place = run.places[run.place[i]];
      for (let s = 0; s < place.length; s += 3) {
        if (place[s] === machine && lane >= place[s + 1] && lane < place[s + 1] + place[s + 2]) {
          return true;
        }
      }
      return false;
    });
  }

  tell(event) {
    const i = this.find(event);
    const job = i < 0 ? null : this.run.job[i];
    if (job !== this.held) { this.held = job; this.#redraw(); }
    if (i < 0) { hideTooltip(); return; }
    const f = this.run.factsOf(i);
    const where = f.placement.length > 36 ? f.placement.slice(0, 35) + "…" : f.placement;
    showTooltip([`Job ${f.job}`, ["", "model", f.model], ["", "GPUs", f.gpus],
      ["", "level", f.level], ["", "machine:GPUs", where], ["", "from", withUnit(f.start, "time")],
      ["", "for", withUnit(f.length, "time")], ["", "placements.parquet row", String(f.row)],
    ], event.clientX, event.clientY);
  }
}
