"use strict";
// Everything a model or a user wrote reaches the page through textContent or setAttribute, never as HTML.
const byId = (id) => document.getElementById(id);
const readJson = (id) => { const node = byId(id); return node ? JSON.parse(node.textContent) : null; };
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "onclick") node.addEventListener("click", value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const prose = (tag, cls, text) => el(tag, { class: cls, dir: "auto" }, text);

const count = (number) => number.toLocaleString("en-US");
const plural = (number, one, many = one + "s") => `${count(number)} ${number === 1 ? one : many}`;
const money = (cost) =>
  cost === null || cost === undefined ? "not known" : "$" + (cost >= 1 || cost === 0 ? cost.toFixed(2) : cost.toPrecision(2));
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0005) return "<1 ms";
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  return `${value.toFixed(value < 10 ? 2 : 1)} s`;
}
function span(value) {
  if (value < 90) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86400)} days`;
}
const shade = (severity) => `s${Math.min(4, Math.floor(severity / 20))}`;
const amount = (number) => (number === null ? "not reported" : count(number));
// Input and output together; null only when neither is known.
function total(usage) {
  if (usage.input_tokens === null && usage.output_tokens === null) return null;
  return (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
}
function tokens(call, none = "tokens not reported") {
  if (call.input_tokens === null && call.output_tokens === null) return none;
  const cached = call.cached_tokens ? ` (${count(call.cached_tokens)} cached)` : "";
  return `${call.input_tokens === null ? "?" : count(call.input_tokens)}${cached} → ${call.output_tokens === null ? "?" : count(call.output_tokens)}`;
}
