// A study's page: gets what changed, and puts it on the page once per frame.
import { byId, clip, make, setAttribute, setClass, setCoded, setHidden, setName, setText } from "./dom.js";
import { beginArms, drawArms } from "./arms.js";
import { onChoice } from "./choice.js";
import { beginCurves, drawCurves } from "./curves.js";
import { beginDevices, drawDevices, drawLog, drawMaps, drawReports, loadMaps } from "./devices.js";
import { beginDialog } from "./dialog.js";
import { Feed } from "./feed.js";
import { duration, isNumber, useFormats, whole } from "./numbers.js";
import { beginRuns, drawRuns } from "./runs.js";

const STATES = ["finished", "running", "failed", "damaged", "interrupted", "waiting"];
const base = `${location.pathname.replace(/\/+$/, "")}/`;
const now = {};
const changed = new Set();
let frame = 0;

const DRAWN = [
  [["study", "state", "about", "problem", "counts", "total", "left"], drawHead],
  [["verdict"], drawVerdict],
  [["arms", "verdict"], () => drawArms(now)],
  [["curves"], () => drawCurves(now.curves, longest())],
  [["runs", "arms", "counts", "total"], () => drawRuns(now)],
  [["devices"], () => drawDevices(now.devices)],
  [["log"], () => drawLog(now.log)],
  [["reports"], () => drawReports(now.reports)],
];

const longest = () => Math.max(0, ...(now.runs ?? []).map((run) => run.steps ?? 0));

function take(parts) {
  Object.assign(now, parts);
  for (const name of Object.keys(parts)) changed.add(name);
  if (!frame) frame = requestAnimationFrame(draw);
  if ("runs" in parts) loadMaps();
}

function draw() {
  frame = 0;
  for (const [names, act] of DRAWN) if (names.some((name) => changed.has(name))) act();
  changed.clear();
}

function drawHead() {
  const counts = now.counts ?? {}, total = now.total || 0, ended = STATES.slice(0, 4).reduce((sum, state) => sum + (state === "running" ? 0 : counts[state] ?? 0), 0);
  setName(byId("study"), now.study ?? "", 80);
  setText(byId("state"), now.state ?? "");
  setClass(byId("state"), `state ${now.state ?? ""}`);
  setName(byId("about").firstElementChild, now.about ?? "", 400);
  setHidden(byId("problem"), !now.problem);
  setCoded(byId("problem"), now.problem);
  setText(byId("counts"), STATES.filter((state) => counts[state]).map((state) => `${whole(counts[state])} ${state}`).join(", ") || "no runs yet");
  setText(byId("left"), isNumber(now.left) && ended < total ? `about ${duration(now.left)} left` : "");
  const bar = byId("counts-bar");
  if (!bar.children.length) bar.append(...STATES.map((state) => make("span", state)));
  STATES.forEach((state, at) => { bar.children[at].style.flexGrow = String(counts[state] ?? 0); });
  document.title = `${total && ended < total ? `${Math.floor((100 * ended) / total)} % · ` : ""}${clip(now.study, 60)} · fairtune`;
  if (now.state === "unreadable") tell("gone", `the study cannot be read: ${clip(now.problem, 300)}`);
}

function drawVerdict() {
  const verdict = now.verdict ?? {}, box = byId("verdict");
  setHidden(box, !(verdict.opening || verdict.problem || verdict.peeking || verdict.note));
  box.classList.toggle("peeking", Boolean(verdict.peeking));
  setText(byId("verdict-heading").firstChild, verdict.peeking ? "Verdict so far " : "Verdict ");
  setText(byId("peeking"), verdict.peeking ?? "");
  setCoded(byId("opening"), verdict.opening, 4000);
  setHidden(byId("verdict-problem"), !verdict.problem);
  setCoded(byId("verdict-problem"), verdict.problem);
  setCoded(byId("note"), verdict.note);
}

function tell(state, text) {
  if (state === "live" && now.state === "unreadable") return;
  setAttribute(byId("connection"), "data-state", state);
  setText(byId("connection"), text);
}

onChoice(() => {
  drawArms(now);
  drawCurves(now.curves, longest());
  drawRuns(now);
  drawMaps();
});

async function begin() {
  tell("lost", "connecting");
  const answer = await fetch(`${base}view.json`).catch(() => null);
  if (answer?.ok) {
    const found = await answer.json();
    useFormats(found.formats ?? {});
    beginArms();
    beginCurves();
    beginRuns(base);
    beginDevices(base);
    beginDialog();
    take({ ...found.view, curves: found.curves ?? {}, reports: found.reports ?? [] });
    new Feed(`${base}feed`, take, tell).open();
  } else {
    tell("gone", answer ? clip(await answer.text(), 300) : "the server does not answer; trying again");
    setTimeout(begin, 5000);
  }
}

begin();
