// Runs: those under way, the next, those that ended and failed, and on demand all of them.
import { DASH, byId, clip, make, makeBar, makeButton, patchList, setBar, setCoded, setHidden, setName, setText } from "./dom.js";
import * as choice from "./choice.js";
import { colourOf, dashOf, duration, elapsed, isNumber, loss, speed, value, whole } from "./numbers.js";
import { openRun } from "./dialog.js";
import { makeSwatch } from "./strips.js";

const HEADS = ["Run", "Progress", "Loss", "Score", "Speed"];
const STATES = ["", "running", "finished", "failed", "interrupted", "damaged", "waiting"];
const ENDED = new Set(["finished"]), FAILED = new Set(["failed", "damaged", "interrupted"]);
const keyOf = (run) => `${run.arm}\u0000${run.seed}`;
let places = new Map(), base = "";
const pages = { runs: [], total: 0, state: "", loaded: false };

export const placeOf = (arm) => places.get(arm) ?? 0;

function makeName(run) {
  const name = make("bdi", "arm"), seed = make("span", "soft"), button = makeButton("", "link", () => openRun(base, run.arm, run.seed, placeOf(run.arm)));
  button.append(makeSwatch(colourOf(placeOf(run.arm)), dashOf(placeOf(run.arm))), name, seed);
  setName(name, run.arm, 60);
  setText(seed, ` seed ${run.seed}`);
  return button;
}

function makeHeads(table, time) {
  table.dataset.time = time;
  table.tHead.append(make("tr", "", ...[...HEADS, time].map((text, at) => {
    const head = make("th", at > 1 ? "number" : "", text);
    head.scope = "col";
    return head;
  })));
}

export function beginRuns(address) {
  base = address;
  const box = byId("all-runs");
  makeHeads(byId("running").querySelector("table"), "Left");
  makeHeads(box.querySelector("table"), "Time");
  const select = make("select");
  select.setAttribute("aria-label", "Runs in which state");
  for (const state of STATES) {
    const option = make("option", "", state || "all states");
    option.value = state;
    select.append(option);
  }
  const again = makeButton("refresh", "plain", () => load(true));
  box.querySelector(".tools").append(select, again);
  select.addEventListener("change", () => { pages.state = select.value; load(true); });
  box.addEventListener("toggle", () => box.open && load(true));
  box.querySelector(".more").addEventListener("click", () => load(false));
}

async function load(fresh) {
  const from = fresh ? 0 : pages.runs.length, box = byId("all-runs");
  try {
    const answer = await fetch(`${base}runs.json?state=${encodeURIComponent(pages.state)}&arm=&from=${from}`);
    if (!answer.ok) throw new Error(await answer.text());
    const found = await answer.json();
    pages.runs = fresh ? found.runs : [...pages.runs, ...found.runs];
    pages.total = found.total;
    drawTable(box.querySelector("table"), pages.runs);
    setHidden(box.querySelector(".more"), pages.runs.length >= pages.total);
    setText(box.querySelector(".more"), `more (${whole(pages.runs.length)} of ${whole(pages.total)})`);
  } catch (problem) {
    setHidden(box.querySelector(".more"), false);
    setText(box.querySelector(".more"), `these runs could not be read: ${clip(problem.message, 300)}; try again`);
  }
}

export function drawRuns(view) {
  places = new Map((view.arms ?? []).map((arm) => [arm.arm, arm.place]));
  const runs = (view.runs ?? []).filter((run) => choice.isShown(run.arm)), under = runs.filter((run) => run.state === "running");
  setHidden(byId("running"), !under.length);
  drawTable(byId("running").querySelector("table"), under);
  const failed = runs.filter((run) => FAILED.has(run.state)), counts = view.counts ?? {};
  drawEvents(byId("failures"), failed, (run) => `${run.state}: ${run.reason || "no reason was recorded"}`);
  const unseen = ["failed", "damaged", "interrupted"].reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  setText(byId("failures-heading"), unseen > failed.length ? `Failures (${failed.length} of ${whole(unseen)})` : "Failures");
  const warned = runs.filter((run) => run.state === "running" || ENDED.has(run.state)).flatMap((run) => (run.warnings ?? []).map((text) => ({ ...run, text })));
  drawEvents(byId("warnings"), warned, (run) => run.text, (run) => `${keyOf(run)}\u0000${run.text}`);
  drawEvents(byId("ended"), runs.filter((run) => ENDED.has(run.state)), (run) => [isNumber(run.score) ? `${value(run.score)} on ${run.split ?? "test"}` : "", isNumber(run.seconds) ? `in ${elapsed(run.seconds)}` : ""].filter(Boolean).join(", "));
  const next = runs.filter((run) => run.state === "waiting");
  setHidden(byId("queue"), !next.length);
  setText(byId("queue-heading"), (counts.waiting ?? 0) > next.length ? `Next (${next.length} of ${whole(counts.waiting)})` : "Next");
  patchList(byId("queue").querySelector("ol"), next, keyOf, (run) => make("li", "", makeName(run)), () => {});
  setHidden(byId("all-runs"), !view.total);
  setText(byId("all-runs").querySelector("h2"), `All ${whole(view.total ?? 0)} runs`);
}

function drawEvents(section, runs, write, key = keyOf) {
  setHidden(section, !runs.length);
  patchList(section.querySelector("ul"), runs, key, (run) => make("li", "", makeName(run), make("bdi", "reason")), (item, run) => {
    setCoded(item.lastChild, write(run), 600);
    item.classList.toggle("bad", FAILED.has(run.state));
  });
}

function drawTable(table, runs) {
  patchList(table.tBodies[0], runs, keyOf, (run) => makeRow(run, table.dataset.time), drawRow);
}

function makeRow(run, time) {
  const head = make("th", "", makeName(run), make("small", "line"));
  head.scope = "row";
  const bar = makeBar(`${clip(run.arm)}, seed ${run.seed}`), row = make("tr", "", head, make("td", "wide-cell", bar, make("small", "line")));
  for (const label of [...HEADS.slice(2), time]) {
    const cell = make("td", "number");
    cell.dataset.label = label;
    row.append(cell);
  }
  return row;
}

function drawRow(row, run) {
  const [head, progress, ...figures] = row.cells, share = run.state === "finished" ? 1 : run.steps ? (run.step ?? 0) / run.steps : 0;
  const about = run.state === "running" ? [run.phase, run.worker && `on ${run.worker}`] : [run.reason ? `${run.state}:` : run.state, run.reason];
  setCoded(head.lastChild, about.filter(Boolean).join(" "), 300);
  setHidden(progress.firstChild, !run.steps || run.state === "waiting");
  progress.firstChild.classList.toggle("bad", FAILED.has(run.state));
  progress.firstChild.classList.toggle("done", run.state === "finished");
  setBar(progress.firstChild, share);
  const steps = !run.steps ? [] : run.state === "waiting" ? [`${whole(run.steps)} steps`] : [`step ${whole(run.step ?? 0)} of ${whole(run.steps)}`];
  if (isNumber(run.epoch)) steps.push(`epoch ${run.epoch.toFixed(1)}${isNumber(run.epochs) ? ` of ${run.epochs}` : ""}`);
  setText(progress.lastChild, steps.join(" · "));
  const score = isNumber(run.score) ? `${value(run.score)}${run.split ? ` ${run.split === "validation" ? "val." : run.split}` : ""}` : DASH;
  const left = run.state === "running" ? duration(run.left) : elapsed(run.seconds);
  [loss(run.loss), score, speed(run.speed) || DASH, left].forEach((text, at) => setText(figures[at], text));
}
