// Intervals as strips that share an axis: places are shares of the width, as in the report, so nothing is scaled.
import { makeSvg, setAttribute } from "./dom.js";
import { evenTicks, isNumber } from "./numbers.js";

const ROOM = 0.05, ORDINARY = 5, ENOUGH = 5, FAR = 3;

// Estimates but those far from the others (Tukey's outer fences), such as of an arm that did not learn.
function nearOnes(values) {
  const inOrder = [...values].sort((a, b) => a - b), at = (share) => inOrder[Math.round(share * (inOrder.length - 1))];
  if (inOrder.length < ENOUGH) return values;
  const reach = FAR * (at(0.75) - at(0.25));
  return reach > 0 ? values.filter((value) => value >= at(0.25) - reach && value <= at(0.75) + reach) : values;
}

// An axis on which the arms can be told apart: an interval that would dwarf the others, as with two seeds it may be forty times wider
// than with five, runs out of the picture, and so does an estimate far from all others; both with an arrow.
export function makeAxis(rows, { zero = false, bounds = [-Infinity, Infinity] } = {}) {
  const known = rows.filter((row) => isNumber(row.at)), spans = known.filter((row) => isNumber(row.low) && isNumber(row.high));
  const widths = spans.map((row) => row.high - row.low).sort((a, b) => a - b);
  const most = widths.length ? ORDINARY * (widths[Math.floor((widths.length - 1) / 2)] || Infinity) : Infinity;
  const shown = nearOnes(known.map((row) => row.at)), [least, largest] = [Math.min(...shown), Math.max(...shown)];
  for (const row of spans) if (row.high - row.low <= most && row.at >= least && row.at <= largest) shown.push(row.low, row.high);
  if (zero) shown.push(0);
  if (!shown.length) return null;
  let low = Math.min(...shown), high = Math.max(...shown);
  const room = ROOM * (high - low) || Math.max(Math.abs(high) * 0.01, 0.5);
  [low, high] = [Math.max(bounds[0], low - room), Math.min(bounds[1], high + room)];
  if (!(low < high)) high = low + 1;
  return { low, high, at: (value) => Math.round(1e4 * Math.min(1, Math.max(0, (value - low) / (high - low)))) / 100 };
}

export function makeStrip() {
  const strip = makeSvg("svg", { class: "strip", "aria-hidden": "true" });
  const line = makeSvg("line", { class: "thick", y1: "50%", y2: "50%" });
  const left = makeSvg("svg", { class: "mark", x: "0%", y: "50%" }, makeSvg("path", { class: "solid", d: "M0 0l7-5v10z" }));
  const right = makeSvg("svg", { class: "mark", x: "100%", y: "50%" }, makeSvg("path", { class: "solid", d: "M0 0l-7-5v10z" }));
  const mark = makeSvg("svg", { class: "mark", y: "50%" }, makeSvg("circle", { r: "4.5" }));
  strip.append(line, left, right, mark);
  strip.parts = { line, left, right, mark };
  return strip;
}

const show = (part, on) => setAttribute(part, "display", on ? null : "none");

// Args: row {at, low, high}; `hollow` while it is no more than a look in between.
export function drawStrip(strip, axis, row, hollow) {
  const { line, left, right, mark } = strip.parts;
  const known = Boolean(axis) && isNumber(row.at), spans = known && isNumber(row.low) && isNumber(row.high);
  const below = known && Math.min(row.at, spans ? row.low : row.at) < axis.low, above = known && Math.max(row.at, spans ? row.high : row.at) > axis.high;
  show(mark, known && row.at >= axis.low && row.at <= axis.high);
  show(line, spans && row.high >= axis.low && row.low <= axis.high);
  show(left, below);
  show(right, above);
  if (known) {
    setAttribute(mark, "x", `${axis.at(row.at)}%`);
    setAttribute(mark.firstChild, "class", hollow ? "hollow" : "solid");
  }
  if (spans) {
    setAttribute(line, "x1", `${axis.at(row.low)}%`);
    setAttribute(line, "x2", `${axis.at(row.high)}%`);
  }
}

export function drawAxis(svg, axis, write) {
  const ticks = axis ? evenTicks(axis.low, axis.high, 4) : [];
  const text = ticks.map((at) => `${axis.at(at)} ${write(at)}`).join(";");
  if (svg.dataset.ticks === text) return;
  svg.dataset.ticks = text;
  svg.replaceChildren();
  for (const at of ticks) {
    const place = axis.at(at), x = `${place}%`, written = makeSvg("text", { x, y: "16", "text-anchor": place < 6 ? "start" : place > 94 ? "end" : "middle" });
    written.textContent = write(at);
    svg.append(makeSvg("line", { class: "thin", x1: x, x2: x, y1: "0", y2: "4" }), written);
  }
}

// The line by which figures know an arm.
export function makeSwatch(colour, dash) {
  const line = makeSvg("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke: colour, "stroke-width": 3.5, "stroke-dasharray": dash.length ? dash.join(" ") : "none" });
  return makeSvg("svg", { viewBox: "0 0 24 10", class: "swatch", "aria-hidden": "true" }, line);
}
