// All runs of the project: how the score goes, and a row for each.
import { get } from "./api.js";
import { ask, compareAddress } from "./address.js";
import { button, el, plain, visible } from "./dom.js";
import { listen } from "./events.js";
import { fileNames } from "./names.js";
import { Rows } from "./rows.js";
import { patchRow, runRow } from "./run_row.js";
import { trend } from "./trend.js";
import { MARKS, plural } from "./words.js";

const VERDICTS = ["PASS", "FAIL", "UNPROVEN", "ERROR"], TYPING_MS = 200;

export async function list(address, signal) {
  const page = new List(address, signal);
  await page.start();
  return page;
}

class List {
  constructor(address, signal) {
    this.signal = signal;
    this.title = "Runs";
    this.crumbs = [];
    this.picked = [];
    this.read(address);
  }

  read({ asked }) {
    this.asked = Object.fromEntries(["q", "spec", "verdict", "mark", "part"].map((name) => [name, asked.get(name) ?? ""]));
  }

  query(offset, limit) {
    const { q, spec, verdict, mark } = this.asked;
    return `runs?${new URLSearchParams({ offset, limit, q, spec, verdict, mark })}`;
  }

  async start() {
    this.head = el("h1", null);
    this.about = el("p", { class: "lead" });
    this.trouble = el("p", { class: "warning", role: "status", hidden: true });
    this.chart = el("div", { class: "trend-holder" });
    this.holder = el("ol", { class: "runs", "aria-label": "Runs, newest first", role: "list" });
    this.empty = el("p", { class: "nothing empty", hidden: true });
    this.bar = el("div", { class: "picked", hidden: true, role: "status" });
    this.filters = this.makeFilters();
    this.heads = el("div", { class: "run-row heads", "aria-hidden": "true" }, ...["", "verdict", "run", "score", "cells", "cost", "took", "started", ""].map((word) => el("span", null, word)));
    this.body = [el("div", { class: "list-head" }, this.head, this.about), this.trouble, this.chart, this.filters, this.heads, this.holder, this.empty, this.bar];
    this.rows = new Rows(this.holder, {
      fetchPage: (offset, limit) => this.page(offset, limit),
      make: (row) => runRow(row, this.names, this.picked),
      patch: (item, row) => patchRow(item, row, this.names, this.picked),
      empty: this.empty,
    });
    this.holder.addEventListener("change", (event) => this.pick(event.target.closest("li").dataset.run));
    this.holder.addEventListener("click", (event) => this.opened(event));
    await this.rows.load(0);
    await this.drawTrend();
  }

  // A row is a link as a whole; text in it can still be selected.
  opened(event) {
    if (event.target.closest("a, label, input") || String(getSelection())) return;
    event.target.closest("li")?.querySelector("a").click();
  }

  ready() {
    this.holder.parentElement.classList.toggle("no-cost", !this.costly);
    this.rows.draw();
    let first = true;
    listen(null, (kind) => {
      if (kind === "runs" || (kind === "open" && !first)) this.refresh();
      if (kind === "open") first = false;
    });
  }

  async page(offset, limit) {
    const found = await get(this.query(offset, limit), this.signal);
    this.head.replaceChildren(plain(found.project || "Runs"));
    this.about.textContent = found.total ? `${plural(found.total, "run")}${found.specs.length > 1 ? ` of ${found.specs.length} files` : ""}` : "";
    if (String(found.specs) !== String(this.specs)) this.names = fileNames(found.specs);
    this.specs = found.specs;
    this.costly ||= found.runs.some((run) => run.cost_usd != null);
    this.holder.parentElement?.classList.toggle("no-cost", !this.costly);
    this.newest = found.runs[0] && offset === 0 ? found.runs[0] : this.newest;
    this.fillSpecs();
    this.trouble.hidden = !(found.trouble || found.indexing);
    this.trouble.replaceChildren(found.trouble ? plain(found.trouble) : found.indexing ? `${plural(found.indexing, "run")} more are being read; they appear by themselves.` : "");
    this.empty.replaceChildren(found.total ? "No run matches these filters." : "No runs yet. Run holdfast contract run in the project folder; the run appears here automatically.");
    return { matching: found.matching, rows: found.runs };
  }

