// The table of arms: how many runs each has, its mean and its difference to its control with intervals, and the word so far.
import { DASH, byId, make, makeButton, makeSvg, patchList, setAttribute, setClass, setName, setText } from "./dom.js";
import * as choice from "./choice.js";
import { colourOf, dashOf, formats, interval, isNumber, signed, signedTick, tick, value } from "./numbers.js";
import { drawAxis, drawStrip, makeAxis, makeStrip, makeSwatch } from "./strips.js";

const PIPS = 12, MANY = 12;
const STATES = ["finished", "running", "failed", "damaged", "interrupted", "waiting"];
const COLUMNS = [
  (arm) => arm.arm,
  (arm) => arm.n,
  (arm) => arm.mean,
  (arm) => arm.difference,
  (arm) => arm.word,
];
let sorted = null, table, body, told, axes, last = null;

export function beginArms() {
  table = byId("arm-table");
  body = table.tBodies[0];
  told = byId("arms-told");
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = makeButton("", "", () => sortBy(head, column));
    button.append(...head.childNodes);
    head.append(button);
  });
  const axis = () => makeSvg("svg", { class: "strip axis", "aria-hidden": "true" });
  axes = [axis(), axis()];
  const foot = make("tr", "", make("td"), make("td"), make("td"), make("td", "plot", axes[0]), make("td"), make("td", "plot", axes[1]), make("td"));
  table.tFoot.append(foot);
  const filter = make("input", "filter");
  filter.type = "search";
  filter.placeholder = "filter arms";
  filter.setAttribute("aria-label", "Filter arms by name, everywhere on this page");
  filter.addEventListener("input", () => choice.setFilter(filter.value));
  byId("arm-tools").append(filter);
}

function sortBy(head, column) {
  const was = head.getAttribute("aria-sort"), now = was === "ascending" ? "descending" : was ? null : "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (now) head.setAttribute("aria-sort", now);
  sorted = now ? { column, sign: now === "descending" ? -1 : 1 } : null;
  if (last) drawArms(last);
}

function inOrder(arms) {
  if (!sorted) return arms;
  const key = COLUMNS[sorted.column];
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return sorted.sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
  };
  return [...arms].sort(order);
}

export function drawArms(view) {
  last = view;
  const arms = view.arms ?? [], shown = arms.filter((arm) => choice.isShown(arm.arm)), peeking = Boolean(view.verdict?.peeking);
  byId("arm-tools").hidden = arms.length < 2;
  setText(byId("arms-heading"), arms.length > 1 ? `${arms.length} arms` : "Arms");
  const by = formats.factor, scaled = (at, low, high) => ({ at: isNumber(at) ? by * at : null, low: isNumber(low) ? by * low : null, high: isNumber(high) ? by * high : null });
  const means = new Map(shown.map((arm) => [arm, scaled(arm.mean, arm.low, arm.high)]));
  const gaps = new Map(shown.map((arm) => [arm, scaled(arm.difference, arm.difference_low, arm.difference_high)]));
  const meanAxis = makeAxis([...means.values()], { bounds: formats.unit === "%" ? [0, 100] : undefined });
  const gapAxis = [...gaps.values()].some((row) => isNumber(row.at)) ? makeAxis([...gaps.values()], { zero: true }) : null;
  table.style.setProperty("--zero", gapAxis ? `${gapAxis.at(0)}%` : "-9%");
  patchList(body, inOrder(shown), (arm) => arm.arm, makeRow, (row, arm) => drawRow(row, arm, means.get(arm), meanAxis, gaps.get(arm), gapAxis, peeking));
  drawAxis(axes[0], meanAxis, tick);
  drawAxis(axes[1], gapAxis, signedTick);
  setText(table.tHead.rows[0].cells[4].querySelector("button"), peeking ? "So far" : "Verdict");
  const hidden = arms.filter((arm) => choice.isHidden(arm.arm)).length, filtered = arms.length - hidden - shown.length;
  const out = [hidden ? `${hidden} hidden` : "", filtered > 0 ? `${filtered} filtered out` : ""].filter(Boolean).join(", ");
  setText(told, out ? `${shown.length} of ${arms.length} arms shown (${out}); corrections are for all.` : "");
  drawLegend(arms);
}

function makeRow(arm) {
  const row = make("tr"), swatch = makeButton("", "hide", () => hide(row, arm.arm));
  swatch.append(makeSwatch(colourOf(arm.place), dashOf(arm.place)));
  swatch.title = "hide this arm everywhere";
  const name = make("bdi", "arm"), against = make("small", "line"), runs = make("span", "count"), pips = make("span", "pips"), trouble = make("small", "line trouble");
  const mean = make("span", "estimate"), meanSpan = make("small"), counted = make("small", "line"), gap = make("span", "estimate"), gapSpan = make("small");
  const meanStrip = makeStrip(), gapStrip = makeStrip(), word = make("span"), about = make("small", "line"), control = make("bdi");
  const head = make("th", "", swatch, name);
  head.scope = "row";
  against.append("to ", control, make("span"));
  const meanText = make("td", "figures", mean, " ", meanSpan, counted), gapText = make("td", "figures", gap, " ", gapSpan, against);
  meanText.dataset.label = formats.heading;
  gapText.dataset.label = "Difference";
  row.append(head, make("td", "runs-cell", runs, pips, trouble), meanText, make("td", "plot", meanStrip), gapText, make("td", "plot zero", gapStrip), make("td", "word", word, about));
  row.parts = { swatch, name, against, control, runs, pips, trouble, mean, meanSpan, counted, gap, gapSpan, meanStrip, gapStrip, word, about };
  row.addEventListener("pointerenter", () => choice.point(arm.arm));
  row.addEventListener("pointerleave", () => choice.point(null));
  return row;
}

