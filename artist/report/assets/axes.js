// Scales, ticks and the frame around a plot.

function niceTicks(top, most) {
  if (!(top > 0)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(top / most));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => top / s <= most);
  const ticks = [];
  for (let i = 0; i * step <= top * 1.0001; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function linear(from, to, low, high) {
  const scale = (v) => low + ((v - from) / (to - from || 1)) * (high - low);
  scale.back = (p) => from + ((p - low) / (high - low || 1)) * (to - from);
  return scale;
}

function logarithmic(from, to, low, high) {
  const inner = linear(Math.log10(from), Math.log10(to), low, high);
  const scale = (v) => inner(Math.log10(Math.max(v, from)));
  scale.back = (p) => 10 ** inner.back(p);
  return scale;
}

const finite = (values) => values.filter((v) => v !== null);
const peak = (values) => finite(values).reduce((a, b) => Math.max(a, b), 0);
const xOf = (figure, series) => series.x || figure.series[0].x || [];

// The horizontal scale with its ticks: [[value, label]].
function horizontal(figure, low, high) {
  const all = figure.series.flatMap((series) => finite(xOf(figure, series)));
  const top = peak(all) || 1;
  if (!figure.x.timeLog) {
    const ticks = niceTicks(top, Math.max(2, Math.floor((high - low) / 70)));
    return { scale: linear(0, top, low, high), ticks: ticks.map((v) => [v, number(v)]) };
  }
  const from = Math.max(1, all.reduce((a, b) => Math.min(a, b), top)) * 0.9;
  const inside = DATA.timeTicks.filter(([v]) => v >= from && v <= top * 1.1);
  const room = Math.max(2, Math.floor((high - low) / 54));
  const every = Math.ceil(inside.length / room);
  return {
    scale: logarithmic(from, Math.max(top * 1.1, from * 10), low, high),
    ticks: inside.filter((_, i) => (inside.length - 1 - i) % every === 0),
  };
}

function xAxis(group, ticks, scale, box, title) {
  for (const [value, label] of ticks) {
    const x = scale(value);
    if (x > box.right + 1) continue;
    group.append(
      svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }),
      svg("text", { class: "tick", x, y: box.bottom + 16, "text-anchor": "middle" }, label),
    );
  }
  group.append(
    svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("text", { class: "label", x: box.right, y: box.bottom + 33, "text-anchor": "end" }, title),
  );
}

// Room for the labels on the left.
const gutter = (ticks) =>
  Math.max(46, 12 + Math.max(...ticks.map((v) => textWidth(number(v), 12))));

function yAxis(group, ticks, scale, box, title) {
  for (const value of ticks) {
    const y = scale(value);
    group.append(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }),
      svg("text", { class: "tick", x: box.left - 7, y: y + 4, "text-anchor": "end" },
        number(value)),
    );
  }
  group.append(svg("text", { class: "label", x: 0, y: 12 }, title));
}

function canvasFor(figure, width, height) {
  return svg("svg", {
    class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img",
    "aria-label": `${figure.title}. ${titleOf(figure.y)} by ${titleOf(figure.x)}, for `
      + figure.series.map((s) => s.name).join(", ") + ". Arrow keys read values; a table follows.",
  });
}

// Reading a chart by pointer, finger or arrow keys: `stops` are positions along x (or y).
function readable(chart, stops, read, along = "x") {
  let at = -1;
  const mark = svg("line", { class: "probe", visibility: "hidden" });
  chart.append(mark);
  const show = (index, event) => {
    at = index;
    const found = read(stops[index], index);
    const box = chart.getBoundingClientRect();
    if (along === "x") {
      for (const [key, value] of Object.entries({
        x1: stops[index], x2: stops[index], y1: found.top, y2: found.bottom,
      })) mark.setAttribute(key, value);
      mark.setAttribute("visibility", "visible");
    }
    const x = event ? event.clientX : box.left + (along === "x" ? stops[index] : box.width / 2);
    const y = event ? event.clientY : box.top + (along === "x" ? box.height / 2 : stops[index]);
    showTooltip(found.lines, x, y);
    if (!event) speak(found.lines);
  };
  const hide = () => { hideTooltip(); mark.setAttribute("visibility", "hidden"); };
  const nearest = (event) => {
    const box = chart.getBoundingClientRect();
    const p = along === "x" ? event.clientX - box.left : event.clientY - box.top;
    let best = 0;
    stops.forEach((s, i) => { if (Math.abs(s - p) < Math.abs(stops[best] - p)) best = i; });
    return best;
  };
  chart.addEventListener("pointermove", (event) => show(nearest(event), event));
  chart.addEventListener("pointerdown", (event) => show(nearest(event), event));
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step || !stops.length) return;
    event.preventDefault();
    show(Math.max(0, Math.min(stops.length - 1, at + step)), null);
  });
}
