// Two circles side by side: a ring per job and, in red, where jobs together want more than the link
// carries. Time runs clockwise from the top.

const HOLE = 0.34;

// The bins at which a job sends, or at which too much is wanted: neighbours joined, [first, end].
const sending = (values) => joinedCells(values.map((v) => v > 0))
  .filter(([, , there]) => there).map(([from, to]) => [from, to]);

function wanted(figure, which) {
  const all = figure.series.map((s) => (which ? s.parts[0] : s.y));
  return all[0].map((_, i) => all.reduce((sum, values) => sum + values[i], 0));
}

const excessOf = (figure, which) => wanted(figure, which).map((v) => Math.max(v - figure.y.top, 0));

// A part of a ring around (x, y), from one angle to another; nearly all of it if that is all.
function ringPath(x, y, inner, outer, from, until) {
  const to = Math.min(until, from + 1.9999 * Math.PI);
  const at = (radius, angle) =>
    `${(x + radius * Math.sin(angle)).toFixed(2)} ${(y - radius * Math.cos(angle)).toFixed(2)}`;
  const large = to - from > Math.PI ? 1 : 0;
  return `M${at(outer, from)}A${outer} ${outer} 0 ${large} 1 ${at(outer, to)}`
    + `L${at(inner, to)}A${inner} ${inner} 0 ${large} 0 ${at(inner, from)}z`;
}

function circles(figure, width) {
  const across = width > 420 ? 2 : 1;
  const room = Math.min(300, width / across - 16);
  const radius = room / 2 - 4;
  const rings = figure.series.length + 1;
  const each = (radius * (1 - HOLE)) / rings;
  const high = room + 34;
  const chart = canvasFor(figure, width, 6 + high * (across === 2 ? 1 : 2));
  const bins = figure.series[0].y.length;
  const angle = (bin) => (2 * Math.PI * bin) / bins;
  const centres = figure.parts.map((_, which) => (across === 2
    ? [(width * (2 * which + 1)) / 4, 30 + room / 2] : [width / 2, 30 + which * high + room / 2]));
  const inner = (ring) => radius * HOLE + ring * each;
  figure.parts.forEach((title, which) => {
    const [x, y] = centres[which];
    chart.append(svg("text", { class: "name", x, y: y - room / 2 - 8, "text-anchor": "middle" }, title));
    const draw = (ring, values, colour, name) => {
      const [from, to] = [inner(ring), inner(ring) + each * 0.86];
      chart.append(svg("circle", { class: "ring", cx: x, cy: y, r: (from + to) / 2,
        "stroke-width": to - from }));
      const d = sending(values).map(([a, b]) => ringPath(x, y, from, to, angle(a), angle(b))).join("");
      if (d) chart.append(svg("path", { class: "arc", "data-series": name, d, style: `fill:${colour}` }));
    };
    figure.series.forEach((s, ring) =>
      draw(ring, which ? s.parts[0] : s.y, tone(s.tone).colour, s.name));
    draw(rings - 1, excessOf(figure, which), "var(--l2)", "too much");
    const turn = quantity(figure.series[0].x.at(-1), figure.x);
    chart.append(svg("text", { class: "tick", x, y: y + 4, "text-anchor": "middle" }, turn));
  });
  const stops = centres.flatMap((_, which) => Array.from({ length: bins }, (__, i) => [which, i]));
  readable(chart, stops, ([which, i]) => {
    const [x, y] = centres[which];
    const middle = angle(i + 0.5);
    const [sin, cos] = [Math.sin(middle), Math.cos(middle)];
    return {
      lines: circleLines(figure, which, i),
      mark: `M${x + inner(0) * sin} ${y - inner(0) * cos}L${x + radius * sin} ${y - radius * cos}`,
      at: [x + radius * sin, y - radius * cos],
    };
  }, (px, py) => {
    const far = ([x, y]) => Math.hypot(px - x, py - y);
    const which = centres.length > 1 && far(centres[1]) < far(centres[0]) ? 1 : 0;
    const [x, y] = centres[which];
    const turned = (Math.atan2(px - x, y - py) / (2 * Math.PI) + 1) % 1;
    return which * bins + Math.min(bins - 1, Math.floor(turned * bins));
  });
  return [circleLegend(figure), chart];
}

function circleLines(figure, which, i) {
  const edges = figure.series[0].x;
  const all = wanted(figure, which)[i];
  return [`${figure.parts[which].split(":")[0]}, at ${quantity(edges[i], figure.x)}`,
    ...figure.series.map((s) => [tone(s.tone).colour, s.name,
      quantity((which ? s.parts[0] : s.y)[i], figure.y)]),
    [all > figure.y.top ? "var(--l2)" : null, "together",
      `${quantity(all, figure.y)} of ${number(figure.y.top)}`]];
}

function circleLegend(figure) {
  const items = figure.series.map((s) => {
    const swatch = html("i", { class: "swatch" });
    swatch.style.background = tone(s.tone).colour;
    const item = html("li", {}, swatch, s.name);
    item.addEventListener("pointerenter", () => emphasise(item, s.name));
    item.addEventListener("pointerleave", () => emphasise(item, null));
    return item;
  });
  const red = html("i", { class: "swatch" });
  red.style.background = "var(--l2)";
  return html("ul", { class: "legend" }, ...items,
    html("li", {}, red, `together more than ${quantity(figure.y.top, figure.y)}`));
}

function tableOfCircles(figure) {
  const unit = figure.x.unit;
  return dataTable(["job", `iteration (${unit})`, `sends for (${unit})`, `wants (${figure.y.unit})`,
    `shift (${unit})`],
  figure.series.map((s) => [s.name, number(s.parts[1][0]), number(s.parts[1][1]), number(peak(s.y)),
    number(s.parts[1][2])]));
}

DRAW.circles = circles;
TABLE.circles = tableOfCircles;
