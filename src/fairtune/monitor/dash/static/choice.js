// Which arms are looked at: those not hidden whose names hold the filter's words; and the one that is pointed at.
const hidden = new Set(), listeners = [], pointers = [];
let words = [], pointed = null;

export const isHidden = (arm) => hidden.has(arm);
export const isFound = (arm) => words.every((word) => arm.toLowerCase().includes(word));
export const isShown = (arm) => !hidden.has(arm) && isFound(arm);
export const onChoice = (listener) => listeners.push(listener);
export const onPoint = (listener) => pointers.push(listener);
const changed = () => listeners.forEach((listener) => listener());

export function setFilter(text) {
  words = text.toLowerCase().split(/\s+/).filter(Boolean);
  changed();
}

export function toggle(arm) {
  if (!hidden.delete(arm)) hidden.add(arm);
  changed();
}

export function showOnly(arms, all) {
  hidden.clear();
  for (const arm of all) if (!arms.includes(arm)) hidden.add(arm);
  changed();
}

export function point(arm) {
  if (arm === pointed) return;
  pointed = arm;
  pointers.forEach((listener) => listener(arm));
}
