// Changes to the page: texts only as texts, and nothing is touched that is as it should be, so that focus, selection and scroll stay.
export const SVG = "http://www.w3.org/2000/svg";
export const DASH = "\u2013";
const WHOLE = 28; // letters of a name that is not broken
export const byId = (id) => document.getElementById(id);

export function make(tag, className = "", ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function makeButton(text, className, press) {
  const made = make("button", className, text);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

export function makeSvg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function setClass(node, className) {
  if (node.getAttribute("class") !== className) node.setAttribute("class", className);
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

// What a reader would obey instead of seeing it: control codes, and what turns the direction of text around.
const CODES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

// A name of 10,000 letters is cut; a title has more of it, and a run's own panel all.
export function clip(text, longest = 80) {
  const letters = String(text ?? "").replace(CODES, (code) => `\\u${code.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return letters.length <= longest ? letters : `${letters.slice(0, longest - 1)}\u2026`;
}

export function setName(node, name, longest = 80) {
  setText(node, clip(name, longest));
  setAttribute(node, "title", name.length > longest ? clip(name, 1000) : null);
  if (node.classList.contains("arm")) node.classList.toggle("long", name.length > WHOLE);
}

// A text in which what stands between backticks is code.
export function setCoded(node, text, longest = 2000) {
  const shown = clip(text, longest);
  if (node.told === shown) return;
  node.told = shown;
  node.replaceChildren(...shown.split(/`([^`]+)`/).map((part, at) => (at % 2 ? make("code", "", part) : part)));
}

const kept = new WeakMap();

// One node per item, found again by its key; items that are gone take their nodes with them.
export function patchList(parent, items, keyOf, create, update) {
  const before = kept.get(parent) ?? new Map(), now = new Map(), focused = document.activeElement;
  const times = new Map();
  for (const item of items) {
    const plain = keyOf(item), time = times.get(plain) ?? 0, key = time ? `${plain}\u0000${time}` : plain;
    times.set(plain, time + 1);
    const node = before.get(key) ?? create(item);
    now.set(key, node);
    update(node, item);
  }
  if (!kept.has(parent)) parent.replaceChildren();
  for (const [key, node] of before) if (!now.has(key)) node.remove();
  let place = parent.firstChild;
  for (const node of now.values()) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  kept.set(parent, now);
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// A bar that says its share to everyone.
export function makeBar(label) {
  const bar = make("div", "bar", make("span", "fill"));
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-label", label);
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", "100");
  return bar;
}

export function setBar(bar, share) {
  const percent = Math.round(1000 * Math.min(1, Math.max(0, share))) / 10, width = `${percent}%`;
  if (bar.firstChild.style.width !== width) bar.firstChild.style.width = width;
  setAttribute(bar, "aria-valuenow", Math.round(percent));
}
