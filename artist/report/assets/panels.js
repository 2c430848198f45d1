// Small multiples: one panel per series, all with the same axes.

const PANEL_GAP = 20;

// Where the panels are, row by row; the first `left` points belong to the labels of the axis.
function panelGrid(count, width, { left, least, each, above }) {
  const room = width - left - 14;
  const columns = Math.max(1, Math.min(count, Math.floor((room + PANEL_GAP) / (least + PANEL_GAP))));
  const wide = (room - PANEL_GAP * (columns - 1)) / columns;
  const boxes = Array.from({ length: count }, (_, i) => {
    const from = left + (i % columns) * (wide + PANEL_GAP);
    const top = 6 + Math.floor(i / columns) * (each + above) + above;
    return { left: from, right: from + wide, top, bottom: top + each };
  });
  return { boxes, columns, bottom: boxes.at(-1).bottom };
}

function panelName(chart, series, box) {
  const { colour } = tone(series.tone);
  const size = { x: box.left, y: box.top - 16, width: 11, height: 11, rx: 3 };
  const name = fitted(series.name, box.right - box.left - 18, 13);
  chart.append(svg("rect", { ...size, style: `fill:${colour}` }),
    svg("text", { class: "name", x: box.left + 17, y: box.top - 6 },
      svg("title", {}, series.name), name));
}

// A text cut to a width.
function fitted(text, room, size) {
  let shown = text;
  while (shown.length > 2 && textWidth(shown, size) > room) shown = `${shown.slice(0, -2)}…`;
  return shown;
}

// Each line in a panel of its own, in front of the others in grey.
function panels(figure, width) {
  const top = figure.y.top || peak(figure.series.flatMap((s) => s.y)) * 1.04 || 1;
  const levels = niceTicks(top, 3);
  const left = gutter(levels);
  const grid = panelGrid(figure.series.length, width, { left, least: 190, each: 128, above: 40 });
  const chart = canvasFor(figure, width, grid.bottom + 42);
  chart.append(svg("text", { class: "label", x: 0, y: 12 }, titleOf(figure.y)),
    svg("text", { class: "label", x: width - 14, y: grid.bottom + 33, "text-anchor": "end" },
      titleOf(figure.x)));
  const scales = grid.boxes.map((box) => horizontal(figure, box.left, box.right));
  grid.boxes.forEach((box, i) => {
    const y = linear(0, top, box.bottom, box.top);
    if (i % grid.columns === 0) yAxis(chart, levels, y, box, "");
    else yAxis(chart, levels, y, box, "", false);
    const below = i + grid.columns >= figure.series.length;
    xAxis(chart, scales[i].ticks, scales[i].scale, box, "", below);
    const path = (series) =>
      linePath(xOf(figure, series), series.y, scales[i].scale, y, figure.step);
    for (const other of figure.series) {
      if (other === figure.series[i]) continue;
      chart.append(svg("path", { class: "line", d: path(other),
        style: "stroke:var(--quiet);stroke-width:1;opacity:.35" }));
    }
    const own = figure.series[i];
    chart.append(svg("path", { class: figure.broad ? "line broad" : "line", d: path(own),
      "data-series": own.name, style: `stroke:${tone(own.tone).colour}` }));
    panelName(chart, own, box);
  });
  readPanels(chart, figure, grid, scales);
  return [chart];
}

// A place along the axis is read in all panels at once.
function readPanels(chart, figure, { boxes }, scales) {
  const wide = boxes[0].right - boxes[0].left;
  const shares = Array.from({ length: STOPS + 1 }, (_, i) => i / STOPS);
  const nearest = (x, y) => {
    const far = (box) => Math.max(box.left - x, 0, x - box.right)
      + Math.max(box.top - y, 0, y - box.bottom);
    const box = boxes.reduce((a, b) => (far(b) < far(a) ? b : a));
    return Math.max(0, Math.min(STOPS, Math.round(((x - box.left) / wide) * STOPS)));
  };
  readable(chart, shares, (share) => ({
    lines: valuesAt(figure, scales[0].scale.back(boxes[0].left + share * wide)),
    mark: boxes.map((b) => `M${b.left + share * wide} ${b.top}V${b.bottom}`).join(""),
    at: [boxes[0].left + share * wide, boxes[0].top],
  }), nearest);
}

// What a difference is made of: steps from 0, one below the other, to the sum.
function waterfall(figure, width) {
  const row = ON_PAPER ? 16 : 22;
  const names = figure.categories;
  const left = 8 + Math.max(...names.map((name) => textWidth(name, 12)));
  const steps = figure.series.map((series) => stepsOf(series.y));
  const ends = steps.flat().flatMap((step) => [step.from, step.to]);
  const grid = panelGrid(figure.series.length, width,
    { left: 0, least: 300, each: row * names.length, above: 34 });
  const chart = canvasFor(figure, width, grid.bottom + 26);
  chart.append(svg("text", { class: "label", x: 0, y: 12 }, titleOf(figure.y)));
  const words = figure.series.map((series) => signed(series.y));
  const room = 10 + Math.max(...words.flat().map((word) => textWidth(word, 13)));
  const places = [];
  grid.boxes.forEach((box, i) => {
    const series = figure.series[i];
    panelName(chart, series, box);
    const x = linear(Math.min(0, ...ends), Math.max(0, ...ends) || 1, box.left + left,
      box.right - room);
    chart.append(svg("line", { class: "axis", x1: x(0), x2: x(0), y1: box.top, y2: box.bottom }));
    steps[i].forEach((step, k) => {
      const y = box.top + k * row;
      const last = k === names.length - 1;
      const [from, to] = [step.from, step.to].map(x).sort((a, b) => a - b);
      chart.append(
        svg("text", { class: last ? "name" : "tick", x: box.left + left - 6, y: y + 15,
          "text-anchor": "end" }, names[k]),
        svg("rect", { class: "bar", x: from, y: y + 4, width: Math.max(to - from, 1),
          height: row - 8, "data-part": names[k],
          style: `fill:${last ? tone(series.tone).colour : "var(--quiet)"}` }),
        svg("text", { class: last ? "name" : "tick", x: to + 5, y: y + 15 }, words[i][k]),
      );
      if (!last) {
        chart.append(svg("line", { class: "axis", x1: x(step.to), x2: x(step.to), y1: y + row - 4,
          y2: y + row + 4 }));
      }
      places.push({ x: (box.left + box.right) / 2, y: y + row / 2, i, k });
    });
  });
  const nearest = (px, py) => places.reduce((best, place, n) =>
    (Math.hypot(place.x - px, 9 * (place.y - py))
      < Math.hypot(places[best].x - px, 9 * (places[best].y - py)) ? n : best), 0);
  readable(chart, places, ({ x, y, i, k }) => {
    const series = figure.series[i];
    const part = [tone(series.tone).colour, names[k], `${words[i][k]} ${figure.y.unit}`];
    return { lines: [series.name, part], at: [x, y] };
  }, nearest);
  return [chart];
}

// Values with signs and as many decimals as leave three digits to the largest.
function signed(values) {
  const largest = Math.max(...values.map(Math.abs));
  const decimals = largest ? Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest)))) : 0;
  return values.map((value) => {
    const text = Math.abs(value).toFixed(decimals);
    return Number(text) === 0 ? "0" : `${value > 0 ? "+" : "-"}${text}`;
  });
}

// Where each step begins and ends; the last value is the sum and begins at 0.
function stepsOf(values) {
  let sum = 0;
  return values.map((value, i) => {
    if (i === values.length - 1) return { from: 0, to: value, value };
    sum += value;
    return { from: sum - value, to: sum, value };
  });
}
