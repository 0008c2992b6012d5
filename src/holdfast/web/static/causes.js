// What did not hold, grouped by rule and cause: the rule in words, why, one answer, and how to see it again.
import { get } from "./api.js";
import { cellAddress, runPath, trialAddress } from "./address.js";
import { button, command, el, facts, passage, plain, visible } from "./dom.js";
import { tellable } from "./names.js";
import { badge, plural } from "./words.js";

const OPEN = 2, FIRST = 20, PLACES = 8, TEXT = 600, NAME = 36;

export async function causes(run, signal) {
  const found = await get(`${runPath(run)}/causes`, signal);
  if (!found.causes.length) return null;
  const list = el("ol", { class: "causes" });
  const add = (from, to) => list.append(...found.causes.slice(from, to).map((cause, n) => entry(run, cause, from + n < OPEN)));
  add(0, FIRST);
  const cells = found.causes.reduce((sum, cause) => sum + cause.count, 0);
  const told = found.causes.length < cells ? el("p", { class: "status" }, `${plural(found.total ?? found.causes.length, "cause")} of ${plural(cells, "cell")} that did not hold`) : null;
  const rest = found.causes.length - FIRST;
  const more = rest > 0 ? button(`Show ${rest} more`, () => { add(FIRST); more.remove(); }, { class: "more" }) : null;
  return [told, list, more];
}

function entry(run, cause, open) {
  const places = cause.count > 1 ? `${plural(cause.count, "cell")}` : `in ${cause.cells[0]?.[1] ?? ""}`;
  const summary = el("summary", { "data-entry": true }, badge(cause.outcome),
    el("span", { class: "what" }, el("b", null, plain(cause.rule)), " ", el("span", { class: "count" }, plain(places)), cause.severity ? el("small", { class: cause.severity }, cause.severity) : null),
    el("span", { class: "why" }, plain(cause.reason)));
  const view = el("details", { class: "cause" }, summary);
  const fill = () => view.childElementCount === 1 && view.append(body(run, cause));
  view.addEventListener("toggle", () => view.open && fill());
  if (open) {
    fill();
    view.open = true;
  }
  return el("li", null, view);
}

const cut = (text) => (text.length > TEXT ? `${text.slice(0, TEXT)} …` : text);

function body(run, cause) {
  return facts([
    ["rule", cause.description],
    ["asked", cause.asked ? passage(cut(cause.asked)) : ""],
    ["answered", cause.answered == null ? "" : cause.answered ? passage(cut(cause.answered), (cause.marks ?? []).filter(([, end]) => end <= TEXT)) : el("span", { class: "nothing" }, "nothing")],
    ["met", cause.fault],
    ["next", cause.next],
    ["cells", cause.count > 1 ? cells(run, cause) : ""],
    ["at", cause.where ? el("code", null, plain(cause.where)) : ""],
    ["again", cause.again ? command(cause.again) : ""],
    ["trial", cause.trial ? el("a", { class: "button", href: trialAddress(run, cause.trial) }, "Open the trial: calls, files, audit") : ""],
  ]);
}

function cells(run, cause) {
  const places = cause.cells.slice(0, PLACES), names = tellable(places.map(([, column]) => column), NAME);
  const shown = places.map(([rule, column], n) => el("li", null, el("a", { href: cellAddress(run, rule, column), title: visible(column) }, plain(names[n]))));
  const more = cause.count - shown.length;
  return el("ul", { class: "places" }, ...shown, more > 0 ? el("li", null, `and ${more} more`) : null);
}
