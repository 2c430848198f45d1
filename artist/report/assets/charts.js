// Lines and rows, as inline SVG at the width they are shown at.

const STOPS = 120;

function legend(figure) {
  if (figure.series.length < 2) return null;
  return html("ul", { class: "legend" }, ...figure.series.map((series) => {
    const { colour, again } = tone(series.tone);
    const swatch = html("i", { class: again ? "swatch again" : "swatch" });
    swatch.style.background = colour;
    const item = html("li", {}, swatch, series.name);
    item.addEventListener("pointerenter", () => emphasise(item, series.name));
    item.addEventListener("pointerleave", () => emphasise(item, null));
    return item;
  }));
}

function emphasise(item, name) {
  for (const mark of item.closest("figure").querySelectorAll("[data-series]")) {
    mark.classList.toggle("faded", name !== null && mark.dataset.series !== name);
  }
}

// The value of a step or straight line at x; null outside and in gaps.
function valueAt(xs, ys, x, step) {
  let low = 0;
  let high = xs.length - 1;
  if (!xs.length || x < xs[0] || x > xs[high]) return null;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle - 1;
  }
  if (step || low + 1 >= xs.length || ys[low] === null || ys[low + 1] === null) return ys[low];
  const share = (x - xs[low]) / (xs[low + 1] - xs[low] || 1);
  return ys[low] + share * (ys[low + 1] - ys[low]);
}

function linePath(xs, ys, sx, sy, step) {
  const parts = [];
  let pen = false;
  ys.forEach((y, i) => {
    if (y === null) { pen = false; return; }
    const point = `${sx(xs[i]).toFixed(1)} ${sy(y).toFixed(1)}`;
    if (!pen) parts.push("M" + point);
    else if (step) parts.push(`H${sx(xs[i]).toFixed(1)}V${sy(y).toFixed(1)}`);
    else parts.push("L" + point);
    pen = true;
  });
  return parts.join("");
}

// The values of all lines at a place along the axis, the largest first.
function valuesAt(figure, x) {
  const values = figure.series
    .map((s) => [tone(s.tone).colour, s.name, valueAt(xOf(figure, s), s.y, x, figure.step)])
    .filter((line) => line[2] !== null).sort((a, b) => b[2] - a[2]);
  return [`${figure.x.label}: ${quantity(x, figure.x)}`,
    ...values.map(([colour, name, value]) => [colour, name, quantity(value, figure.y)])];
}

function lines(figure, width, beside) {
  if (figure.panels) return panels(figure, width);
  const height = ON_PAPER ? 200 : Math.max(300, beside - (figure.series.length > 1 ? 58 : 0));
  const chart = canvasFor(figure, width, height);
  const top = figure.y.top || peak(figure.series.flatMap((s) => s.y)) * 1.04 || 1;
  const levels = niceTicks(top, 5);
  const box = { left: gutter(levels), right: width - 14, top: 28, bottom: height - 42 };
  const y = linear(0, top, box.bottom, box.top);
  const x = horizontal(figure, box.left, box.right);
  yAxis(chart, levels, y, box, titleOf(figure.y));
  xAxis(chart, x.ticks, x.scale, box, titleOf(figure.x));
  for (const series of figure.series) {
    const { colour, again } = tone(series.tone);
    chart.append(svg("path", {
      class: (again ? "line again" : "line") + (figure.broad ? " broad" : ""), "data-series": series.name,
      style: `stroke:${colour}`, d: linePath(xOf(figure, series), series.y, x.scale, y, figure.step),
    }));
  }
  const span = box.right - box.left;
  const stops = Array.from({ length: STOPS + 1 }, (_, i) => box.left + (span * i) / STOPS);
  readable(chart, stops, (at) => ({
    lines: valuesAt(figure, x.scale.back(at)), top: box.top, bottom: box.bottom,
  }));
  return [legend(figure), chart];
}

// Height of each small plot, of the gap above it, of all of them. Two rows of cards fit on a sheet.
function rowsLayout(count) {
  const each = count === 1 ? (ON_PAPER ? 150 : 230)
    : Math.max(34, Math.min(74, (ON_PAPER ? 120 : 380) / count));
  const gap = count === 1 ? 0 : 20;
  return { each, gap, height: 28 + count * (each + gap) + 42 };
}

