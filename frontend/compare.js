// Two runs side by side: which rules got worse, and every cell that is not what it was.
import { get } from "./api.js";
import { ask, cellAddress, compareAddress, runAddress } from "./address.js";
import { button, el, plain, section, visible } from "./dom.js";
import { Grid } from "./grid.js";
import { fileNames } from "./names.js";
import { openPair } from "./panel.js";
import { smallGauge } from "./run_row.js";
import { SIGNS, badge, money, number, plural, scoreOf, span, took, when, wordOf } from "./words.js";

const CASES = "(cases)", ORDER = ["worse", "better", "cannot tell", "same"];
const TONES = { worse: "fail", better: "pass", "cannot tell": "unproven", same: "na" };
const RANK = { pass: 0, "n/a": 1, unproven: 2, error: 3, fail: 4 };

// A rule of a part is called by both.
const named = (one) => ({ ...one, name: one.part ? `${one.part}: ${one.rule}` : one.rule });

export async function compare({ a, b, asked }, signal) {
  const found = await get(`compare?${new URLSearchParams({ a, b })}`, signal);
  found.rules = found.rules.map(named);
  found.cells = found.cells.map(named);
  const cells = new Changes(found, asked);
  return {
    title: `${a} and ${b}`,
    crumbs: [["Runs", "#/"], [`${a} and ${b}`, location.hash.split("?")[0]]],
    up: "#/",
    body: [head(found, a, b), sides(found), rulesOf(found), ...cells.nodes].filter(Boolean),
    follow: (address) => cells.read(address.asked),
    leave: () => cells.close(),
    key: (key) => (key === "c" ? ((location.hash = compareAddress(b, a)), true) : false),
  };
}

const changesOf = (found) => found.differ + found.new + found.gone;

function head(found, a, b) {
  const [tone, word] = verdictOf(found), rules = (verdict) => found.rules.filter((rule) => rule.verdict === verdict).length;
  const counts = countKinds(found.cells), all = found.cells.length >= changesOf(found);
  const cells = all ? KINDS.filter((kind) => counts[kind]).map((kind) => `${plural(counts[kind], "cell")} ${kind}`) : [`${plural(changesOf(found), "cell")} changed`];
  const words = [...["worse", "better"].filter(rules).map((verdict) => `${plural(rules(verdict), "rule")} ${verdict}`), ...cells, `${found.same.toLocaleString("en")} the same`];
  const notes = [found.note, ...(found.notes ?? [])].filter(Boolean);
  return el("header", { class: "top" }, el("p", { class: "eyebrow" }, "comparison"), el("h1", null, plain(a), " → ", plain(b)),
    el("div", { class: `verdict ${tone}` }, el("p", { class: "word" }, word), el("ul", { class: "reasons" }, el("li", null, words.join(" · ")), ...notes.map((note) => plain(note, "li")))));
}

function verdictOf(found) {
  const has = (verdict) => found.rules.some((rule) => rule.verdict === verdict);
  if (has("worse")) return ["fail", "worse"];
  if (has("better")) return ["pass", "better"];
  if (!found.rules.length && changesOf(found)) return ["unproven", "not comparable"];
  if (has("cannot tell")) return ["unproven", "cannot tell"];
  return changesOf(found) ? ["unproven", "changed"] : ["same", "no difference"];
}

function sides({ a, b }) {
  const names = fileNames([...new Set([a.spec, b.spec].filter(Boolean))]);
  const side = (run, name) => el("li", null, el("p", { class: "eyebrow" }, name), el("p", null, badge(wordOf(run)), " ", el("a", { href: runAddress(run.id), "data-entry": true }, plain(run.id)), " ", el("span", { class: "soft", title: visible(run.spec) }, plain(names.get(run.spec) ?? run.spec ?? ""))),
    el("p", { class: "big" }, number(scoreOf(run)), el("small", null, span(run.low, run.high))), scoreOf(run) == null ? null : smallGauge(scoreOf(run), run.low, run.high),
    el("p", { class: "soft" }, when(run.started), ` · ${took(run.duration_s)}`, run.cost_usd == null ? "" : ` · ${money(run.cost_usd)}`, run.commit ? ` · ${run.commit}` : ""));
  const swap = button("Swap", () => (location.hash = compareAddress(b.id, a.id)), { title: "Swap (c)" });
  return el("ul", { class: "sides" }, side(a, "before"), side(b, "after"), el("li", { class: "swap" }, swap));
}

function rulesOf({ rules }) {
  const told = rules.filter((rule) => rule.verdict !== "same").sort((x, y) => ORDER.indexOf(x.verdict) - ORDER.indexOf(y.verdict));
  if (!rules.length) return null;
  const rows = told.map((rule) => el("tr", null, el("td", null, el("span", { class: `badge ${TONES[rule.verdict] ?? ""}` }, rule.verdict)), el("th", { scope: "row" }, plain(rule.name)), el("td", { class: "number" }, rule.pairs ? `${rule.passed_before} → ${rule.passed_after} of ${rule.pairs}` : ""), el("td", { class: "said" }, plain(rule.outlook)), el("td", { class: "number" }, rule.p == null ? (rule.pairs ? "exact" : "") : `p ${rule.p < 0.001 ? "< 0.001" : rule.p.toFixed(3)}`), el("td", { class: "number" }, rule.holm == null ? "" : `Holm ${rule.holm < 0.001 ? "< 0.001" : rule.holm.toFixed(3)}`)));
  const same = rules.length - told.length;
  return section("Rules", rows.length ? el("table", { class: "parts-table rules-table" }, el("tbody", null, ...rows)) : null, same ? el("p", { class: "judged" }, `${plural(same, "rule")} the same`) : null);
}

