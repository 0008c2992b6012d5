// Rules by scenarios of one run, with filters, and a panel that opens a cell.
import { ask } from "./address.js";
import { Cells } from "./cells.js";
import { el, plain } from "./dom.js";
import { Filters } from "./filters.js";
import { Grid } from "./grid.js";
import { closePanel, openCell } from "./panel.js";
import { plural } from "./words.js";

const HELD = new Set(["pass", "n/a"]);

export class Matrix {
  constructor(run, rules, columns, packed) {
    this.run = run;
    this.cells = new Cells(rules, columns, packed);
    this.matches = null;
    this.status = el("p", { class: "status", role: "status" });
    this.readout = el("p", { class: "readout" });
    this.grid = new Grid({
      label: "Rules by scenarios", rules, columns,
      face: (rule, column) => this.cells.face(rule, column, this.matches),
      open: (rule, column) => this.open(rule, column),
      told: (rule, column) => this.tell(rule, column),
    });
    this.filters = new Filters(this.cells, (shownRules, shownColumns, matches, count) => {
      this.matches = matches;
      const ofCause = this.filters.state.cause ? ", of one cause" : "";
      this.status.textContent = count === null ? plural(this.cells.count, "cell") : `${count.toLocaleString("en")} of ${plural(this.cells.count, "cell")}${ofCause}`;
      this.grid.show(shownRules, shownColumns);
    });
    this.nodes = [this.filters.node, this.status, this.grid.node, this.readout];
  }

  read(asked) {
    this.filters.read(asked);
    const cell = asked.get("cell") ?? "", at = cell.lastIndexOf("|");
    // A rule or a column may hold the line itself: the first split at which both are known is meant.
    for (let n = cell.indexOf("|"); n >= 0 && n <= at; n = cell.indexOf("|", n + 1)) {
      const rule = this.cells.ruleAt.get(cell.slice(0, n)), column = this.cells.columnAt.get(cell.slice(n + 1));
      if (rule !== undefined && column !== undefined) return this.open(rule, column);
    }
    closePanel();
  }

  tell(rule, column) {
    const i = this.cells.at(rule, column), { rules, columns } = this.cells;
    const said = i < 0 ? "not judged" : `${this.cells.outcome(i)}${this.cells.reason(i) ? `: ${this.cells.reason(i)}` : ""}`;
    this.readout.replaceChildren(plain(rules[rule].id, "b"), " in ", plain(columns[column].name, "b"), " ", plain(said));
  }

  open(rule, column) {
    const { rules, columns } = this.cells, row = this.grid.shownRules.indexOf(rule), at = this.grid.shownColumns.indexOf(column);
    if (row >= 0 && at >= 0 && this.grid.height) this.grid.goTo(row, at);
    ask({ cell: `${rules[rule].id}|${columns[column].name}` });
    this.grid.markOpen(rule, column);
    openCell(this.run, rules[rule], columns[column], {
      step: (by) => this.step(rule, column, by),
      closed: () => {
        ask({ cell: "" });
        this.grid.markOpen();
      },
    });
  }

  // The next cell that did not hold, in the order of the rows, of those that are shown.
  step(rule, column, by) {
    const { shownRules, shownColumns } = this.grid, wide = shownColumns.length, all = shownRules.length * wide;
    let place = shownRules.indexOf(rule) * wide + shownColumns.indexOf(column);
    for (let tried = 0; tried < all; tried++) {
      place = (place + by + all) % all;
      const r = shownRules[Math.floor(place / wide)], c = shownColumns[place % wide], i = this.cells.at(r, c);
      if (i >= 0 && !HELD.has(this.cells.outcome(i)) && (!this.matches || this.matches[i])) return this.open(r, c);
    }
  }

  // The cells of a cause can be shown alone once the causes are known.
  showCauses(causes) {
    this.filters.causes = causes;
    if (this.filters.state?.cause) this.filters.apply();
  }

  put(changed) {
    for (const cell of changed) this.cells.put(cell);
    this.filters.apply();
  }

  fill(packed) {
    this.cells.fill(packed);
    this.filters.apply();
  }

  close() {
    this.grid.close();
  }
}
