// A map of links: a row of cells per link, coloured by utilization. Where jobs lose much to each other,
// a line runs below its cells.

const SHADES = 20;
const MARKED_LOSS = 5;

// Pale up to half, then through the colours of orders, five per cent a shade.
function shade(percent) {
  const step = Math.min(SHADES, Math.round((percent * SHADES) / 100));
  if (step === 0) return "var(--idle)";
  if (step <= SHADES / 2) return `color-mix(in oklab, var(--o0) ${step * 10}%, var(--idle))`;
  const along = step - SHADES / 2;
  const from = Math.min(4, Math.floor(along / 2));
  return `color-mix(in oklab, var(--o${from + 1}) ${(along - 2 * from) * 50}%, var(--o${from}))`;
}

function heat(figure, width) {
  const rows = figure.series;
  const each = rows.length > 20 ? 17 : rows.length > 8 ? 22 : 30;
  const [gap, line] = each > 17 ? [7, 3] : [5, 2];
  const room = Math.min(160, width * 0.3);
  const left = 8 + Math.min(room, Math.max(...rows.map((s) => textWidth(s.name, 12))));
  const box = { left, right: width - 14, top: 6, bottom: 6 + rows.length * each };
  const chart = canvasFor(figure, width, box.bottom + 42);
  const x = horizontal(figure, box.left, box.right);
  xAxis(chart, x.ticks, x.scale, box, titleOf(figure.x));
  const xs = rows[0].x.map(x.scale);
  const paths = new Map();
  const cell = (colour, from, to, y, height) => paths.set(colour, (paths.get(colour) || "")
    + `M${from.toFixed(1)} ${y}H${to.toFixed(1)}v${height}H${from.toFixed(1)}z`);
  rows.forEach((series, r) => {
    const y = box.top + r * each;
    chart.append(svg("text", { class: "tick", x: box.left - 7, y: y + (each - gap) / 2 + 4,
      "text-anchor": "end" }, svg("title", {}, series.name), fitted(series.name, room, 12)));
    joinedCells(series.y.map(shade)).forEach(([from, to, colour]) =>
      cell(colour, xs[from], xs[to], y, each - gap));
    joinedCells(series.parts[1].map((share) => share >= MARKED_LOSS)).forEach(([from, to, marked]) => {
      if (marked) cell("var(--l2)", xs[from], xs[to], y + each - gap, line);
    });
  });
  for (const [colour, d] of paths) {
    chart.append(svg("path", { class: "cells", d, style: `fill:${colour}` }));
  }
  const count = rows[0].y.length;
  const stops = rows.flatMap((_, r) => Array.from({ length: count }, (__, i) => [r, i]));
  const wide = (box.right - box.left) / count;
  const within = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
  readable(chart, stops, ([r, i]) => ({
    lines: cellLines(figure, rows[r], i),
    mark: `M${xs[i]} ${box.top + r * each}H${xs[i + 1]}V${box.top + (r + 1) * each - gap}H${xs[i]}z`,
    at: [xs[i], box.top + (r + 0.5) * each],
  }), (px, py) => within((py - box.top) / each, rows.length) * count
    + within((px - box.left) / wide, count));
  return [heatLegend(), chart];
}

// Neighbours with one value: [first, end, value].
function joinedCells(values) {
  const runs = [];
  values.forEach((value, i) => {
    if (runs.length && runs.at(-1)[2] === value) runs.at(-1)[1] = i + 1;
    else runs.push([i, i + 1, value]);
  });
  return runs;
}

function cellLines(figure, series, i) {
  const [jobs, lost] = series.parts;
  const edges = figure.series[0].x;
  return [`${series.name}, ${number(edges[i])} to ${quantity(edges[i + 1], figure.x)}`,
    [shade(series.y[i]), "utilization", quantity(series.y[i], figure.y)],
    [null, "most jobs at once", number(jobs[i])],
    ["var(--l2)", "its jobs lose to others", `${number(lost[i])} % of their time`]];
}

function heatLegend() {
  const scale = html("i", { class: "heat-scale" });
  const shades = Array.from({ length: SHADES + 1 }, (_, i) => shade((100 * i) / SHADES));
  scale.style.background = `linear-gradient(90deg, ${shades.join(", ")})`;
  return html("ul", { class: "legend" },
    html("li", {}, html("span", { class: "whole" }, "0 %"), scale, "100 % of what a link carries"),
    html("li", {}, html("i", { class: "heat-line" }), `its jobs lose ${MARKED_LOSS} % of their time or more`));
}

// Links downwards: what each carried on average and at most, and what its jobs lost.
function tableOfLinks(figure) {
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  return dataTable(["uplink", "mean utilization (%)", "largest (%)", "most jobs at once",
    "its jobs lost at most (% of their time)"],
  figure.series.map((s) => [s.name, number(mean(s.y)), number(peak(s.y)), number(peak(s.parts[0])),
    number(peak(s.parts[1]))]));
}

DRAW.heat = heat;
TABLE.heat = tableOfLinks;
