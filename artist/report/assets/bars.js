// Bars: upright in groups, lying where there is one group, lying and stacked.

function bars(figure, width) {
  const alone = figure.categories.length === 1 || figure.series.length === 1;
  return alone ? lyingBars(figure, width) : groupedBars(figure, width);
}

const isKnown = (values, i) => values && values[i] !== null && values[i] !== undefined;

function interval(series, i, axis) {
  const value = quantity(series.y[i], axis);
  if (!isKnown(series.low, i)) return value;
  return `${value} [${number(series.low[i])} .. ${number(series.high[i])}]`;
}

function whisker(chart, series, i, path) {
  if (isKnown(series.low, i)) chart.append(svg("path", { class: "whisker", d: path() }));
}

// Where the axis of values ends: facets of a metric share it.
const topOf = (figure) => figure.y.top
  || peak(figure.series.flatMap((s) => [...s.y, ...(s.high || [])])) * 1.04 || 1;

function groupedBars(figure, width) {
  const top = topOf(figure);
  const levels = niceTicks(top, 5);
  const box = { left: gutter(levels), right: width - 4, top: 28, bottom: 258 };
  const group = (box.right - box.left) / figure.categories.length;
  const chart = canvasFor(figure, width, box.bottom + labelRoom(figure.categories, group));
  const y = linear(0, top, box.bottom, box.top);
  yAxis(chart, levels, y, box, titleOf(figure.y));
  const bar = Math.min((group * 0.84) / figure.series.length, 34);
  const stops = figure.categories.map((_, i) => box.left + group * (i + 0.5));
  figure.categories.forEach((category, i) => {
    groupLabel(chart, category, stops[i], box.bottom, group);
    figure.series.forEach((series, k) => {
      if (series.y[i] === null) return;
      const left = stops[i] + (k - figure.series.length / 2) * bar;
      const { colour, again } = tone(series.tone);
      chart.append(svg("rect", {
        class: again ? "bar again" : "bar", "data-series": series.name, x: left + bar * 0.06,
        y: y(series.y[i]), width: Math.max(bar * 0.88, 0.5), height: box.bottom - y(series.y[i]),
        style: `fill:${colour}`,
      }));
      const middle = left + bar / 2;
      whisker(chart, series, i, () => `M${middle} ${y(series.low[i])}V${y(series.high[i])}`);
    });
  });
  chart.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom,
    y2: box.bottom }));
  readable(chart, stops, (_, i) => ({
    lines: [figure.categories[i], ...figure.series.filter((s) => s.y[i] !== null)
      .map((s) => [tone(s.tone).colour, s.name, interval(s, i, figure.y)])],
    top: box.top, bottom: box.bottom,
  }));
  return [legend(figure), chart];
}

// Long names lean so that none is cut before it has to be; the first may reach back to the edge.
const LEAN = 28 * Math.PI / 180;
const fitsBelow = (text, room) => textWidth(text, 12) + 6 < room;

function labelRoom(names, room) {
  const leaning = names.filter((name) => !fitsBelow(name, room));
  const longest = Math.max(0, ...leaning.map((name) => textWidth(name.slice(0, 14), 12)));
  return Math.max(24, Math.ceil(longest * Math.sin(LEAN)) + 22);
}

function groupLabel(chart, text, x, y, room) {
  const reach = (x - 2) / Math.cos(LEAN);
  let shown = text.length > 14 ? `${text.slice(0, 13)}…` : text;
  while (shown.length > 2 && textWidth(shown, 12) > reach) shown = `${shown.slice(0, -2)}…`;
  chart.append(fitsBelow(text, room)
    ? svg("text", { class: "tick", x, y: y + 17, "text-anchor": "middle" }, text)
    : svg("text", { class: "tick", "text-anchor": "end",
      transform: `translate(${x + 4} ${y + 13}) rotate(-28)` }, shown));
}

function lyingBars(figure, width) {
  const rows = figure.series.flatMap((series) => figure.categories.map((category, i) => ({
    name: figure.categories.length === 1 ? series.name : category,
    parts: [{ series, i }],
    end: interval(series, i, figure.y),
  })));
  return lying(figure, width, rows, figure.y);
}

function stack(figure, width) {
  const rows = figure.categories.map((name, i) => ({
    name,
    parts: figure.series.map((series) => ({ series, i })),
    end: quantity(figure.series.reduce((sum, s) => sum + (s.y[i] || 0), 0), figure.x),
  }));
  return [legend(figure), ...lying(figure, width, rows, figure.x)];
}

// One bar a row: its name above it, its value at its end.
function lying(figure, width, rows, axis) {
  const each = 44;
  const height = 6 + each * rows.length + 22;
  const chart = canvasFor(figure, width, height);
  const total = (row) => row.parts.reduce((sum, part) => sum + (part.series.y[part.i] || 0), 0);
  const room = Math.min(width * 0.6, 14 + Math.max(...rows.map((row) => textWidth(row.end, 13))));
  const high = ({ parts: [{ series, i }], parts }) =>
    (parts.length === 1 && isKnown(series.high, i) ? series.high[i] : 0);
  const top = axis.top || Math.max(...rows.map(total), ...rows.map(high)) || 1;
  const x = linear(0, top, 0, width - room);
  rows.forEach((row, r) => {
    const y = 6 + each * r;
    chart.append(svg("text", { class: "name", x: 0, y: y + 12 }, row.name));
    let sum = 0;
    for (const { series, i } of row.parts) {
      const value = series.y[i] || 0;
      const { colour, again } = tone(series.tone);
      chart.append(svg("rect", {
        class: again ? "bar again" : "bar", "data-series": series.name, style: `fill:${colour}`,
        x: x(sum), y: y + 18, width: Math.max(x(sum + value) - x(sum) - (row.parts.length > 1), 0),
        height: 16,
      }));
      sum += value;
    }
    const [{ series: lone, i: at }] = row.parts;
    if (row.parts.length === 1) {
      whisker(chart, lone, at, () => `M${x(lone.low[at])} ${y + 26}H${x(lone.high[at])}`);
    }
    const end = x(Math.max(sum, high(row))) + 7;
    chart.append(svg("text", { class: "value", x: end, y: y + 31 }, row.end));
  });
  chart.append(svg("text", { class: "label", x: 0, y: height - 4 }, titleOf(axis)));
  readable(chart, rows.map((_, r) => 6 + each * (r + 0.5)), (_, r) => ({
    lines: [rows[r].name, ...rows[r].parts.map(({ series, i }) => [
      tone(series.tone).colour, rows[r].parts.length > 1 ? series.name : axis.label,
      rows[r].parts.length > 1 ? share(series.y[i], total(rows[r]), axis) : rows[r].end])],
  }), "y");
  return [chart];
}

const share = (value, total, axis) =>
  `${quantity(value, axis)} (${total ? Number(((100 * value) / total).toPrecision(3)) : 0} %)`;

const DRAW = { bars, stack, lines, rows, ranges, waterfall };
// Kinds of figures with tables of their own, and how to make them.
const TABLE = {};