function rows(figure, width) {
  const { each, gap, height } = rowsLayout(figure.series.length);
  const chart = canvasFor(figure, width, height);
  const top = figure.y.top || peak(figure.series.flatMap((s) => s.y)) || 1;
  const ticks = each > 100 ? niceTicks(top, 4) : [0, niceTicks(top, 2).at(-1)];
  const box = { left: gutter(ticks), right: width - 14, top: 28, bottom: height - 42 };
  const x = horizontal(figure, box.left, box.right);
  xAxis(chart, x.ticks, x.scale, box, titleOf(figure.x));
  chart.append(svg("text", { class: "label", x: 0, y: 12 }, titleOf(figure.y)));
  figure.series.forEach((series, index) => {
    const bottom = box.top + (index + 1) * (each + gap);
    const y = linear(0, top, bottom, bottom - each);
    const xs = xOf(figure, series).map(x.scale);
    for (const tick of ticks) {
      chart.append(svg("text", { class: "tick", x: box.left - 7, y: y(tick) + 4,
        "text-anchor": "end" }, number(tick)));
    }
    chart.append(
      svg("line", { class: "axis", x1: box.left, x2: box.right, y1: bottom, y2: bottom }),
    );
    tops(series).forEach((upper, part, all) => chart.append(svg("path", {
      class: figure.parts ? "area part" + part : "area", "data-series": series.name,
      d: band(xs, upper, all[part - 1], y), style: `fill:${tone(series.tone).colour}`,
    })));
    if (gap) {
      chart.append(svg("text", { class: "name", x: box.left + 2, y: bottom - each - 4 },
        series.name));
    }
  });
  const edges = figure.series[0].x;
  const stops = edges.slice(0, -1).map((edge, i) => (x.scale(edge) + x.scale(edges[i + 1])) / 2);
  readable(chart, stops, (_, i) => ({
    lines: [`${figure.x.label}: ${number(edges[i])} to ${quantity(edges[i + 1], figure.x)}`,
      ...figure.series.map((s) => [tone(s.tone).colour, s.name, inParts(figure, s, i)])],
    top: box.top, bottom: box.bottom,
  }));
  return [legendOfParts(figure), chart];
}

// The upper edges of a series' parts, from the axis upwards; the last one is the series itself.
function tops(series) {
  let sum = series.y.map(() => 0);
  const inner = (series.parts || []).map((part) => (sum = sum.map((v, i) => v + part[i])));
  return [...inner, series.y];
}

// The area of a step function above another one, or above zero.
function band(xs, upper, lower, y) {
  const floor = lower || upper.map(() => 0);
  let path = `M${xs[0].toFixed(1)} ${y(floor[0]).toFixed(1)}`;
  upper.forEach((v, i) => { path += `V${y(v).toFixed(1)}H${xs[i + 1].toFixed(1)}`; });
  for (let i = upper.length - 1; i >= 0; i--) {
    path += `V${y(floor[i]).toFixed(1)}H${xs[i].toFixed(1)}`;
  }
  return path + "Z";
}

function inParts(figure, series, i) {
  const whole = quantity(series.y[i], figure.y);
  if (!figure.parts) return whole;
  const known = series.parts.map((part) => part[i]);
  const rest = Math.max(0, series.y[i] - known.reduce((a, b) => a + b, 0));
  const words = [...known, rest].map((v, part) => `${quantity(v, figure.y)} ${figure.parts[part]}`);
  return `${whole}: ${words.join(", ")}`;
}

function legendOfParts(figure) {
  if (!figure.parts) return null;
  return html("ul", { class: "legend" }, ...figure.parts.map((name, part) =>
    html("li", {}, ...figure.series.slice(0, 4).map((series) => {
      const swatch = html("i", { class: "swatch part" + part });
      swatch.style.setProperty("--own", tone(series.tone).colour);
      return swatch;
    }), name)));
}