  async drawTrend() {
    const spec = this.asked.spec || this.newest?.spec || this.specs[0] || "";
    const found = await get(`trend?${new URLSearchParams({ spec })}`, this.signal);
    const face = JSON.stringify([found, spec, this.asked.part]);
    if (face === this.face) return;
    this.face = face;
    this.drawn?.close();
    this.drawn = null;
    if (!found.parts.length) return this.chart.replaceChildren();
    const pick = (part) => this.change({ part });
    this.drawn = trend(found, this.asked.part, pick);
    const name = this.specs.length > 1 ? el("p", { class: "trend-of" }, "Score of ", plain(this.names.get(spec) ?? spec, "b")) : null;
    this.chart.replaceChildren(...[name, this.drawn.figure].filter(Boolean));
  }

  makeFilters() {
    const text = el("input", { type: "search", placeholder: "run, file, commit, branch", "aria-label": "Filter runs", autocomplete: "off", spellcheck: "false" });
    text.value = this.asked.q;
    let waiting = 0;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.change({ q: text.value.trim() }), TYPING_MS);
    });
    const select = (name, label, options) => {
      const field = el("select", { "data-name": name }, ...options.map(([value, word]) => el("option", { value }, word)));
      field.value = this.asked[name];
      field.addEventListener("change", () => this.change({ [name]: field.value }));
      return [field, el("label", null, el("span", null, label), field)];
    };
    const [spec, specLabel] = select("spec", "File", [["", "all"]]);
    const [, verdictLabel] = select("verdict", "Verdict", [["", "any"], ...VERDICTS.map((word) => [word, word])]);
    const [, markLabel] = select("mark", "Mark", [["", "any"], ...Object.entries(MARKS).map(([mark, [sign, word]]) => [mark, `${sign} ${word}`])]);
    Object.assign(this, { spec, specLabel, text });
    const form = el("form", { class: "filters", role: "group", "aria-label": "Which runs" }, specLabel, verdictLabel, markLabel, el("label", { class: "grow" }, el("span", null, "Text"), text));
    form.addEventListener("submit", (event) => event.preventDefault());
    return form;
  }

  fillSpecs() {
    this.specLabel.hidden = this.specs.length < 2;
    const known = new Set([...this.spec.options].map((option) => option.value));
    for (const name of this.specs) if (!known.has(name)) this.spec.append(el("option", { value: name }, visible(this.names.get(name))));
    if (this.spec.value !== this.asked.spec) this.spec.value = this.asked.spec;
  }

  change(changes) {
    Object.assign(this.asked, changes);
    ask(changes);
    this.rows.refresh({ fresh: true }).catch(() => {});
    if ("spec" in changes || "part" in changes) this.drawTrend().catch(() => {});
  }

  follow(address) {
    this.read(address);
    this.text.value = this.asked.q;
    for (const field of this.filters.querySelectorAll("select")) field.value = this.asked[field.dataset.name];
    this.change({});
    this.drawTrend().catch(() => {});
  }

  async refresh() {
    await this.rows.refresh().catch(() => {});
    await this.drawTrend().catch(() => {});
  }

  pick(run) {
    this.picked = this.picked.includes(run) ? this.picked.filter((one) => one !== run) : [...this.picked.slice(-1), run];
    for (const item of this.holder.children) item.querySelector("input").checked = this.picked.includes(item.dataset.run);
    this.bar.hidden = !this.picked.length;
    const [a, b] = [...this.picked].sort((x, y) => x.localeCompare(y, "en", { numeric: true }));
    const go = b ? el("a", { class: "button", href: compareAddress(a, b) }, "Compare ", plain(a), " with ", plain(b)) : el("span", null, plain(a ?? ""), " is picked: pick another to compare it with");
    this.bar.replaceChildren(go, button("Clear", () => [...this.picked].forEach((one) => this.pick(one))));
  }

  move(by) {
    const at = document.activeElement.closest?.("li.run-row")?.index;
    const top = Math.max(0, Math.ceil(-this.holder.getBoundingClientRect().top / this.rows.height));
    this.rows.focus(at === undefined ? top : at + by);
  }

  key(key) {
    const row = document.activeElement.closest?.("li.run-row");
    if (key === "x" && row) return this.pick(row.dataset.run), true;
    if (key === "c" && this.picked.length === 2) return this.bar.querySelector("a").click(), true;
    return false;
  }

  leave() {
    this.rows.close();
    this.drawn?.close();
  }
}
