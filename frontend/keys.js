// The keyboard: what each key does, and the page that says so.
import { el, inlined } from "./dom.js";
import { closePanel, panelOpen } from "./panel.js";

const KEYS = [
  ["j  k", "next, previous entry"],
  ["← ↑ ↓ →", "move in a matrix, along a chart"],
  ["Enter", "open"],
  ["Esc", "close; then go up one page"],
  ["/", "search answers and reasons"],
  ["x", "pick a run in the list, to compare it"],
  ["c", "compare the picked runs, or this run with the previous one"],
  ["[  ]", "previous, next run"],
  ["n", "write a note"],
  ["y", "copy the command that reproduces it"],
  ["?", "show the keys"],
];
const OF_RUNS = ["x", "c", "[  ]", "n"];
const dialog = document.getElementById("keys");
const isTyped = (at) => ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName) && at.type !== "checkbox";

export function startKeys(page) {
  fill();
  document.getElementById("show-keys").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.key === "Escape") return escape(event, page());
    if (isTyped(event.target)) return;
    if (pressed(event.key, page())) event.preventDefault();
  });
}

function fill() {
  const rows = KEYS.filter(([keys]) => !(inlined && OF_RUNS.includes(keys))).map(([keys, what]) => el("div", null, el("dt", null, ...keys.split("  ").flatMap((key) => [el("kbd", null, key), " "])), el("dd", null, what)));
  dialog.append(el("h2", { id: "keys-title" }, "Keys"), el("dl", null, ...rows), el("form", { method: "dialog" }, el("button", { type: "submit" }, "Close")));
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close();
  });
}

function escape(event, page) {
  const at = event.target;
  if (isTyped(at)) at.blur();
  else if (panelOpen()) closePanel();
  else if (page.up) location.hash = page.up;
  else return;
  event.preventDefault();
}

function pressed(key, page) {
  if (key === "/") return focus("find-text");
  if (key === "?") return dialog.showModal(), true;
  if (key === "j" || key === "k") return move(page, key === "j" ? 1 : -1), true;
  if (key === "n") return focus("note-text");
  if (key === "y") return press("#panel:not([hidden]) .copy") || press(".trial-side .copy") || press("main .copy");
  return page.key?.(key) ?? false;
}

function focus(id) {
  const field = document.getElementById(id);
  field?.focus();
  field?.select();
  return Boolean(field);
}

function press(selector) {
  const found = document.querySelector(selector);
  found?.click();
  return Boolean(found);
}

function move(page, by) {
  if (page.move && !panelOpen()) page.move(by);
  else moveAmong(by);
}

// Entries of a page are whatever is marked so, in their order.
function moveAmong(by) {
  const place = panelOpen() ? document.getElementById("panel") : document.getElementById("main");
  const entries = [...place.querySelectorAll("[data-entry]")].filter((one) => one.offsetParent !== null);
  const at = entries.indexOf(document.activeElement.closest("[data-entry]"));
  const next = entries[Math.max(0, Math.min(entries.length - 1, at < 0 ? (by > 0 ? 0 : entries.length - 1) : at + by))];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}
