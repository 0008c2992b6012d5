// What did not hold, grouped by rule and cause: the rule in words, why, one answer, and how to see it again.
import { get } from "./api.js";
import { cellAddress, runAddress, runPath, trialAddress } from "./address.js";
import { button, command, el, facts, inlined, passage, plain, visible } from "./dom.js";
import { tellable } from "./names.js";
import { badge, plural } from "./words.js";

const OPEN = 2, FIRST = 20, PLACES = 8, TEXT = 600, NAME = 36;

// A case and a cell that one rule brought down in the same trial are one cause, told once.
function joined(found) {
  const keyOf = (cause) => JSON.stringify([cause.rule, cause.trial]);
  const ofCells = new Map(found.causes.filter((cause) => !cause.cases?.length).map((cause) => [keyOf(cause), cause]));
  const causes = found.causes.flatMap((cause) => {
    const twin = ofCells.get(keyOf(cause));
    if (!cause.cases?.length) return ofCells.has(keyOf(cause)) ? [cause] : [];
    if (twin) ofCells.delete(keyOf(cause));
    return [twin ? { ...cause, reason: twin.reason, cells: twin.cells, places: twin.places, cell_count: twin.count } : cause];
  });
  return { ...found, causes, total: found.total - (found.causes.length - causes.length) };
}

// The list keeps its entries while a run goes on: what was opened stays open, what has the focus keeps it.
export class Causes {
  // `part` is one of several, shown on the page of the whole run: its links lead to its own page.
  constructor(run, part) {
    this.run = run;
    this.part = part;
    this.shown = FIRST;
    this.entries = new Map();
    this.told = el("p", { class: "status" });
    this.list = el("ol", { class: "causes" });
    this.more = button("", () => this.showAll(), { class: "more", hidden: true });
    this.node = el("section", { class: "did-not-hold", hidden: true }, el("h2", null, "Failures"), this.told, this.list, this.more);
  }

  async load(signal) {
    this.take(await get(`${runPath(this.run)}/causes`, signal));
  }

  take(found) {
    const { rules, columns } = this.heads;
    const named = found.causes.map((cause) => ({ ...cause, places: cause.cells, cells: cause.cells.slice(0, PLACES).map(([rule, column]) => [rules[rule]?.id, columns[column]?.name]) }));
    this.found = joined({ ...found, causes: named });
    this.draw();
  }

  showAll() {
    this.shown = Infinity;
    this.draw();
  }

  draw() {
    const { causes, total, cells } = this.found, count = (list) => list.reduce((sum, cause) => sum + cause.count, 0);
    const ofCases = causes.filter((cause) => cause.cases?.length), cases = count(ofCases);
    const places = [cases ? plural(cases, "case") : "", cells ? plural(cells, "cell") : ""].filter(Boolean).join(" and ");
    this.node.hidden = !causes.length;
    this.told.textContent = causes.length !== cells + cases ? `${plural(total ?? causes.length, "cause")} in ${places}` : "";
    const wanted = causes.slice(0, this.shown).map((cause, n) => this.entry({ ...cause, number: n + 1 }, n < OPEN));
    const keep = new Set(wanted);
    for (const [key, item] of this.entries) if (!keep.has(item)) (item.remove(), this.entries.delete(key));
    let next = this.list.firstElementChild;
    for (const item of wanted) {
      if (item === next) next = next.nextElementSibling;
      else this.list.insertBefore(item, next);
    }
    this.more.hidden = causes.length <= this.shown;
    this.more.textContent = `Show ${causes.length - this.shown} more`;
  }

  entry(cause, open) {
    const key = JSON.stringify([cause.rule, cause.outcome, cause.reason, cause.fault]), face = JSON.stringify(cause);
    let item = this.entries.get(key);
    if (!item) this.entries.set(key, (item = el("li", null, entry(this, cause, open))));
    else if (item.face !== face) {
      const was = item.firstElementChild, focused = was.contains(document.activeElement);
      item.replaceChildren(entry(this, cause, was.open));
      if (focused) item.querySelector("summary").focus({ preventScroll: true });
    }
    item.face = face;
    return item;
  }
}

