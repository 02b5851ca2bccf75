// The page without this shows everything; with it, tables sort, arms can be hidden, and sections open when they are linked to.
"use strict";
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const key = (cell) => cell.dataset.sort ?? cell.textContent.trim().replace(/^\u2013$/, "").replace("\u2212", "-").replaceAll(",", "");
const order = (a, b) => {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [Number.parseFloat(a), Number.parseFloat(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
};
for (const table of all("table.sortable")) {
  const heads = all("thead tr:last-child th", table), body = table.tBodies[0], first = [...body.rows];
  if (all("thead tr", table).length > 1) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort"), now = was === "ascending" ? "descending" : was ? null : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (now) head.setAttribute("aria-sort", now);
      const sign = now === "descending" ? -1 : 1;
      const value = (row) => key(row.cells[column]);
      const rows = [...first];
      if (now) rows.sort((a, b) => (value(a) === "" || value(b) === "" ? 1 : sign) * order(value(a), value(b)));
      body.append(...rows);
    });
  });
}
const hidden = new Set(), arms = new Set(all("[data-toggle]").map((chip) => chip.dataset.toggle)).size, told = document.createElement("p");
told.className = "trouble";
told.setAttribute("role", "status");
document.querySelector(".strips, #results table")?.before(told);
const show = () => {
  told.textContent = hidden.size ? `${hidden.size} of ${arms} arms are hidden; corrections are for all.` : "";
  for (const part of all("[data-arm]")) part.classList.toggle("off", hidden.has(part.dataset.arm));
  for (const chip of all("[data-toggle]")) chip.setAttribute("aria-pressed", String(!hidden.has(chip.dataset.toggle)));
};
for (const chip of all("[data-toggle]")) {
  const arm = chip.dataset.toggle;
  const toggle = () => { hidden.has(arm) ? hidden.delete(arm) : hidden.add(arm); show(); };
  const point = (on) => () => { for (const part of all("svg [data-arm]")) part.classList.toggle("dim", on && part.dataset.arm !== arm); };
  chip.setAttribute("role", "button");
  chip.tabIndex = 0;
  chip.addEventListener("click", toggle);
  chip.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); } });
  for (const [event, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) chip.addEventListener(event, point(on));
}
for (const chips of all(".chips")) {
  for (const [text, none] of [["all", false], ["none", true]]) {
    const whole = document.createElement("button");
    whole.type = "button";
    whole.className = "chip whole";
    whole.textContent = text;
    whole.addEventListener("click", () => { hidden.clear(); if (none) all("[data-toggle]").forEach((chip) => hidden.add(chip.dataset.toggle)); show(); });
    chips.append(whole);
  }
}
show();
const sections = all("details.section");
const reach = () => {
  const found = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!found) return;
  for (let part = found; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  found.scrollIntoView();
};
addEventListener("hashchange", reach);
for (const link of all('a[href^="#"]')) link.addEventListener("click", () => setTimeout(reach));
reach();
const nav = document.querySelector("nav");
if (nav) {
  const fold = document.createElement("button");
  fold.type = "button";
  fold.textContent = "unfold all";
  fold.addEventListener("click", () => {
    const open = fold.textContent === "unfold all";
    sections.forEach((section) => { section.open = open; });
    fold.textContent = open ? "fold all" : "unfold all";
  });
  nav.append(fold);
}
let folded = [];
addEventListener("beforeprint", () => { folded = [...sections, ...all(".notes")].filter((section) => !section.open); folded.forEach((section) => { section.open = true; }); });
addEventListener("afterprint", () => folded.forEach((section) => { section.open = false; }));
