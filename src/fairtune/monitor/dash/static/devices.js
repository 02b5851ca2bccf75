// Devices by what their workers last said, the log, maps as they form, and reports.
import { byId, clip, make, makeBar, makeButton, patchList, setAttribute, setBar, setHidden, setName, setText } from "./dom.js";
import * as choice from "./choice.js";
import { bytes, elapsed, isNumber } from "./numbers.js";
import { openLog, openRun } from "./dialog.js";
import { placeOf } from "./runs.js";

const HOTTEST = 100, HOT = 85, MAPS_EVERY = 20000, NONE_EVERY = 120000;
let base = "", mapsAsked = 0, maps = [];

export const beginDevices = (address) => { base = address; };

export function drawDevices(devices = []) {
  setHidden(byId("devices"), !devices.length);
  patchList(byId("devices").querySelector(".devices"), devices, (device) => device.worker, makeDevice, drawDevice);
}

function makeDevice(device) {
  const name = makeButton(clip(device.worker, 40), "link", () => openLog(base, device.worker));
  name.title = "its log";
  const bars = ["load", "memory", "temperature"].map((label) => make("div", "gauge", make("span", "soft", label), makeBar(label), make("span", "number")));
  return make("div", "device", make("p", "", name, make("bdi", "soft")), make("p", "doing"), ...bars);
}

function drawDevice(node, device) {
  const [title, doing, load, memory, heat] = node.children;
  setName(title.lastChild, device.device === device.worker ? "" : ` ${device.device}`, 60);
  const quiet = device.fresh ? "" : `no word for ${isNumber(device.age) ? elapsed(device.age) : "a while"}`;
  const others = device.others ? `${device.others} other ${device.others === 1 ? "process" : "processes"} on it` : "";
  setName(doing, [quiet, device.run ?? (device.fresh ? "idle" : ""), others].filter(Boolean).join(" · "), 120);
  node.classList.toggle("stale", !device.fresh);
  gauge(load, device.load, isNumber(device.load) ? `${Math.round(100 * device.load)} %` : "");
  gauge(memory, isNumber(device.memory_used) && device.memory ? device.memory_used / device.memory : null, isNumber(device.memory_used) ? `${bytes(device.memory_used)}${device.memory ? ` of ${bytes(device.memory)}` : ""}` : "");
  gauge(heat, isNumber(device.temperature) ? device.temperature / HOTTEST : null, isNumber(device.temperature) ? `${Math.round(device.temperature)} °C` : "");
  heat.classList.toggle("hot", device.temperature >= HOT);
}

function gauge(node, share, text) {
  setHidden(node, !text);
  setHidden(node.children[1], !isNumber(share));
  if (isNumber(share)) setBar(node.children[1], share);
  setText(node.lastChild, text);
}

export function drawLog(lines = []) {
  const box = byId("log").querySelector(".log"), below = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  setHidden(byId("log"), !lines.length);
  patchList(box, lines, ([who, text]) => `${who}\u0000${text}`, ([who, text]) => make("p", "", make("bdi", "soft", clip(who, 60)), make("bdi", "", clip(text, 2000))), () => {});
  if (below) box.scrollTop = box.scrollHeight;
}

export function drawReports(reports = []) {
  setHidden(byId("reports"), !reports.length);
  patchList(byId("reports").querySelector("ul"), reports, ([title, href]) => `${title}\u0000${href}`, ([title, href]) => {
    if (!String(href).startsWith("/study/")) return make("li", "", clip(title, 200));
    const link = make("a", "", clip(title, 200));
    link.href = href;
    return make("li", "", link);
  }, () => {});
}

// Asked for now and then only, since a map is drawn anew for it; seldom where there are none, as in most studies.
export async function loadMaps() {
  if (Date.now() - mapsAsked < (maps.length ? MAPS_EVERY : NONE_EVERY)) return;
  mapsAsked = Date.now();
  const answer = await fetch(`${base}maps.json`).catch(() => null);
  if (!answer?.ok) return;
  maps = (await answer.json()).maps ?? [];
  drawMaps();
}

export function drawMaps() {
  const shown = maps.filter((map) => choice.isShown(map.arm));
  setHidden(byId("maps"), !shown.length);
  patchList(byId("maps").querySelector(".maps"), shown, (map) => `${map.arm}\u0000${map.seed}\u0000${map.layer}`, (map) => {
    const picture = make("img");
    picture.loading = "lazy";
    picture.alt = map.layer === "history" ? `how the map of ${clip(map.arm)}, seed ${map.seed}, has formed` : `the map of ${clip(map.arm)}, seed ${map.seed}`;
    const link = make("a", "", picture);
    link.target = "_blank";
    return make("figure", "", link, make("figcaption", "", makeButton(`${clip(map.arm, 40)} seed ${map.seed}`, "link", () => openRun(base, map.arm, map.seed, placeOf(map.arm))), make("small")));
  }, (figure, map) => {
    const parts = [map.arm, map.seed, map.layer].map((part) => encodeURIComponent(part)).join("/");
    const address = `${base}map/${parts}.png?v=${encodeURIComponent(map.version ?? "")}`;
    setAttribute(figure.firstChild, "href", address);
    setAttribute(figure.firstChild.firstChild, "src", address);
    setText(figure.lastChild.lastChild, ` ${[map.layer === "history" ? "how it formed" : "", map.when].filter(Boolean).join(", ")}`);
  });
}
