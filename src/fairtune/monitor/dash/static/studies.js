// The list of studies, asked for anew now and then while someone looks at it.
import { byId, clip, make, patchList, setAttribute, setClass, setHidden, setName, setText } from "./dom.js";
import { duration } from "./numbers.js";

const EVERY = 5000, STATES = ["finished", "running", "failed", "damaged", "interrupted", "waiting"];

function makeRow(one) {
  const link = make("a", "", make("bdi")), head = make("th", "", link, make("small", "line", make("bdi")));
  head.scope = "row";
  link.href = `/study/${encodeURIComponent(one.study)}`;
  const state = make("td", "", make("span", "state")), runs = make("td", "wide-cell", make("div", "counts-bar", ...STATES.map((name) => make("span", name))), make("small", "line")), left = make("td", "number");
  left.dataset.label = "Time left";
  return make("tr", "", head, state, runs, left);
}

function drawRow(row, one) {
  const [head, state, runs, left] = row.cells, counts = one.counts ?? {};
  setName(head.firstChild.firstChild, one.study, 80);
  setName(head.lastChild.firstChild, one.problem || one.about || "", 200);
  head.lastChild.classList.toggle("trouble", Boolean(one.problem));
  setText(state.firstChild, one.state);
  setClass(state.firstChild, `state ${one.state}`);
  STATES.forEach((name, at) => { runs.firstChild.children[at].style.flexGrow = String(counts[name] ?? 0); });
  setText(runs.lastChild, STATES.filter((name) => counts[name]).map((name) => `${counts[name].toLocaleString("en")} ${name}`).join(", ") || "no runs yet");
  setText(left, duration(one.left));
}

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch("/studies.json").catch(() => null), told = byId("connection");
  setAttribute(told, "data-state", answer?.ok ? "live" : "lost");
  setText(told, answer?.ok ? "live" : answer ? clip(await answer.text(), 300) : "the server does not answer; trying again");
  if (!answer?.ok) return;
  const { studies } = await answer.json();
  setHidden(byId("studies"), !studies.length);
  setHidden(byId("none"), studies.length > 0);
  patchList(byId("studies").tBodies[0], studies, (one) => one.study, makeRow, drawRow);
}

refresh();
setInterval(refresh, EVERY);
document.addEventListener("visibilitychange", refresh);
