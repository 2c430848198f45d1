"use strict";
// Small helpers: elements, numbers, the tooltip, light and dark.

const DATA = JSON.parse(document.getElementById("page-data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// Children that are no nodes become text: no value of a run is ever read as markup.
function add(parent, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) parent.setAttribute(key, value);
  }
  parent.append(...children.filter((child) => child !== null && child !== undefined));
  return parent;
}
const svg = (name, attributes, ...children) =>
  add(document.createElementNS(SVG, name), attributes, children);
const html = (name, attributes, ...children) =>
  add(document.createElement(name), attributes, children);

function number(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1000) return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  if (size < 1e-6) return value.toExponential(1);
  if (size < 0.001) return String(Number(value.toPrecision(2)));
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

function duration(seconds) {
  const units = [[86400, " d"], [3600, " h"], [60, " min"]];
  for (const [size, name] of units) if (seconds >= 2 * size) return number(seconds / size) + name;
  return number(seconds) + " s";
}

const quantity = (value, axis) => number(value) + (axis.unit ? " " + axis.unit : "");

// Each kind of time has one unit on the whole page: DATA.units.
const unitOf = (kind) => DATA.units[kind].name;
const inUnit = (seconds, kind) => number(seconds / DATA.units[kind].seconds);
const withUnit = (seconds, kind) => `${inUnit(seconds, kind)} ${unitOf(kind)}`;

const titleOf = (axis) => (axis.unit ? `${axis.label} (${axis.unit})` : axis.label);

// Tones: eight colours for policies, then the same ones again, dashed or pale; ten for jobs.
function tone(name) {
  const index = Number(name.slice(1));
  const colours = { s: 8, l: 6, o: 6, j: 10 }[name[0]];
  return { colour: `var(--${name[0]}${index % colours})`, again: index >= colours };
}

const tooltip = html("div", { class: "tooltip", hidden: "" });
const spoken = html("div", { class: "unseen", "aria-live": "polite" });

function showTooltip(lines, x, y) {
  tooltip.replaceChildren(...lines.map((line) => tooltipLine(line)));
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + 16 + width > innerWidth ? x - width - 16 : x + 16;
  tooltip.style.left = Math.max(4, Math.min(left, innerWidth - width - 4)) + "px";
  tooltip.style.top = Math.max(4, Math.min(y - height / 2, innerHeight - height - 4)) + "px";
}

// A line is a heading (text) or [tone or colour, name, value].
function tooltipLine(line) {
  if (typeof line === "string") return html("div", { class: "tooltip-head" }, line);
  const swatch = html("i", { class: "swatch" });
  if (line[0]) swatch.style.background = line[0];
  else swatch.style.visibility = "hidden";
  return html("div", { class: "tooltip-line" }, swatch, html("span", {}, line[1]),
    html("b", {}, line[2]));
}

const hideTooltip = () => { tooltip.hidden = true; };
const speak = (lines) => {
  spoken.textContent = lines.map((l) => (typeof l === "string" ? l : `${l[1]} ${l[2]}`)).join("; ");
};

const isDark = () => styleOf("scheme") === "dark";

// Light and dark: the system's choice, until the reader makes one.
function startTheme(button, changed) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = isDark;
  const label = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
    changed();
  };
  try { root.dataset.theme = localStorage.getItem("artist-theme") || ""; } catch { /* forbidden */ }
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("artist-theme", root.dataset.theme); } catch { /* forbidden */ }
    label();
  });
  system.addEventListener("change", label);
  label();
}

const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size) {
  ruler.font = `${size}px ${styleOf("font")}`;
  return ruler.measureText(text).width;
}

const styleOf = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
