// The cases of a run: one task in one scenario, with its replicas.
import { trialAddress } from "./address.js";
import { button, el, plain } from "./dom.js";
import { SIGNS, badge, number } from "./words.js";

const FIRST = 100, REPLICAS = 40, IN_ORDER = 8;

export function cases(run, list) {
  const holder = el("ol", { class: "cases-list" });
  const shown = list.length > IN_ORDER ? [...list.filter((one) => one.status !== "pass"), ...list.filter((one) => one.status === "pass")] : list;
  let at = 0;
  const more = button("", () => add(), { class: "more" });
  function add() {
    holder.append(...shown.slice(at, at + FIRST).map((one) => entry(run, one)));
    at += FIRST;
    more.hidden = at >= shown.length;
    more.textContent = `Show ${Math.min(FIRST, shown.length - at)} more of ${shown.length - at}`;
  }
  add();
  return [holder, more];
}

function entry(run, one) {
  const first = one.replicas.find((replica) => replica.outcome !== "pass") ?? one.replicas[0];
  const shown = one.replicas.slice(0, REPLICAS), more = one.runs - shown.length;
  const name = first ? el("a", { href: trialAddress(run, first.trial), "data-entry": true }, plain(one.name)) : plain(one.name);
  const marks = [one.runs > 1 ? `${one.passes}/${one.runs}` : "", one.flaky ? "flaky" : ""].filter(Boolean).join(", ");
  const replicas = one.runs < 2 ? null : el("ul", { class: "replicas", "aria-label": "Replicas" }, ...shown.map((replica, n) =>
    el("li", null, el("a", { href: trialAddress(run, replica.trial), class: `sign ${replica.outcome}`, "aria-label": `replica ${n + 1}: ${replica.outcome}`, title: `replica ${n + 1}: ${replica.outcome}` }, SIGNS[replica.outcome] ?? "·"))), more ? el("li", null, `and ${more} more`) : null);
  return el("li", { class: "case-row" }, badge(one.status), el("span", { class: "composite" }, one.composite == null ? "" : number(one.composite)),
    el("span", { class: "what" }, name, marks ? el("i", null, ` ${marks}`) : null, replicas, one.reason ? plain(one.reason, "p") : null));
}
