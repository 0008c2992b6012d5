// A run under way: how far it is, what is happening now, and what has just ended.
import { trialAddress } from "./address.js";
import { el, plain, svg } from "./dom.js";
import { badge, clock, money, plural } from "./words.js";

const KEPT = 5;

export class Live {
  constructor(run) {
    this.run = run;
    this.count = el("b", null, "…");
    this.words = el("span", { class: "live-words" });
    this.fill = svg("rect", { class: "fill", x: 0, y: 0, width: "0%", height: 8, rx: 4 });
    this.failed = svg("rect", { class: "failed", x: 0, y: 0, width: "0%", height: 8, rx: 4 });
    const bar = svg("svg", { class: "progress", width: "100%", height: 8, "aria-hidden": "true" }, svg("rect", { class: "track", x: 0, y: 0, width: "100%", height: 8, rx: 4 }), this.fill, this.failed);
    this.now = el("ul", { class: "under-way" });
    this.doing = el("div", { hidden: true }, el("h3", null, "Now"), this.now);
    this.recent = el("ol", { class: "recent" });
    this.lately = el("div", { hidden: true }, el("h3", null, "Just ended"), this.recent);
    this.node = el("section", { class: "live", "aria-label": "Progress", role: "region" }, el("p", { class: "live-line" }, el("span", { class: "pulse", "aria-hidden": "true" }), this.count, this.words), bar, el("div", { class: "live-columns" }, this.doing, this.lately));
  }

  progress({ part, done, total, at_most: most, failed, elapsed_s: elapsed, cost_usd: cost, under_way: under = [] }) {
    this.count.textContent = `${done.toLocaleString("en")} of ${most ? "at most " : ""}${plural(total, "trial")}`;
    const left = done > 1 && done < total ? (elapsed / done) * (total - done) : null;
    const words = [part ? `in ${part}` : "", failed ? `${failed} failed` : "", clock(elapsed), left == null ? "" : `about ${clock(left)} left`, cost ? money(cost) : ""];
    this.words.textContent = ` ${words.filter(Boolean).join(" · ")}`;
    this.fill.setAttribute("width", `${(100 * done) / Math.max(1, total)}%`);
    this.failed.setAttribute("width", `${(100 * failed) / Math.max(1, total)}%`);
    const rows = under.slice(0, KEPT).map((one) => el("li", null, el("a", { href: trialAddress(this.run, one.trial) }, plain(one.scenario)), " ", el("code", null, plain(one.trial)), one.calls ? ` ${plural(Number(one.calls), "call")}` : " no call yet", one.last_call ? el("small", null, plain(one.last_call)) : null));
    if (rows.length) this.doing.hidden = false;
    this.now.replaceChildren(...(rows.length ? rows : [el("li", { class: "nothing" }, "between two trials")]));
    if (under.length > KEPT) this.now.append(el("li", { class: "nothing" }, `and ${under.length - KEPT} more`));
  }

  ended({ id, outcome, rule, column, reason }) {
    this.lately.hidden = false;
    if (this.recent.firstElementChild?.dataset.trial === id) this.recent.firstElementChild.remove();
    const row = el("li", { "data-trial": id }, badge(outcome), el("a", { href: trialAddress(this.run, id) }, plain(column || id)), rule || reason ? el("small", null, plain([rule, reason].filter(Boolean).join(": "))) : null);
    this.recent.prepend(row);
    while (this.recent.childElementCount > KEPT) this.recent.lastElementChild.remove();
  }
}
