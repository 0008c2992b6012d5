// A matrix of any size: heads stay, and only the cells near the screen are in the page.
import { el, plain, visible } from "./dom.js";
import { tellable } from "./names.js";

const WIDE = 8, BEYOND_ROWS = 6, BEYOND_COLUMNS = 4, SHORTEST = 8;
let grids = 0;

export class Grid {
  // `face(rule, column)` gives {tone, text, small, label, faint, flagged} of a cell, or null; `open(rule, column)` opens it.
  constructor({ label, rules, columns, face, open, told }) {
    Object.assign(this, { rules, columns, face, open, told });
    this.id = `grid${++grids}`;
    this.shownRules = rules.map((_, n) => n);
    this.shownColumns = columns.map((_, n) => n);
    this.at = { row: 0, column: 0 };
    this.rows = new Map();
    this.opened = "";
    this.heads = el("div", { role: "row", class: "mrow heads", "aria-rowindex": "1" });
    this.body = el("div", { class: "mbody", role: "rowgroup" });
    this.node = el("div", { class: "scroller matrix", role: "grid", tabindex: "0", "aria-label": label }, this.heads, this.body);
    this.node.addEventListener("scroll", () => this.soon(), { passive: true });
    this.node.addEventListener("keydown", (event) => this.keyed(event));
    this.node.addEventListener("click", (event) => this.clicked(event));
    this.node.addEventListener("pointerover", (event) => this.hovered(event));
    this.watch = new ResizeObserver(() => this.changed());
    this.watch.observe(this.node);
    // A printed page does not scroll: it has all rows and columns.
    this.print = ({ type }) => {
      this.printing = type === "beforeprint";
      this.stale = true;
      this.draw();
    };
    for (const type of ["beforeprint", "afterprint"]) addEventListener(type, this.print);
  }

  close() {
    this.watch.disconnect();
    for (const type of ["beforeprint", "afterprint"]) removeEventListener(type, this.print);
  }

  show(rules, columns) {
    [this.shownRules, this.shownColumns] = [rules, columns];
    this.at.row = Math.max(0, Math.min(this.at.row, rules.length - 1));
    this.at.column = Math.max(0, Math.min(this.at.column, columns.length - 1));
    this.changed();
  }

  // Something other than the place on the screen changed: all that is shown is made anew, once a frame.
  changed() {
    this.stale = true;
    this.soon();
  }

  soon() {
    this.due ??= requestAnimationFrame(() => {
      this.due = null;
      this.draw();
    });
  }

