// A panel over the page: a run with its own curve, last events and environment, or a worker's log.
import { DASH, byId, clip, make, setText } from "./dom.js";
import { drawOwn } from "./curves.js";
import { duration, elapsed, formats, isNumber, loss, speed, value, whole } from "./numbers.js";

let ends = [], asked = 0;

export function beginDialog() {
  const dialog = byId("run-dialog");
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    asked += 1;
    ends.forEach((end) => end());
    ends = [];
    dialog.querySelector(".body").replaceChildren();
  });
}

async function show(heading, address, fill) {
  const dialog = byId("run-dialog"), body = dialog.querySelector(".body");
  asked += 1;
  const mine = asked;
  setText(byId("dialog-heading"), clip(heading, 300));
  body.replaceChildren(make("p", "soft", "reading …"));
  if (!dialog.open) dialog.showModal();
  try {
    const answer = await fetch(address);
    const found = answer.ok ? await answer.json() : null, problem = answer.ok ? "" : await answer.text();
    if (mine !== asked) return;
    body.replaceChildren();
    if (found) fill(body, found);
    else body.append(make("p", "trouble", clip(problem, 500) || "There is nothing to show."));
  } catch (problem) {
    if (mine === asked) body.replaceChildren(make("p", "trouble", `The server did not answer: ${clip(problem.message, 200)}`));
  }
}

export function openRun(base, arm, seed, place) {
  return show(`${arm}, seed ${seed}`, `${base}run/${encodeURIComponent(arm)}/${encodeURIComponent(seed)}.json`, (body, found) => fillRun(body, found, place));
}

export function openLog(base, worker) {
  return show(`Log of ${worker}`, `${base}log/${encodeURIComponent(worker)}.json`, (body, found) => {
    body.append(makeLines(found.lines ?? []));
    body.lastChild.scrollTop = body.lastChild.scrollHeight;
  });
}

function makeLines(lines) {
  const box = make("div", "log", ...lines.map((line) => make("p", "", make("bdi", "", clip(line, 4000)))));
  box.tabIndex = 0;
  return lines.length ? box : make("p", "soft", "nothing yet");
}

function fillRun(body, found, place) {
  const run = found.run ?? {}, facts = [
    ["state", [run.state, run.phase].filter(Boolean).join(", ")],
    ["reason", run.reason],
    ["step", run.steps ? `${whole(run.step ?? 0)} of ${whole(run.steps)}` : ""],
    ["epoch", isNumber(run.epoch) ? `${run.epoch.toFixed(2)}${isNumber(run.epochs) ? ` of ${run.epochs}` : ""}` : ""],
    ["loss", isNumber(run.loss) ? loss(run.loss) : ""],
    [formats.heading, isNumber(run.score) ? `${value(run.score)} on ${run.split ?? "validation"}` : ""],
    ["speed", speed(run.speed)],
    ["time", isNumber(run.seconds) ? elapsed(run.seconds) : ""],
    ["left", isNumber(run.left) ? `about ${duration(run.left)}` : ""],
    ["worker", run.worker],
  ].filter(([, text]) => text);
  body.append(makeFacts(facts));
  const panels = make("div", "panels");
  body.append(panels);
  if (found.scores?.length) ends.push(drawOwn(panels, "Validation score", found.scores, place, formats.factor, run.steps));
  if (found.losses?.length) ends.push(drawOwn(panels, "Training loss", found.losses, place, 1, run.steps));
  const warnings = found.warnings ?? run.warnings ?? [];
  if (warnings.length) body.append(make("h3", "", "Warnings"), make("ul", "", ...warnings.map((text) => make("li", "", make("bdi", "", clip(text, 2000))))));
  if (found.events?.length) {
    body.append(make("h3", "", "Last events"), makeLines(found.events.map(writeEvent)));
    body.lastChild.scrollTop = body.lastChild.scrollHeight;
  }
  const environment = flatten(found.environment ?? {});
  if (environment.length) body.append(make("h3", "", "Environment"), makeFacts(environment));
}

function makeFacts(facts) {
  return make("dl", "facts", ...facts.flatMap(([name, text]) => [make("dt", "", clip(name, 100)), make("dd", "", make("bdi", "", clip(text, 12000)))]));
}

const write = (given) => (typeof given === "number" ? (Number.isInteger(given) ? String(given) : String(Number(given.toPrecision(5)))) : typeof given === "string" ? given : given === null ? DASH : JSON.stringify(given));

function writeEvent(event) {
  if (typeof event === "string") return event;
  const { time, event: kind, ...rest } = event;
  const at = isNumber(time) ? `${new Date(1000 * time).toLocaleTimeString("en", { hour12: false })} ` : "";
  return `${at}${kind ?? ""} ${Object.entries(rest).map(([name, given]) => `${name} ${write(given)}`).join(", ")}`;
}

function flatten(given, before = "") {
  return Object.entries(given).flatMap(([name, one]) => (one && typeof one === "object" && !Array.isArray(one) ? flatten(one, `${before}${name} `) : one === null || one === "" ? [] : [[`${before}${name}`, write(one)]]));
}
