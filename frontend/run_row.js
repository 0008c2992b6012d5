// One run in the list.
import { runAddress } from "./address.js";
import { el, plain, svg, visible } from "./dom.js";
import { markSign } from "./notes.js";
import { OUTCOMES, SIGNS, badge, money, number, scoreOf, span, toneOf, took, when, wordOf } from "./words.js";

export function runRow(run, names, picked) {
  const item = el("li", { class: "run-row" });
  patchRow(item, run, names, picked);
  return item;
}

// Makes the row anew, and gives the focus back to what had it.
export function patchRow(item, run, names, picked) {
  const focused = item.contains(document.activeElement) ? document.activeElement.tagName : "";
  item.className = `run-row ${toneOf(wordOf(run))}`;
  item.dataset.run = run.id;
  const label = `${run.id}, ${wordOf(run)}${scoreOf(run) == null ? "" : `, ${number(scoreOf(run))}`}`;
  const pick = el("input", { type: "checkbox", "aria-label": `Select ${run.id} to compare` });
  pick.checked = picked.includes(run.id);
  item.replaceChildren(
    el("label", { class: "pick", title: "Select two runs to compare (x)" }, pick),
    el("span", { class: "verdict-word" }, badge(wordOf(run))),
    el("span", { class: "what" }, el("a", { href: runAddress(run.id), "aria-label": label, title: visible(run.spec), "data-entry": true }, el("b", null, plain(run.id)), " ", plain(names.get(run.spec) ?? run.spec ?? "")), el("small", { title: run.state === "unreadable" ? visible(run.note) : null }, ...below(run))),
    el("span", { class: "scored" }, ...scored(run)),
    el("span", { class: "counted-cells" }, ...counted(run)),
    el("span", { class: "cost" }, run.cost_usd == null ? "" : money(run.cost_usd)),
    el("span", { class: "took" }, run.duration_s ? took(run.duration_s) : ""),
    el("span", { class: "when" }, when(run.started)),
    el("span", { class: "marked" }, markSign(run.mark), run.has_note ? el("span", { role: "img", "aria-label": "has a note", title: "has a note" }, "✎") : null));
  if (focused) item.querySelector(focused.toLowerCase() === "input" ? "input" : "a").focus({ preventScroll: true });
}

function below(run) {
  if (run.state === "unreadable") return [plain(run.note || "cannot be read")];
  if (run.parts?.length) return run.parts.flatMap((part) => [el("span", { class: `part ${toneOf(wordOf(part))}` }, el("span", { "aria-hidden": "true" }, SIGNS[toneOf(wordOf(part))] ?? "·"), " ", plain(part.part), el("span", { class: "offscreen" }, ` ${wordOf(part)}`)), " "]);
  const words = [run.part, run.partial && "partial", run.branch, run.commit].filter(Boolean);
  return [plain(words.join(" · "))];
}

function scored(run) {
  const value = scoreOf(run);
  if (value == null) return [];
  return [el("b", null, number(value)), el("small", null, span(run.low, run.high)), smallGauge(value, run.low, run.high)];
}

// The score and its interval on a line from 0 to 100.
export function smallGauge(value, low, high) {
  const band = low == null || high == null ? null : svg("rect", { class: "band", x: `${low}%`, width: `${Math.max(1, high - low)}%`, y: 2, height: 6, rx: 2 });
  return svg("svg", { class: "small-gauge", width: "100%", height: 10, "aria-hidden": "true" },
    svg("rect", { class: "track", x: 0, y: 4, width: "100%", height: 2, rx: 1 }), band,
    svg("line", { class: "here", x1: `${value}%`, x2: `${value}%`, y1: 0, y2: 10 }));
}

function counted(run) {
  const counts = run.counts ?? {}, all = OUTCOMES.reduce((sum, word) => sum + (counts[word] ?? 0), 0);
  if (!all) return run.cases ? [el("span", null, `${run.cases_passed} of ${run.cases} cases`)] : [];
  const bar = svg("svg", { class: "stack", width: "100%", height: 6, "aria-hidden": "true" });
  let at = 0;
  for (const word of ["fail", "error", "unproven", "pass", "n/a"]) {
    const share = (100 * (counts[word] ?? 0)) / all;
    if (share) bar.append(svg("rect", { class: toneOf(word), x: `${at}%`, width: `${share}%`, y: 0, height: 6 }));
    at += share;
  }
  const told = ["fail", "error", "unproven", "pass"].filter((word) => counts[word]).slice(0, 2).map((word) => `${counts[word]} ${word}`);
  return [el("span", null, told.join(", ") || `${all} n/a`), bar];
}
