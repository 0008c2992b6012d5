// Which cells of the matrix are shown. What is asked for stands in the address.
import { ask } from "./address.js";
import { button, el, visible } from "./dom.js";
import { OUTCOMES, SIGNS, toneOf } from "./words.js";

const SEVERITIES = ["critical", "high", "medium", "low"], TYPING_MS = 120;

export class Filters {
  constructor(cells, onChange) {
    this.cells = cells;
    this.onChange = onChange;
    this.causes = [];
    this.node = el("form", { class: "filters" });
    this.node.addEventListener("submit", (event) => event.preventDefault());
    this.make();
  }

  make() {
    this.chips = OUTCOMES.map((word) => button("", () => this.toggle(word), { class: "chip", "data-outcome": word }));
    this.severity = this.select("severity", "any", SEVERITIES.filter((word) => this.cells.rules.some((rule) => rule.severity === word)));
    this.scenario = this.select("scenario", "all", [...new Set(this.cells.columns.map((column) => column.scenario))]);
    this.text = el("input", { type: "search", id: "cells-text", placeholder: "rule, scenario, reason", autocomplete: "off", spellcheck: "false" });
    let waiting = 0;
    this.text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.change({ text: this.text.value }), TYPING_MS);
    });
    this.clear = button("Clear", () => this.change({ outcome: new Set(), severity: "", scenario: "", text: "", cause: "" }), { id: "clear" });
    const label = (word, field, extra) => el("label", extra, el("span", null, word), field);
    this.node.append(el("div", { class: "chips", role: "group", "aria-label": "Outcome" }, ...this.chips),
      label("Severity", this.severity), label("Scenario", this.scenario), label("Text", this.text, { class: "grow" }), this.clear);
  }

  select(name, none, words) {
    const field = el("select", null, el("option", { value: "" }, none), ...words.map((word) => el("option", { value: word }, visible(word))));
    field.addEventListener("change", () => this.change({ [name]: field.value }));
    return field;
  }

  read(asked) {
    this.state = Object.fromEntries(["severity", "scenario", "text", "cause"].map((name) => [name, asked.get(name) ?? ""]));
    this.state.outcome = new Set((asked.get("outcome") ?? "").split(",").filter((word) => OUTCOMES.includes(word)));
    this.apply();
  }

  toggle(word) {
    const outcome = new Set(this.state.outcome);
    if (!outcome.delete(word)) outcome.add(word);
    this.change({ outcome });
  }

  change(changes) {
    Object.assign(this.state, changes);
    const { outcome, severity, scenario, text, cause } = this.state;
    ask({ outcome: [...outcome].join(","), severity, scenario, text, cause });
    this.apply();
  }

  get on() {
    const { outcome, severity, scenario, text, cause } = this.state;
    return Boolean(outcome.size || severity || scenario || text.trim() || cause);
  }

  apply() {
    this.showCounts();
    for (const name of ["severity", "scenario"]) this[name].value = this.state[name];
    if (this.text.value.trim() !== this.state.text.trim()) this.text.value = this.state.text;
    this.clear.hidden = !this.on;
    const matches = this.on ? this.matches() : null, { cells } = this;
    const rules = new Uint8Array(cells.rules.length), columns = new Uint8Array(cells.columns.length);
    let count = 0;
    for (let i = 0; i < cells.count; i++) {
      if (matches && !matches[i]) continue;
      count++;
      rules[cells.rows.rule[i]] = columns[cells.rows.column[i]] = 1;
    }
    const seen = (list, kept) => list.map((_, n) => n).filter((n) => !matches || kept[n]);
    this.onChange(seen(cells.rules, rules), seen(cells.columns, columns), matches, matches ? count : null);
  }

  showCounts() {
    const counts = this.cells.counts();
    for (const chip of this.chips) {
      const word = chip.dataset.outcome;
      chip.replaceChildren(el("span", { class: `sign ${toneOf(word)}`, "aria-hidden": "true" }, SIGNS[word]), ` ${word} `, el("b", null, String(counts[word])));
      chip.disabled = !counts[word] && !this.state.outcome.has(word);
      chip.setAttribute("aria-pressed", String(this.state.outcome.has(word)));
    }
  }

  matches() {
    const { cells, state } = this, { rows } = cells, text = state.text.trim().toLowerCase();
    const has = (...words) => words.some((word) => (word ?? "").toLowerCase().includes(text));
    const strings = text && cells.strings.map((one) => has(one));
    const rules = text && cells.rules.map((rule) => has(rule.id, rule.check, rule.description));
    const columns = text && cells.columns.map((column) => has(column.name, column.faults));
    const ofCause = state.cause && new Set((this.causes[state.cause - 1]?.places ?? []).map(([rule, column]) => cells.at(rule, column)));
    const found = new Uint8Array(cells.count);
    for (let i = 0; i < cells.count; i++) {
      const rule = rows.rule[i], column = rows.column[i];
      if (ofCause && !ofCause.has(i)) continue;
      if (state.outcome.size && !state.outcome.has(cells.outcome(i))) continue;
      if (state.severity && cells.rules[rule].severity !== state.severity) continue;
      if (state.scenario && cells.columns[column].scenario !== state.scenario) continue;
      found[i] = !text || rules[rule] || columns[column] || strings[rows.reason[i]] ? 1 : 0;
    }
    return found;
  }
}