const KINDS = ["worse", "better", "changed", "new", "gone"];

function countKinds(cells) {
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0]));
  for (const cell of cells) counts[kindOf(cell)]++;
  return counts;
}

function kindOf({ a, b }) {
  if (!a || !b) return a ? "gone" : "new";
  const step = RANK[b] - RANK[a];
  return step > 0 && RANK[b] >= 2 ? "worse" : step < 0 && RANK[a] >= 2 ? "better" : "changed";
}

// The cells that differ, as a matrix of pairs: what it was, what it is.
class Changes {
  constructor(found, asked) {
    this.found = found;
    this.status = el("p", { class: "status", role: "status" });
    this.nodes = [];
    if (!found.cells.length) return;
    this.rules = [...new Set(found.cells.map((cell) => cell.name))].map((id) => ({ id, severity: "", description: "" }));
    this.columns = [...new Set(found.cells.map((cell) => cell.column))].map((name) => ({ name, faults: "" }));
    this.at = new Map(found.cells.map((cell) => [`${cell.name}\n${cell.column}`, cell]));
    this.readout = el("p", { class: "readout" });
    this.grid = new Grid({ label: "Cells that differ", rules: this.rules, columns: this.columns, face: (r, c) => this.face(r, c), open: (r, c) => this.open(r, c), told: (r, c) => this.tell(r, c) });
    this.chips = KINDS.map((kind) => button("", () => this.pick(kind), { class: "chip", "data-kind": kind }));
    this.nodes = [section("Cells that differ", el("div", { class: "filters" }, el("div", { class: "chips", role: "group", "aria-label": "Kind of change" }, ...this.chips)), this.status, this.grid.node, this.readout)];
    this.read(asked);
  }

  cell(r, c) {
    return this.at.get(`${this.rules[r].id}\n${this.columns[c].name}`);
  }

  face(r, c) {
    const cell = this.cell(r, c);
    if (!cell) return null;
    const kind = kindOf(cell), sign = (outcome) => (outcome ? SIGNS[outcome] : "∅");
    return { tone: `pair ${kind}`, text: `${sign(cell.a)}→${sign(cell.b)}`, label: `${kind}: was ${cell.a ?? "not there"}, is ${cell.b ?? "not there"}`, faint: this.only && this.only !== kind };
  }

  tell(r, c) {
    const cell = this.cell(r, c);
    this.readout.replaceChildren(plain(this.rules[r].id, "b"), " in ", plain(this.columns[c].name, "b"), cell ? ` was ${cell.a ?? "not there"}, is ${cell.b ?? "not there"}` : " is the same");
  }

  open(r, c) {
    const { a, b } = this.found, cell = this.cell(r, c);
    if (!cell) return;
    const side = (word, id, outcome) => {
      const run = `${id}${cell.part ? `/${cell.part}` : ""}`, inMatrix = Boolean(outcome) && cell.rule !== CASES;
      return { word, run, outcome, inMatrix, href: inMatrix ? cellAddress(run, cell.rule, cell.column) : runAddress(run) };
    };
    openPair(kindOf(cell), cell.rule, cell.column, [side("Before:", a.id, cell.a), side("After:", b.id, cell.b)]);
  }

  pick(kind) {
    this.only = this.only === kind ? "" : kind;
    ask({ only: this.only });
    this.draw();
  }

  read(asked) {
    this.only = asked.get("only") ?? "";
    if (this.grid) this.draw();
  }

  draw() {
    const counts = countKinds(this.found.cells), rules = new Set(), columns = new Set();
    for (const cell of this.found.cells) {
      if (this.only && kindOf(cell) !== this.only) continue;
      rules.add(cell.name);
      columns.add(cell.column);
    }
    for (const chip of this.chips) {
      const kind = chip.dataset.kind;
      chip.replaceChildren(`${kind} `, el("b", null, String(counts[kind])));
      chip.hidden = !counts[kind] && this.only !== kind;
      chip.setAttribute("aria-pressed", String(this.only === kind));
    }
    const { found } = this, shown = this.only ? counts[this.only] : found.cells.length;
    this.status.textContent = `${shown.toLocaleString("en")} of ${plural(changesOf(found), "cell")} that differ${found.cells.length < changesOf(found) ? `; the first ${found.cells.length} are here` : ""}`;
    const kept = (list, set, name) => list.map((_, n) => n).filter((n) => set.has(list[n][name]));
    this.grid.show(kept(this.rules, rules, "id"), kept(this.columns, columns, "name"));
  }

  close() {
    this.grid?.close();
  }
}
