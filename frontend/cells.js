// The cells of a run: columns of numbers over one table of strings, as the server packs them.
import { OUTCOMES, SIGNS, toneOf } from "./words.js";

export class Cells {
  constructor(rules, columns, packed) {
    Object.assign(this, { rules, columns });
    this.ruleAt = new Map(rules.map((rule, n) => [rule.id, n]));
    this.columnAt = new Map(columns.map((column, n) => [column.name, n]));
    this.fill(packed);
  }

  fill(packed) {
    this.strings = packed.strings;
    this.known = null;
    this.rows = ["rule", "column", "outcome", "tally", "flags", "reason"].reduce((rows, name) => ({ ...rows, [name]: packed[name] }), {});
    this.outcomes = packed.outcomes ?? OUTCOMES;
    this.count = packed.rule.length;
    this.index = new Int32Array(this.rules.length * this.columns.length).fill(-1);
    for (let i = 0; i < this.count; i++) this.index[packed.rule[i] * this.columns.length + packed.column[i]] = i;
  }

  at(rule, column) {
    return this.index[rule * this.columns.length + column];
  }

  // One cell changed in a run that goes on.
  put({ rule, column, outcome, tally, flags, reason }) {
    const r = this.ruleAt.get(rule), c = this.columnAt.get(column), code = this.outcomes.indexOf(outcome);
    if (r === undefined || c === undefined || code < 0) return false;
    let i = this.at(r, c);
    if (i < 0) {
      i = this.count++;
      this.index[r * this.columns.length + c] = i;
      [this.rows.rule[i], this.rows.column[i]] = [r, c];
    }
    this.rows.outcome[i] = code;
    Object.entries({ tally, flags, reason }).forEach(([name, words]) => (this.rows[name][i] = this.text(words ?? "")));
    return true;
  }

  text(words) {
    this.known ??= new Map(this.strings.map((one, n) => [one, n]));
    if (!this.known.has(words)) this.known.set(words, this.strings.push(words) - 1);
    return this.known.get(words);
  }

  outcome(i) {
    return this.outcomes[this.rows.outcome[i]];
  }

  reason(i) {
    return this.strings[this.rows.reason[i]] ?? "";
  }

  face(rule, column, matches) {
    const i = this.at(rule, column);
    if (i < 0) return null;
    const outcome = this.outcome(i), tally = this.strings[this.rows.tally[i]] ?? "", flags = this.strings[this.rows.flags[i]] ?? "";
    return { tone: toneOf(outcome), text: SIGNS[outcome], tally, small: flags, flagged: Boolean(flags), faint: matches ? !matches[i] : false, label: [outcome, tally, flags].filter(Boolean).join(", ") };
  }

  counts() {
    const found = Object.fromEntries(this.outcomes.map((word) => [word, 0]));
    for (let i = 0; i < this.count; i++) found[this.outcome(i)]++;
    return found;
  }
}
