// The panel: one cell, why it is what it is, and its trials.
const panel = document.getElementById("panel");
let opener = null;

const cellKey = (cell) => `${ruleName(cell)}|${columnName(cells.column[cell])}`;

function cellOfKey(key) {
  for (let i = 0; i < cellCount; i++) if (cellKey(i) === key) return i;
  return -1;
}

function openCell(cell) {
  if (!panel.contains(document.activeElement)) opener = document.activeElement;
  state.cell = cellKey(cell);
  writeAddress();
  panel.replaceChildren(panelHead(cell), panelFacts(cell), ...panelTrials(cell));
  panel.hidden = false;
  document.body.classList.add("panel-open");
  panel.scrollTop = 0;
  markOpen(cell);
  panel.querySelector("h2").focus({ preventScroll: true });
}

function closePanel() {
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove("panel-open");
  state.cell = "";
  writeAddress();
  markOpen(-1);
  (opener?.isConnected ? opener : cellNode(place.row, place.column))?.focus();
}

function markOpen(cell) {
  scroller.querySelectorAll(".cell.open").forEach((node) => node.classList.remove("open"));
  scroller.querySelector(`[data-cell="${cell}"]`)?.classList.add("open");
}

function panelHead(cell) {
  const title = el("h2", { id: "panel-title", tabindex: "-1" }, plain(ruleName(cell)), el("small", null, "in ", plain(columnName(cells.column[cell]))));
  const buttons = el("div", { class: "buttons" },
    el("button", { type: "button", onclick: () => step(cell, -1), "aria-label": "Previous cell that did not hold" }, "‹ Prev"),
    el("button", { type: "button", onclick: () => step(cell, 1), "aria-label": "Next cell that did not hold" }, "Next ›"),
    el("button", { type: "button", class: "close", onclick: closePanel, "aria-label": "Close" }, "Close"));
  return el("header", null, el("div", { class: "bar" }, badge(cells.outcome[cell]), buttons), title);
}

// From one cell that did not hold to the next, round and round.
function step(cell, by) {
  for (let n = 1; n <= cellCount; n++) {
    const next = (((cell + by * n) % cellCount) + cellCount) % cellCount;
    const outcome = cells.outcome[next];
    if (outcome !== PASS && outcome !== NOT_APPLICABLE) return openCell(next);
  }
}

function fact(name, ...value) {
  return el("div", null, el("dt", null, plain(name)), el("dd", null, ...value));
}

function panelFacts(cell) {
  const [, severity, check, description, where] = rules[cells.rule[cell]];
  const [, , faults] = columns[cells.column[cell]];
  const reason = strings[cells.reason[cell]], next = strings[cells.next[cell]], flags = strings[cells.flags[cell]];
  const low = cells.low[cell], tally = strings[cells.tally[cell]];
  return el("dl", { class: "facts" },
    description ? fact("rule", plain(description)) : null,
    reason ? fact("because", plain(reason)) : null,
    next ? fact("next", plain(next)) : null,
    flags ? fact("note", el("b", null, flags)) : null,
    cells.outcome[cell] === NOT_APPLICABLE ? fact("because", "its `when` is not met in this scenario") : null,
    fact("faults", faults ? plain(faults) : "none: calm"),
    fact("check", [check, severity, `weight ${cells.weight[cell]}`].filter(Boolean).join(" · ")),
    low >= 0 ? fact("pass rate", `${tally ? `${tally}, ` : ""}95 %: ${Math.round(low * 100)}–${Math.round(cells.high[cell] * 100)} %`) : null,
    fact("at", el("code", null, plain(where))));
}

function panelTrials(cell) {
  const [from, to] = trialsOf(cell);
  const ids = Array.from({ length: to - from }, (_, n) => from + n);
  // The trial that tells most is open; the others wait to be asked for.
  const same = ids.filter((t) => trials.outcome[t] === cells.outcome[cell]);
  const first = same.find((t) => !data.more[t]?.aside) ?? same[0] ?? from;
  if (!ids.length) return [];
  return [el("h3", null, ids.length === 1 ? "1 trial" : `${ids.length} trials`), ...ids.map((t) => trialView(t, t === first))];
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closePanel();
});
