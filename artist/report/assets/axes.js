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
const horizontal = (figure, low, high) =>
  scaleOf(figure.x, figure.series.flatMap((series) => finite(xOf(figure, series))), low, high);

function scaleOf(axis, values, low, high) {
  const top = peak(values) || 1;
  const room = (each) => Math.max(2, Math.floor((high - low) / each));
  if (!axis.log) {
    return { scale: linear(0, top, low, high), ticks: labelled(niceTicks(top, room(70))) };
  }
  const least = values.filter((v) => v > 0).reduce((a, b) => Math.min(a, b), top);
  const [from, to] = [least * 0.9, Math.max(top * 1.1, least * 9)];
  return { scale: logarithmic(from, to, low, high), ticks: labelled(logTicks(from, to, room(42))) };
}

const labelled = (ticks) => ticks.map((value) => [value, number(value)]);

// Powers of ten, with 2 and 5 between them where there is room.
function logTicks(from, to, most) {
  const powers = [];
  for (let k = Math.floor(Math.log10(from)); k <= Math.log10(to); k++) powers.push(k);
  const all = (digits) => powers.flatMap((k) => digits.map((d) => Number(`${d}e${k}`)))
    .filter((v) => v >= from && v <= to);
  for (const digits of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = all(digits);
    if (ticks.length <= most || digits.length === 1) {
      const every = Math.ceil(ticks.length / most);
      return ticks.filter((_, i) => i % every === 0);
    }
  }
  return [];
}

function xAxis(group, ticks, scale, box, title, named = true) {
  for (const [value, label] of ticks) {
    const x = scale(value);
    if (x > box.right + 1) continue;
    group.append(svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    if (named) {
      const inside = Math.max(x, textWidth(label, 12) / 2 + 1);
      group.append(svg("text", { class: "tick", x: inside, y: box.bottom + 16,
        "text-anchor": "middle" }, label));
    }
  }
  group.append(
    svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg("text", { class: "label", x: box.right, y: box.bottom + 33, "text-anchor": "end" }, title),
  );
}

// Room for the labels on the left.
const gutter = (ticks) =>
  Math.max(46, 12 + Math.max(...ticks.map((v) => textWidth(number(v), 12))));

function yAxis(group, ticks, scale, box, title, named = true) {
  for (const value of ticks) {
    const y = scale(value);
    group.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    if (named) {
      group.append(svg("text", { class: "tick", x: box.left - 7, y: y + 4, "text-anchor": "end" },
        number(value)));
    }
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

// Reading a chart by pointer, finger or arrow keys: `stops` are positions along x or y, or things
// of which a function finds the nearest to a point. `read` gives the lines of the tooltip, the path
// of the mark, and where it is.
function readable(chart, stops, read, along = "x") {
  let at = -1;
  const mark = svg("path", { class: "probe", visibility: "hidden" });
  chart.append(mark);
  const nearestStop = typeof along === "function" ? along : (px, py) => {
    const p = along === "x" ? px : py;
    let best = 0;
    stops.forEach((s, i) => { if (Math.abs(s - p) < Math.abs(stops[best] - p)) best = i; });
    return best;
  };
  const where = (index, said, box) => {
    if (said.at) return said.at;
    return along === "x" ? [stops[index], box.height / 2] : [box.width / 2, stops[index]];
  };
  const show = (index, event) => {
    at = index;
    const said = read(stops[index], index);
    const box = chart.getBoundingClientRect();
    const line = along === "x" ? `M${stops[index]} ${said.top}V${said.bottom}` : null;
    const path = said.mark || line;
    if (path) {
      mark.setAttribute("d", path);
      mark.setAttribute("visibility", "visible");
    }
    const [x, y] = where(index, said, box);
    showTooltip(said.lines, event ? event.clientX : box.left + x,
      event ? event.clientY : box.top + y);
    if (!event) speak(said.lines);
  };
  const hide = () => { hideTooltip(); mark.setAttribute("visibility", "hidden"); };
  const nearest = (event) => {
    const box = chart.getBoundingClientRect();
    return nearestStop(event.clientX - box.left, event.clientY - box.top);
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