function entry(list, cause, open) {
  // A case may have the name of a scenario in the matrix: it says that it is a case, a session or a mutation.
  const where = cause.cells[0]?.[1] ?? (cause.cases?.length ? `${cause.noun} ${cause.cases[0]}` : "");
  const places = cause.count > 1 ? plural(cause.count, cause.cases?.length ? cause.noun : "cell") : `in ${where}`;
  const summary = el("summary", { "data-entry": true }, badge(cause.outcome),
    el("span", { class: "what" }, el("b", null, plain(cause.rule || cause.reason)), " ", el("span", { class: "count" }, plain(places)), cause.severity ? el("small", { class: cause.severity }, cause.severity) : null, cause.remarks ? plain(` ${cause.remarks}`, "i") : null),
    cause.rule ? el("span", { class: "why" }, plain(cause.reason)) : null);
  const view = el("details", { class: "cause" }, summary);
  const fill = () => view.childElementCount === 1 && view.append(body(list, cause));
  view.addEventListener("toggle", () => view.open && fill());
  if (open) {
    fill();
    view.open = true;
  }
  return view;
}

const cut = (text) => (text.length > TEXT ? `${text.slice(0, TEXT)} …` : text);

function body({ run, part }, cause) {
  const at = (address) => (inlined && part ? `${part.page}${address}` : address);
  return facts([
    ["rule", cause.description],
    ["also", cause.also],
    ["asked", cause.asked ? passage(cut(cause.asked)) : ""],
    ["answered", cause.answered == null ? "" : cause.answered ? passage(cut(cause.answered), (cause.marks ?? []).filter(([, end]) => end <= TEXT)) : el("span", { class: "nothing" }, "nothing")],
    ["fault", cause.fault],
    ["faults", cause.faults],
    ["known as", (cause.standards ?? []).join("; ")],
    ["next", cause.next],
    ["cells", (cause.cell_count ?? cause.count) > 1 && cause.cells.length ? cells(run, cause, at) : ""],
    ["cases", cause.count > 1 && cause.cases?.length ? caseNames(cause) : ""],
    ["matrix", cause.places.length > 1 && !part ? button("Show only these cells", () => alone(run, cause.number), { class: "button only" }) : ""],
    ["at", cause.where ? el("code", null, plain(cause.where)) : ""],
    ["reproduce", cause.again ? command(cause.again) : ""],
    ["trial", cause.trial ? el("a", { class: "button", href: at(trialAddress(run, cause.trial)) }, "Open trial: calls, files, audit") : ""],
  ]);
}

// Shows the cells of a cause alone in the matrix.
function alone(run, number) {
  location.hash = runAddress(run, { cause: number });
  document.querySelector(".matrix")?.scrollIntoView({ block: "center" });
}

function caseNames({ cases, count }) {
  const more = count - Math.min(cases.length, PLACES);
  return el("ul", { class: "places" }, ...cases.slice(0, PLACES).map((name) => plain(name, "li")), more > 0 ? el("li", null, `and ${more} more`) : null);
}

function cells(run, cause, at) {
  const several = new Set(cause.cells.map(([rule]) => rule)).size > 1;
  const places = cause.cells.slice(0, PLACES), names = tellable(places.map(([rule, column]) => (several ? `${rule} in ${column}` : column)), NAME);
  const shown = places.map(([rule, column], n) => el("li", null, el("a", { href: at(cellAddress(run, rule, column)), title: visible(column) }, plain(names[n]))));
  const more = (cause.cell_count ?? cause.count) - shown.length;
  return el("ul", { class: "places" }, ...shown, more > 0 ? el("li", null, `and ${more} more`) : null);
}
