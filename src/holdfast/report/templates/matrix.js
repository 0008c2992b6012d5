// The matrix: a grid with sticky heads. Rows are shells until they come near the screen.
const scroller = document.getElementById("matrix");
const compact = columns.length > 8;
const COLORS = OUTCOMES.map((word) => word.replace("/", ""));
const place = { row: 0, column: 0 };
let shownRules = [], shownColumns = [], rowShells = [], nearby = null;

function drawMatrix(ruleList, columnList, matches) {
  [shownRules, shownColumns] = [ruleList, columnList];
  nearby?.disconnect();
  nearby = new IntersectionObserver((entries) => entries.forEach((e) => e.isIntersecting && fillRow(e.target)), {
    root: scroller, rootMargin: "600px 0px",
  });
  const grid = el("div", {
    role: "grid", class: compact ? "grid compact" : "grid", "aria-label": "Rules by scenarios",
    "aria-rowcount": ruleList.length + 1, "aria-colcount": columnList.length + 1,
  });
  grid.style.setProperty("--columns", columnList.length);
  grid.append(headRow());
  rowShells = ruleList.map((rule, n) => rowShell(rule, n, matches));
  grid.append(...rowShells);
  scroller.replaceChildren(grid);
  labelHeads(grid);
  rowShells.slice(0, 40).forEach(fillRow);
  rowShells.forEach((row) => nearby.observe(row));
  place.row = Math.min(place.row, Math.max(0, ruleList.length - 1));
  place.column = Math.min(place.column, Math.max(0, columnList.length - 1));
  cellNode(place.row, place.column)?.setAttribute("tabindex", "0");
}

function labelHeads(grid) {
  const heads = [...grid.querySelectorAll(".head > span")], names = rowShells.map((row) => row.firstChild);
  if (heads.length) putLabels(heads, shownColumns.map(columnName), compact ? heads[0].parentNode.clientHeight - 8 : 2 * (heads[0].parentNode.clientWidth - 16));
  if (!names.length) return;
  const aside = compact ? Math.max(...names.slice(0, 40).map((name) => name.lastChild.offsetWidth)) + 10 : 0;
  putLabels(names.map((name) => name.firstChild), shownRules.map((rule) => rules[rule][0]), names[0].clientWidth - 18 - aside);
}

function headRow() {
  const corner = el("div", { role: "columnheader", class: "corner" }, "rule");
  const heads = shownColumns.map((n) => {
    const [scenario, params, faults] = columns[n];
    const head = el("div", { role: "columnheader", class: "head", title: faults ? `${columnName(n)}: ${faults}` : columnName(n) });
    head.append(el("span", null, plain(scenario), params ? el("small", null, plain(params)) : null));
    return head;
  });
  return el("div", { role: "row", class: "row heads" }, corner, ...heads);
}

function rowShell(rule, n, matches) {
  const [id, severity, check, description] = rules[rule];
  const name = el("div", { role: "rowheader", class: "name", title: description ? `${id}: ${description}` : id });
  name.append(plain(id, "span"), el("small", { class: severity }, severity));
  const row = el("div", { role: "row", class: "row", "aria-rowindex": n + 2 }, name);
  row.pending = { rule, n, matches };
  return row;
}

function fillRow(row) {
  if (!row.pending) return;
  const { rule, n, matches } = row.pending;
  row.pending = null;
  nearby.unobserve(row);
  row.append(...shownColumns.map((column, at) => cellFace(cellAt[rule * columns.length + column], n, at, matches)));
}

function cellFace(cell, row, column, matches) {
  if (cell < 0) return el("div", { role: "gridcell", class: "cell none" });
  const outcome = cells.outcome[cell], tally = strings[cells.tally[cell]], flags = strings[cells.flags[cell]];
  const face = document.createElement("div");
  face.className = `cell ${COLORS[outcome]}${matches && !matches[cell] ? " faint" : ""}${flags ? " flagged" : ""}`;
  face.setAttribute("role", "gridcell");
  face.tabIndex = -1;
  face.setAttribute("aria-label", [OUTCOMES[outcome], tally, flags, `${ruleName(cell)} in ${columnName(cells.column[cell])}`].filter(Boolean).join(", "));
  face.dataset.cell = cell;
  face.dataset.row = row;
  face.dataset.column = column;
  face.textContent = tally && !compact ? `${SIGNS[outcome]} ${tally}` : SIGNS[outcome];
  if (flags && !compact) face.append(el("small", null, flags));
  return face;
}

function cellNode(row, column) {
  const shell = rowShells[row];
  if (!shell) return null;
  fillRow(shell);
  return shell.children[column + 1] ?? null;
}

function focusCell(row, column) {
  cellNode(place.row, place.column)?.setAttribute("tabindex", "-1");
  place.row = Math.max(0, Math.min(row, shownRules.length - 1));
  place.column = Math.max(0, Math.min(column, shownColumns.length - 1));
  const node = cellNode(place.row, place.column);
  node?.setAttribute("tabindex", "0");
  node?.focus({ preventScroll: true });
  node?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function moveBy(event) {
  const { row, column } = place, end = shownColumns.length - 1, whole = event.ctrlKey || event.metaKey;
  const to = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: [whole ? 0 : row, 0], End: [whole ? shownRules.length - 1 : row, end], PageUp: [row - 10, column], PageDown: [row + 10, column],
  }[event.key];
  if (!to) return false;
  focusCell(...to);
  return true;
}

scroller.addEventListener("keydown", (event) => {
  const cell = event.target.dataset.cell;
  if (cell !== undefined && (event.key === "Enter" || event.key === " ")) openCell(Number(cell));
  else if (cell === undefined || !moveBy(event)) return;
  event.preventDefault();
});
scroller.addEventListener("click", (event) => {
  const face = event.target.closest("[data-cell]");
  if (!face) return;
  focusCell(Number(face.dataset.row), Number(face.dataset.column));
  openCell(Number(face.dataset.cell));
});
let drawnAt = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === drawnAt) return;
  drawnAt = innerWidth;
  applyFilters();
});
addEventListener("beforeprint", () => rowShells.forEach(fillRow));
