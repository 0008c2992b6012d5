// The panel beside a matrix: one cell, why it is what it is, and its trials.
import { get } from "./api.js";
import { runPath, trialAddress, trialPath } from "./address.js";
import { button, command, el, facts, passage, plain } from "./dom.js";
import { badge, milliseconds, plural } from "./words.js";

const panel = document.getElementById("panel"), OPEN_TRIALS = 1;
let opener = null, onClose = null;

export const panelOpen = () => !panel.hidden;

export function closePanel({ leaving = false } = {}) {
  if (panel.hidden) return;
  panel.hidden = true;
  panel.replaceChildren();
  document.body.classList.remove("panel-open");
  const closed = onClose;
  onClose = null;
  if (leaving) return;
  closed?.();
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

const cellOf = (run, rule, column) => get(`${runPath(run)}/cell?${new URLSearchParams({ rule, column })}`);

// Opens the panel; whoever waits for an answer compares what this gives with `panel.asked`.
function show(closed, ...content) {
  if (!panel.contains(document.activeElement)) opener = document.activeElement;
  onClose = closed;
  panel.replaceChildren(...content);
  panel.hidden = false;
  document.body.classList.add("panel-open");
  panel.scrollTop = 0;
  panel.querySelector("h2").focus({ preventScroll: true });
  return (panel.asked = {});
}

// Shows a cell as it is in two runs: what each answered, and the way to it in both.
export function openPair(kind, rule, column, sides) {
  show(null, head({ outcome: kind }, rule, column, null), ...sides.map(({ word, run, outcome, href, inMatrix }) => {
    const told = el("div", null);
    if (inMatrix) cellOf(run, rule, column).then(({ trials }) => told.append(...answered(trials, outcome)), (problem) => told.append(plain(problem.message, "p")));
    return el("section", { class: "trial" }, el("h3", null, `${word} `, outcome ? badge(outcome) : "not there"), told, outcome ? el("p", null, el("a", { class: "button", href }, "Open it in ", plain(run))) : null);
  }));
}

function answered(trials, outcome) {
  const trial = trials.find((one) => one.outcome === outcome) ?? trials[0];
  return trial ? trialBody(trial).slice(0, 3) : [];
}

// Shows a cell of a run; `step(by)` goes to the next that did not hold.
export async function openCell(run, rule, column, { step, closed }) {
  const asked = show(closed, head({ outcome: "" }, rule.id, column.name, step));
  let found;
  try {
    found = await cellOf(run, rule.id, column.name);
  } catch (problem) {
    if (panel.asked === asked && !panel.hidden) panel.append(plain(`${problem.message} ${problem.hint ?? ""}`, "p"));
    return;
  }
  if (panel.asked !== asked || panel.hidden) return;
  const { cell, trials } = found, focused = panel.contains(document.activeElement);
  panel.replaceChildren(head(cell, rule.id, column.name, step), about(cell, rule, column), el("h3", null, plural(trials.length + (found.left_out ?? 0), "trial")), ...trials.map((trial, n) => trialOf(run, rule.id, trial, n < OPEN_TRIALS)));
  if (found.left_out) panel.append(el("p", { class: "nothing" }, `and ${found.left_out} more in the run's folder`));
  if (focused) panel.querySelector("h2").focus({ preventScroll: true });
}

function head(cell, rule, column, step) {
  const buttons = el("div", { class: "buttons" },
    step ? button("‹ Prev", () => step(-1), { "aria-label": "Previous failed cell" }) : null,
    step ? button("Next ›", () => step(1), { "aria-label": "Next failed cell" }) : null,
    button("Close", () => closePanel(), { class: "close" }));
  const title = el("h2", { id: "panel-title", tabindex: "-1" }, plain(rule), el("small", null, "in ", plain(column)));
  return el("header", null, el("div", { class: "bar" }, cell.outcome ? badge(cell.outcome) : el("span", null, "…"), buttons), title);
}

function about(cell, rule, column) {
  const rate = cell.low == null ? "" : `, 95 %: ${Math.round(100 * cell.low)}–${Math.round(100 * cell.high)} %`;
  return facts([
    ["rule", rule.description], ["because", cell.reason], ["next", cell.next], ["faults", column.faults],
    ["check", [rule.check, cell.severity ?? rule.severity, cell.weight == null ? "" : `weight ${cell.weight}`].filter(Boolean).join(" · ")],
    ["pass rate", cell.tally ? cell.tally + rate : ""], ["marks", cell.flags], ["at", cell.where || rule.where ? el("code", null, plain(cell.where || rule.where)) : ""],
  ]);
}

function trialOf(run, rule, trial, open) {
  const summary = el("summary", { "data-entry": true }, badge(trial.outcome), el("span", { class: "asked" }, plain(trial.prompt.slice(0, 120))), el("span", { class: "ms" }, milliseconds(trial.latency_ms)));
  const view = el("details", { class: "trial" }, summary);
  const fill = () => {
    if (view.childElementCount > 1) return;
    view.append(...trialBody(trial), el("section", null, el("a", { class: "button", href: trialAddress(run, trial.id) }, "Open trial: calls, files, audit")));
    if (trial.answer && trial.outcome === "fail") markDeciding(run, rule, trial, view.querySelector(".answer .text"));
  };
  view.addEventListener("toggle", () => view.open && fill());
  if (open) {
    fill();
    view.open = true;
  }
  return view;
}

const part = (title, ...content) => el("section", null, el("h4", null, title), ...content);

// The words that decided stand in the trial's own document.
async function markDeciding(run, rule, { id, answer }, block) {
  const seen = await get(trialPath(run, id)).catch(() => null);
  const verdict = seen?.verdicts.find((one) => one.rule === rule), said = seen?.turns[verdict?.turn ?? 0]?.text ?? "";
  const marks = (verdict?.marks ?? []).filter(([start, end]) => said.slice(start, end) === answer.slice(start, end));
  if (marks.length) block.replaceWith(passage(answer, marks));
}

function trialBody(trial) {
  const ending = `${trial.ending}${trial.detail ? `: ${trial.detail}` : ""} after ${milliseconds(trial.latency_ms)}${trial.replica ? ` · replica ${trial.replica + 1}` : ""} · trial ${trial.id}`;
  return [
    part("Asked", passage(trial.prompt)),
    el("section", { class: "answer" }, el("h4", null, "Answered"), trial.answer ? passage(trial.answer) : el("p", { class: "nothing" }, "nothing")),
    part("Because", plain(trial.reason || "no reason was recorded", "p")),
    trial.faults?.length ? part("Faults that fired", el("ul", null, ...trial.faults.map((one) => plain(one, "li")))) : null,
    part("Ending", plain(ending, "p")),
    trial.again ? part("Reproduce", command(trial.again)) : null,
  ].filter(Boolean);
}
