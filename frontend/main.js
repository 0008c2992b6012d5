// Starts the page, and shows the one that the address asks for.
import "./main.css";
import { Gone, Refused, whenBack } from "./api.js";
import { readAddress, searchAddress } from "./address.js";
import { compare } from "./compare.js";
import { el, inlined, plain, visible } from "./dom.js";
import { deafen } from "./events.js";
import { startKeys } from "./keys.js";
import { list } from "./list.js";
import { closePanel } from "./panel.js";
import { TOP } from "./words.js";
import { run } from "./run.js";
import { search } from "./search.js";
import { trial } from "./trial.js";

const SLOW_MS = 600;
const PAGES = { list, run, trial, compare, search, missing };
const main = document.getElementById("main"), find = document.getElementById("find"), words = find.elements[0];
let shown = null, leaving = new AbortController(), began = 0;

const sameAs = (a, b) => a && a.page === b.page && a.run === b.run && a.trial === b.trial && a.a === b.a && a.b === b.b;

function missing() {
  return { title: "No such page", crumbs: [], body: [trouble(new Refused(404, { error: "There is no such page.", hint: "Use the Holdfast link above." }))] };
}

const TITLES = { 404: "Not found", 409: "This cannot be shown", 500: "The viewer failed" };

function trouble(problem) {
  const title = problem instanceof Gone ? "The server does not respond" : TITLES[problem.status] ?? "This page could not be loaded";
  const hint = problem instanceof Gone ? "This page reloads automatically." : problem.hint ?? "";
  const message = problem instanceof Gone ? null : plain(problem.message, "p");
  return el("div", { class: "trouble-page", role: "alert" }, el("h1", null, title), message, hint ? plain(hint, "p") : null, el("p", null, el("a", { class: "button", href: "#/" }, inlined ? "The run" : "All runs")));
}

// A page is {title, crumbs, body} and may have follow (only what is asked changed), refresh, move, key, up, leave, ready.
async function show() {
  const address = readAddress();
  if (shown && sameAs(shown.address, address)) {
    shown.page.follow?.(address);
    return;
  }
  leave();
  const signal = leaving.signal, started = began;
  // The static page stays until the documents are unpacked.
  const slow = inlined ? 0 : setTimeout(() => main.replaceChildren(el("p", { class: "reading", role: "status" }, "Reading…")), SLOW_MS);
  if (!inlined) main.setAttribute("aria-busy", "true");
  let page;
  try {
    page = await PAGES[address.page](address, signal);
  } catch (problem) {
    clearTimeout(slow);
    if (signal.aborted) return;
    if (!(problem instanceof Refused || problem instanceof Gone)) console.error(problem);
    if (inlined && address.page === "run") return unreadable();
    page = { title: "Trouble", crumbs: [TOP], up: "#/", body: [trouble(problem)], failed: true };
  }
  clearTimeout(slow);
  if (signal.aborted) return page.leave?.();
  place(page, address);
  document.documentElement.dataset.ready = String(Math.round(performance.now() - started));
}

// An old browser: the static page stays.
function unreadable() {
  main.prepend(el("p", { class: "warning", role: "alert" }, "This browser cannot unpack the matrix and the trials. report.json has the same content."));
}

function leave() {
  leaving.abort();
  leaving = new AbortController();
  closePanel({ leaving: true });
  deafen();
  shown?.page.leave?.();
  began = shown ? performance.now() : 0;
  shown = null;
  delete document.documentElement.dataset.ready;
}

function place(page, address) {
  shown = { page, address };
  document.title = `${visible(page.title)} · Holdfast`;
  document.documentElement.dataset.page = address.page;
  document.getElementById("crumbs").replaceChildren(...page.crumbs.map(([text, href]) => el("a", { href, "aria-current": href === location.hash.split("?")[0] && "page" }, plain(text))));
  words.placeholder = address.run ? `Search run ${visible(address.run)}` : "Search answers and reasons";
  if (address.page === "search") words.value = address.asked.get("q") ?? "";
  main.replaceChildren(...page.body);
  main.removeAttribute("aria-busy");
  const y = history.state?.y ?? 0, done = page.ready?.();
  scrollTo(0, y);
  // What comes later may be what makes the page long enough to go back to where one was.
  if (y) done?.then(() => shown?.page === page && scrollY < y && scrollTo(0, y));
  if (document.activeElement === document.body && began) main.focus({ preventScroll: true });
}

// Where a page was scrolled to is kept with its entry in the history.
let keeping = 0;
addEventListener("scroll", () => {
  clearTimeout(keeping);
  keeping = setTimeout(() => history.replaceState({ ...history.state, y: Math.round(scrollY) }, ""), 400);
}, { passive: true });
history.scrollRestoration = "manual";

addEventListener("hashchange", () => {
  clearTimeout(keeping);
  show();
});
whenBack(() => {
  if (shown?.page.failed) {
    shown = null;
    show();
  } else shown?.page.refresh?.();
});
find.addEventListener("submit", (event) => {
  event.preventDefault();
  const { run, asked } = shown?.address ?? {};
  if (words.value.trim()) location.hash = searchAddress(words.value.trim(), run ?? asked?.get("run"));
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
find.hidden = document.getElementById("show-keys").hidden = false;
startKeys(() => shown?.page ?? {});
show();