  measure() {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize), room = this.node.clientWidth, phone = innerWidth <= 736;
    this.compact = this.columns.length > WIDE;
    this.name = rem * (phone ? 9.5 : Math.max(9, Math.min(this.compact ? 17 : 19, (0.24 * innerWidth) / rem)));
    this.height = rem * (this.printing ? 1.75 : this.compact ? (phone ? 2.75 : 2.125) : phone ? 3 : 2.75);
    const least = rem * (this.printing && this.compact ? 1.25 : this.compact ? (phone ? 2.75 : 2.25) : phone ? 6 : 7.25);
    this.width = this.compact ? least : Math.max(least, (room - this.name - 1) / Math.max(1, this.shownColumns.length));
    this.node.classList.toggle("compact", this.compact);
    const style = this.node.style;
    style.setProperty("--name", `${this.name}px`);
    style.setProperty("--cell", `${this.width}px`);
    style.setProperty("--row", `${this.height}px`);
    style.setProperty("--whole", `${this.name + this.width * this.shownColumns.length}px`);
    this.body.style.setProperty("height", `${this.height * this.shownRules.length}px`);
    this.node.setAttribute("aria-rowcount", this.shownRules.length + 1);
    this.node.setAttribute("aria-colcount", this.shownColumns.length + 1);
    this.columnRoom = this.compact ? 26 : Math.floor((3 * this.width) / (rem * 0.5));
    this.ruleRoom = Math.floor(this.name / (rem * 0.45)) - (this.compact ? 8 : 0);
    this.shorten();
  }

  shorten() {
    this.columnNames = tellable(this.columns.map((column) => column.name), this.columnRoom);
    this.ruleNames = tellable(this.rules.map((rule) => rule.id), this.ruleRoom);
  }

  relabel() {
    this.shorten();
    this.heads.querySelectorAll(".head > span").forEach((span, i) => span.replaceChildren(plain(this.columnNames[this.shownColumns[this.c0 + i]])));
    for (const [row, node] of this.rows) {
      const name = node.querySelector(".name > span");
      name.replaceWith(plain(this.ruleNames[this.shownRules[row]], "span"));
    }
  }

  // A name that its place cuts off may lose what tells it from others: then all are made shorter.
  fits() {
    const cut = (span) => span.scrollHeight > span.clientHeight + 1 || span.scrollWidth > span.clientWidth + 1;
    const heads = [...this.heads.querySelectorAll(".head > span")].some(cut), names = [...this.body.querySelectorAll(".name > span")].some(cut);
    if (heads && this.columnRoom > SHORTEST) this.columnRoom -= 2;
    if (names && this.ruleRoom > SHORTEST) this.ruleRoom -= 2;
    return !((heads && this.columnRoom > SHORTEST) || (names && this.ruleRoom > SHORTEST));
  }

  window() {
    if (this.printing) return [0, this.shownRules.length, 0, this.shownColumns.length];
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.node, step = BEYOND_COLUMNS;
    const r0 = Math.max(0, Math.floor(scrollTop / this.height) - BEYOND_ROWS);
    const r1 = Math.min(this.shownRules.length, Math.ceil((scrollTop + clientHeight) / this.height) + BEYOND_ROWS);
    const c0 = Math.max(0, Math.floor(scrollLeft / this.width / step) * step - step);
    const c1 = Math.min(this.shownColumns.length, Math.ceil((scrollLeft + clientWidth) / this.width / step) * step + step);
    return [r0, r1, c0, c1];
  }

  draw() {
    if (!this.node.isConnected) return;
    const fresh = this.stale;
    if (fresh) this.measure();
    this.fill();
    while (fresh && !this.fits()) this.relabel();
    this.here();
  }

  fill() {
    const [r0, r1, c0, c1] = this.window();
    if (this.stale || c0 !== this.c0 || c1 !== this.c1) {
      [this.c0, this.c1] = [c0, c1];
      this.node.style.setProperty("--before", `${c0 * this.width}px`);
      this.node.style.setProperty("--shown", c1 - c0);
      this.heads.replaceChildren(...this.headCells());
      this.rows.clear();
      this.body.replaceChildren();
      this.stale = false;
    }
    for (const [row, node] of this.rows) {
      if (row >= r0 && row < r1) continue;
      node.remove();
      this.rows.delete(row);
    }
    for (let row = r0; row < r1; row++) if (!this.rows.has(row)) this.rows.set(row, this.body.appendChild(this.row(row)));
  }

  headCells() {
    const shown = this.shownColumns.slice(this.c0, this.c1).map((n, i) => {
      const { name, faults } = this.columns[n];
      return el("div", { role: "columnheader", class: "head", "aria-colindex": this.c0 + i + 2, title: visible(faults ? `${name}: ${faults}` : name), "aria-label": visible(name) }, el("span", null, plain(this.columnNames[n])));
    });
    return [el("div", { role: "columnheader", class: "corner", "aria-colindex": "1" }, "rule"), el("div", { role: "presentation" }), ...shown];
  }

  row(row) {
    const rule = this.shownRules[row], { id, severity, description } = this.rules[rule];
    const name = el("div", { role: "rowheader", class: "name", title: visible(description ? `${id}: ${description}` : id), "aria-colindex": "1", "aria-label": visible([id, severity].filter(Boolean).join(", ")) }, plain(this.ruleNames[rule], "span"), severity ? el("small", { class: severity }, severity) : null);
    const made = el("div", { role: "row", class: "mrow", "aria-rowindex": row + 2 }, name, el("div", { role: "presentation" }));
    made.style.setProperty("top", `${row * this.height}px`);
    for (let i = this.c0; i < this.c1; i++) made.append(this.cell(rule, this.shownColumns[i], row, i));
    return made;
  }

  cell(rule, column, row, i) {
    const face = this.face(rule, column), node = document.createElement("div");
    node.setAttribute("role", "gridcell");
    node.setAttribute("aria-colindex", i + 2);
    node.id = `${this.id}-${row}-${i}`;
    node.dataset.place = `${row},${i}`;
    if (!face) {
      node.className = "cell none";
      return node;
    }
    node.className = `cell ${face.tone}${face.faint ? " faint" : ""}${face.flagged ? " flagged" : ""}${this.opened === `${rule},${column}` ? " open" : ""}`;
    node.setAttribute("aria-label", `${face.label}, ${this.rules[rule].id} in ${this.columns[column].name}`);
    node.textContent = this.compact ? face.text : [face.text, face.tally && visible(face.tally)].filter(Boolean).join(" ");
    if (face.small && !this.compact) node.append(el("small", null, plain(face.small)));
    return node;
  }

  here() {
    this.node.querySelector(".cell.here")?.classList.remove("here");
    const cell = document.getElementById(`${this.id}-${this.at.row}-${this.at.column}`);
    cell?.classList.add("here");
    if (cell) this.node.setAttribute("aria-activedescendant", cell.id);
    else this.node.removeAttribute("aria-activedescendant");
  }

  goTo(row, column) {
    this.at.row = Math.max(0, Math.min(row, this.shownRules.length - 1));
    this.at.column = Math.max(0, Math.min(column, this.shownColumns.length - 1));
    const { node, at } = this, top = at.row * this.height, left = at.column * this.width, head = this.heads.offsetHeight;
    if (top < node.scrollTop) node.scrollTop = top;
    else if (top + this.height > node.scrollTop + node.clientHeight - head) node.scrollTop = top + this.height - node.clientHeight + head;
    if (left < node.scrollLeft) node.scrollLeft = left;
    else if (left + this.width > node.scrollLeft + node.clientWidth - this.name) node.scrollLeft = left + this.width - node.clientWidth + this.name;
    this.draw();
    this.tell(at.row, at.column);
  }

  tell(row, column) {
    this.told?.(this.shownRules[row], this.shownColumns[column]);
  }

  keyed(event) {
    const { row, column } = this.at, end = this.shownColumns.length - 1, whole = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" || event.key === " ") this.openAt(row, column);
    else {
      const to = {
        ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], k: [row - 1, column], j: [row + 1, column],
        Home: [whole ? 0 : row, 0], End: [whole ? this.shownRules.length - 1 : row, end], PageUp: [row - 10, column], PageDown: [row + 10, column],
      }[event.key];
      if (!to) return;
      this.goTo(...to);
    }
    event.preventDefault();
  }

  openAt(row, column) {
    const rule = this.shownRules[row], at = this.shownColumns[column];
    if (rule !== undefined && at !== undefined && this.face(rule, at)) this.open(rule, at);
  }

  clicked(event) {
    const place = event.target.closest("[data-place]")?.dataset.place.split(",").map(Number);
    if (!place) return;
    this.goTo(...place);
    this.node.focus({ preventScroll: true });
    this.openAt(...place);
  }

  hovered(event) {
    const place = event.target.closest?.("[data-place]")?.dataset.place.split(",").map(Number);
    if (place) this.tell(...place);
  }

  markOpen(rule, column) {
    this.opened = rule === undefined ? "" : `${rule},${column}`;
    this.changed();
  }
}
