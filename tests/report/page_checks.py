"""Scripts that check an open page: contrast of what is seen, and marks that carry meaning."""

from __future__ import annotations

OUTSIDE = """
return [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
  const box = chart.getBoundingClientRect();
  return [...chart.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 2 || own.right > box.right + 2 || own.bottom > box.bottom + 2;
  }).map((text) => text.textContent);
});
"""
"""The texts that leave their chart."""

COLOURS = """
const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const contrast = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = (text) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = text;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, ground, alpha) => [0, 1, 2].map((i) => top[i] * alpha + ground[i] * (1 - alpha));
const groundOf = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor);
    if (colour[3] > 0.99) return colour;
  }
  return [255, 255, 255];
};
const opacityOf = (element) => {
  let opacity = 1;
  for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
  return opacity;
};
const seen = (element) => element.checkVisibility({ visibilityProperty: true })
  && element.getBoundingClientRect().width > 0;
"""

TEXTS = (
    COLOURS
    + """
const weak = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let checked = 0;
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const element = walker.currentNode.parentElement;
  if (!text || !seen(element) || element.closest("script, style, :disabled, .unseen")) continue;
  const style = getComputedStyle(element);
  const drawn = element.namespaceURI.endsWith("svg");
  const ground = groundOf(element);
  const own = rgba(drawn ? style.fill : style.color);
  const ratio = contrast(over(own, ground, own[3] * opacityOf(element)), ground);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  checked += 1;
  if (ratio < (large ? 3 : 4.5)) weak.add(`${element.className} ${text.slice(0, 30)}: ${ratio}`);
}
return [checked, [...weak]];
"""
)
"""How many texts are seen, and those with less contrast than WCAG 2.2, 1.4.3 (AA) asks for."""

MARKS = (
    COLOURS
    + """
const weak = new Set();
let checked = 0;
const check = (element, colour, alpha, name) => {
  const ground = groundOf(element.parentElement);
  const ratio = contrast(over(colour, ground, colour[3] * alpha * opacityOf(element)), ground);
  checked += 1;
  if (ratio < 3) weak.add(`${name}: ${ratio.toFixed(2)}`);
};
for (const mark of document.querySelectorAll("svg.chart [data-series], .swatch")) {
  if (!seen(mark) && !mark.getTotalLength) continue;
  const style = getComputedStyle(mark);
  const figure = mark.closest("figure, .panel");
  const name = `${figure ? figure.id : ""} ${mark.getAttribute("class")}`;
  if (mark.matches(".swatch")) {
    const outlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle === "solid";
    check(mark, rgba(outlined ? style.outlineColor : style.backgroundColor), 1, name);
    continue;
  }
  const stroke = style.stroke === "none" ? null : rgba(style.stroke);
  const fill = style.fill === "none" ? null : rgba(style.fill);
  if (stroke) check(mark, stroke, Number(style.strokeOpacity), name);
  else if (fill) check(mark, fill, Number(style.fillOpacity), name);
}
for (const control of document.querySelectorAll("select, input[type=search], button")) {
  const style = getComputedStyle(control);
  if (!seen(control) || control.disabled || parseFloat(style.borderTopWidth) === 0) continue;
  check(control, rgba(style.borderTopColor), 1, `border of ${control.id || control.className}`);
}
return [checked, [...weak]];
"""
)
"""How many marks and controls there are, and those with less contrast than 1.4.11 (AA) asks for."""
