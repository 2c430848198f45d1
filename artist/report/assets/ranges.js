// Quantiles: for each category and series a dot, and a line from low to high.

const LANE = 11;

function ranges(figure, width) {
  const top = 28;
  const each = 24 + figure.series.length * LANE;
  const box = { left: 4, right: width - 14, top, bottom: top + each * figure.categories.length };
  const chart = canvasFor(figure, width, box.bottom + 42);
  const all = figure.series.flatMap((s) => [...s.y, ...(s.low || []), ...(s.high || [])]);
  const { scale, ticks } = scaleOf(figure.y, finite(all), box.left, box.right);
  xAxis(chart, ticks, scale, box, titleOf(figure.y));
  chart.append(svg("text", { class: "label", x: 0, y: 12 }, titleOf(figure.x)));
  figure.categories.forEach((category, i) => {
    const from = top + i * each;
    chart.append(svg("text", { class: "name", x: box.left, y: from + 14 }, category));
    figure.series.forEach((series, k) => {
      if (series.y[i] === null) return;
      const y = from + 24 + k * LANE;
      const { colour, again } = tone(series.tone);
      if (isKnown(series.low, i)) {
        chart.append(svg("line", { x1: scale(series.low[i]), x2: scale(series.high[i]), y1: y, y2: y,
          "data-series": series.name, style: `stroke:${colour};stroke-width:2` }));
      }
      chart.append(svg("circle", { cx: scale(series.y[i]), cy: y, r: 4, "data-series": series.name,
        style: `fill:${again ? "var(--card)" : colour};stroke:${colour};stroke-width:1.5` }));
    });
  });
  readable(chart, figure.categories.map((_, i) => top + (i + 0.5) * each), (_, i) => ({
    lines: [figure.categories[i], ...figure.series.filter((s) => s.y[i] !== null)
      .map((s) => [tone(s.tone).colour, s.name, interval(s, i, figure.y)])],
  }), "y");
  return [legend(figure), chart];
}