function hide(row, arm) {
  const next = (row.nextElementSibling ?? row.previousElementSibling)?.querySelector("button.hide");
  choice.toggle(arm);
  next?.focus({ preventScroll: true });
}

function drawRow(row, arm, mean, meanAxis, gap, gapAxis, peeking) {
  const parts = row.parts, failed = ["failed", "damaged", "interrupted"].filter((state) => arm.counts?.[state]);
  setName(parts.name, arm.arm, 60);
  setAttribute(parts.swatch, "aria-label", `Hide ${arm.arm.slice(0, 80)}`);
  setText(parts.runs, `${arm.n} of ${arm.planned}`);
  drawPips(parts.pips, arm);
  setText(parts.trouble, failed.map((state) => `${arm.counts[state]} ${state}`).join(", "));
  setText(parts.mean, value(arm.mean));
  setText(parts.meanSpan, interval(arm.low, arm.high, value) || (isNumber(arm.mean) ? "no interval yet" : ""));
  setText(parts.counted, isNumber(arm.mean) && arm.counted < arm.n ? `of ${arm.counted} runs; ${arm.n - arm.counted} more to be counted` : "");
  setText(parts.gap, arm.against === null || !arm.pairs ? "" : signed(arm.difference, arm.mean));
  setText(parts.gapSpan, interval(arm.difference_low, arm.difference_high, (end) => signed(end, arm.mean)));
  parts.against.hidden = arm.against === null;
  row.classList.toggle("reference", arm.against === null);
  setName(parts.control, arm.against ?? "", 40);
  setText(parts.against.lastChild, !arm.pairs ? ": no seed in common yet" : `, ${arm.pairs} ${arm.pairs === 1 ? "seed" : "seeds"}`);
  setText(parts.word, arm.word ?? (arm.against === null ? "reference" : DASH));
  const sort = arm.word ? arm.word.replaceAll(" ", "-") : "none";
  setClass(parts.word, `${arm.word ? "verdict" : "soft"} ${sort}${peeking && arm.word ? " so-far" : ""}`);
  setAttribute(parts.word, "title", peeking && arm.word ? "so far; it may change, and does not count as a look" : null);
  setText(parts.about, arm.word && arm.by ? `by ${arm.by}` : "");
  drawStrip(parts.meanStrip, meanAxis, mean, false);
  parts.meanStrip.style.color = colourOf(arm.place);
  drawStrip(parts.gapStrip, gapAxis, gap, peeking);
  setClass(parts.gapStrip, `strip ${sort}`);
}

// One dot per seed where they can be counted, else a bar.
function drawPips(pips, arm) {
  const states = STATES.flatMap((state) => Array(Math.min(1000, arm.counts?.[state] ?? 0)).fill(state)), text = states.join(" ");
  if (pips.dataset.states === text) return;
  pips.dataset.states = text;
  pips.setAttribute("aria-hidden", "true");
  const made = states.length <= PIPS ? states.map((state) => make("i", `pip ${state}`)) : STATES.map((state) => {
    const part = make("i", `part ${state}`);
    part.style.flexGrow = String(arm.counts?.[state] ?? 0);
    return part;
  });
  pips.classList.toggle("as-bar", states.length > PIPS);
  pips.replaceChildren(...made);
}

function drawLegend(arms) {
  const legend = byId("legend"), names = arms.map((arm) => arm.arm), found = arms.filter((arm) => choice.isFound(arm.arm));
  const chips = [...found, ...(arms.length > 1 ? [{ all: "all" }, { all: "none" }] : [])];
  legend.classList.toggle("many", arms.length > MANY);
  patchList(legend, chips, (chip) => (chip.all ? `\u0000${chip.all}` : chip.arm), (chip) => {
    if (chip.all) return makeButton(chip.all, "chip whole", () => choice.showOnly(chip.all === "all" ? names : [], names));
    const made = makeButton("", "chip", () => choice.toggle(chip.arm));
    made.append(makeSwatch(colourOf(chip.place), dashOf(chip.place)), make("bdi"));
    made.addEventListener("pointerenter", () => choice.point(chip.arm));
    made.addEventListener("pointerleave", () => choice.point(null));
    return made;
  }, (made, chip) => {
    if (chip.all) return;
    setName(made.lastChild, chip.arm, 40);
    setAttribute(made, "aria-pressed", String(!choice.isHidden(chip.arm)));
  });
}
