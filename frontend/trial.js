// One trial: what was judged, the conversation, its calls, faults, files, evidence, audit, and how to see it again.
import { get } from "./api.js";
import { cellAddress, runAddress, trialPath } from "./address.js";
import { callTimeline, faultList } from "./calls.js";
import { button, command, el, facts, inlined, passage, plain, section } from "./dom.js";
import { deafen, listen } from "./events.js";
import { fileView, requestView, valueView } from "./evidence.js";
import { loadNotes, noteEditor } from "./notes.js";
import { SIGNS, TOP, badge, milliseconds, money, plural, when } from "./words.js";

const WORST = ["fail", "error", "unproven", "pass", "n/a"], AUDITED = 200, UNDER_WAY = "under way", LOOK_MS = 500;

export async function trial({ run, trial: id }, signal) {
  const [found] = await Promise.all([get(trialPath(run, id), signal), inlined ? null : loadNotes(signal)]);
  const top = el("div", null), middle = el("div", { class: "trial-main" });
  const page = {
    crumbs: [TOP, ...(inlined ? [] : [[run, runAddress(run)]]), [`trial ${id}`, location.hash.split("?")[0]]],
    up: runAddress(run),
    body: [top, el("div", { class: "trial-page" }, middle, el("aside", { class: "trial-side", "aria-label": "This trial" }, ...side(run, found)))],
  };
  const draw = (seen) => {
    const outcome = outcomeOf(seen);
    page.title = `${outcome} ${seen.column ?? seen.scenario}`;
    top.replaceChildren(head(run, seen, outcome));
    const calls = [...middle.querySelectorAll(".call")], open = calls.map((call) => call.open), at = calls.findIndex((call) => call.contains(document.activeElement));
    middle.replaceChildren(...main(run, seen).filter(Boolean));
    middle.querySelectorAll(".call").forEach((call, n) => {
      call.open = open[n] ?? false;
      if (n === at) call.querySelector("summary").focus({ preventScroll: true });
    });
  };
  draw(found);
  if (found.ending === UNDER_WAY) page.ready = () => follow(run, id, signal, draw);
  return page;
}

// A trial that goes on: its calls appear as they are made, until it has ended.
function follow(run, id, signal, draw) {
  let due = null, calls = -1;
  const look = async () => {
    const seen = await get(trialPath(run, id), signal).catch(() => null);
    due = null;
    if (!seen || (seen.ending === UNDER_WAY && seen.trace.length === calls)) return;
    calls = seen.trace.length;
    draw(seen);
    if (seen.ending !== UNDER_WAY) deafen();
  };
  listen(run, () => (due ??= setTimeout(look, LOOK_MS)));
}

function outcomeOf({ outcome, verdicts, ending, forbidden = [] }) {
  if (ending === UNDER_WAY) return "running";
  if (outcome) return outcome;
  const seen = new Set([...verdicts.map((one) => one.outcome), ...forbidden.filter((one) => one.violated).map(() => "fail"), ...(ending === "error" ? ["error"] : [])]);
  return WORST.find((word) => seen.has(word)) ?? "n/a";
}

function head(run, found, outcome) {
  const { column, scenario, ending, detail, turns } = found;
  const latency = turns.reduce((sum, turn) => sum + turn.latency_ms, 0);
  const told = ending === UNDER_WAY ? "The agent is running." : `${ending === "no_answer" ? "no answer" : ending.replace(/_/g, " ")} after ${milliseconds(latency)}${detail ? `: ${detail}` : ""}`;
  const worst = found.verdicts.filter((one) => one.outcome === outcome && outcome !== "pass" && one.reason);
  return el("header", { class: "trial-head" },
    el("p", { class: "eyebrow" }, `${inlined ? "" : `run ${run} · `}trial ${found.id}${found.replica ? ` · replica ${found.replica + 1}` : ""}`),
    el("h1", null, plain(column ?? scenario)),
    el("div", { class: `verdict ${outcome.replace("/", "")}` }, el("p", { class: "word" }, el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[outcome] ?? "▸"), outcome),
      el("ul", { class: "reasons" }, ...worst.slice(0, 3).map((one) => el("li", null, plain(one.rule, "b"), " ", plain(one.reason))), plain(told, "li"))));
}

function side(run, found) {
  const { spent } = found, used = spent ? [spent.calls ? plural(spent.calls, "call") : "", (spent.input_tokens ?? 0) + (spent.output_tokens ?? 0) ? `${(spent.input_tokens ?? 0) + (spent.output_tokens ?? 0)} tokens` : "", spent.cost_usd == null ? "" : `about ${money(spent.cost_usd)}`].filter(Boolean).join(", ") : "";
  const began = found.started ? when(new Date(found.started * 1000).toISOString()) : "";
  return [
    section("Reproduce", found.again ? command(found.again) : null, found.promote ? el("p", { class: "hint" }, "Keep it as a test:") : null, found.promote ? command(found.promote) : null),
    inlined ? null : section("Mark and note", noteEditor(`${run}/trial/${found.id}`)),
    section("About", facts([["scenario", found.scenario], ["params", found.params], ["seed", found.seed == null ? "" : String(found.seed)], ["began", began], ["took", found.duration_ms == null ? "" : milliseconds(found.duration_ms)], ["used", used], ["attempts", found.attempts > 1 ? String(found.attempts) : ""], ["known as", (found.standards ?? []).join("; ")], ["canaries", (found.canaries ?? []).join(", ")], ["simulated", found.simulated ? "faults damaged the answer, not the calls" : ""]])),
  ].filter(Boolean);
}

function main(run, found) {
  const gathered = Object.entries(found.evidence ?? {}).filter(([rule]) => !found.verdicts.some((one) => one.rule === rule));
  return [
    found.verdicts.length || found.forbidden?.length ? section("Judged", judged(run, found)) : null,
    found.turns.length ? section(found.turns.length > 1 ? "Conversation" : "Conversation", conversation(found)) : null,
    found.trace.length ? section("Calls", callTimeline(found.trace, found.faults, found.turns.reduce((sum, turn) => sum + turn.latency_ms, 0), found.trace_left_out)) : section("Calls", el("p", { class: "nothing" }, "The agent made no recorded call.")),
    found.faults.length ? section("Faults that fired", faultList(found.faults)) : null,
    found.files?.length ? section("Files", ...found.files.map(fileView)) : null,
    gathered.length ? section("Recorded", ...gathered.map(([rule, one]) => evidenceOf(rule, one))) : null,
    found.audit?.length ? section("What the agent did", audit(found.audit, found.audit_left_out)) : null,
    found.output ? section("Printed", passage(found.output)) : null,
    found.notes?.length ? section("Notes of the run", el("ul", { class: "judged" }, ...found.notes.map((note) => plain(note, "li")))) : null,
  ];
}

function judged(run, found) {
  const forbidden = (found.forbidden ?? []).filter((one) => one.violated || one.error);
  const order = [...found.verdicts].sort((a, b) => WORST.indexOf(a.outcome) - WORST.indexOf(b.outcome));
  return el("ol", { class: "causes verdict-list" },
    ...forbidden.map((one) => el("li", null, el("details", { class: "cause", open: true }, el("summary", { "data-entry": true }, badge(one.violated ? "fail" : "error"), el("span", { class: "what" }, el("b", null, "forbidden: ", plain(one.rule))), el("span", { class: "why" }, plain(one.error))), el("ul", { class: "judged" }, ...one.details.map((text) => plain(text, "li")))))),
    ...order.map((one, n) => verdictOf(run, found, one, n < 3 && one.outcome !== "pass" && one.outcome !== "n/a")));
}

function verdictOf(run, found, one, open) {
  const summary = el("summary", { "data-entry": true }, badge(one.outcome), el("span", { class: "what" }, el("b", null, plain(one.rule)), one.severity ? el("small", { class: one.severity }, one.severity) : null, one.score != null && one.score > 0 && one.score < 1 ? el("span", { class: "count" }, one.score.toFixed(2)) : null), el("span", { class: "why" }, plain(one.reason)));
  const view = el("details", { class: "cause" }, summary);
  const fill = () => {
    if (view.childElementCount > 1) return;
    const recorded = found.evidence?.[one.rule];
    const details = one.details && Object.keys(one.details).length ? valueView(one.details) : "";
    const cell = found.column ? el("a", { href: cellAddress(run, one.rule, found.column) }, "its cell in the matrix") : "";
    view.append(facts([["rule", one.description], ["evidence", recorded ? "" : details], ["recorded", recorded ? recordedView(recorded) : ""], ["check", one.check], ["at", one.where ? el("code", null, plain(one.where)) : ""], ["see", cell]]));
  };
  view.addEventListener("toggle", () => view.open && fill());
  if (open) {
    fill();
    view.open = true;
  }
  return el("li", null, view);
}

function recordedView(one) {
  if (one.error) return plain(one.error, "p");
  const data = one.data !== undefined ? one.data : one;
  return valueView(data && typeof data === "object" && "found" in data && "of" in data ? data.found : data);
}

const evidenceOf = (rule, one) => el("div", null, el("h3", null, plain(rule)), recordedView(one));

// The words that decided are marked: of the first verdict that says which.
function conversation({ turns, verdicts }) {
  const deciding = [...verdicts].sort((a, b) => WORST.indexOf(a.outcome) - WORST.indexOf(b.outcome)).find((one) => one.marks?.length);
  return el("div", { class: "conversation" }, ...turns.flatMap((turn, n) => {
    const marks = deciding && (deciding.turn ?? 0) === n ? deciding.marks : [];
    const badly = turn.ending && turn.ending !== "answered" ? ` · ${turn.ending.replace(/_/g, " ")}${turn.detail ? `: ${turn.detail}` : ""}` : "";
    const number = turns.length > 1 ? ` ${n + 1}` : "";
    return [
      el("div", { class: "said asked-side" }, el("h3", null, `Asked${number}`), passage(turn.asked)),
      el("div", { class: "said" }, el("h3", null, `Answered${number} `, el("small", null, "after ", milliseconds(turn.latency_ms), plain(badly))), turn.text ? passage(turn.text, marks) : el("p", { class: "nothing" }, "nothing")),
    ];
  }));
}

function audit(events, leftOut) {
  const list = el("ol", { class: "audit-rows" });
  let at = 0;
  const more = button("", () => add(), { class: "more" });
  function add() {
    list.append(...events.slice(at, at + AUDITED).map(auditRow));
    at += AUDITED;
    more.hidden = at >= events.length;
    more.textContent = `Show ${events.length - at} more`;
  }
  add();
  return el("div", null, list, more, leftOut ? el("p", { class: "nothing" }, `and ${leftOut} more in the run's folder`) : null);
}

function auditRow({ ts, type, deed, end, bad, details }) {
  const view = el("details", { class: "audited" }, el("summary", { "data-entry": true }, el("span", { class: "when" }, ts < 1e8 ? milliseconds(1000 * ts) : ""), el("span", { class: "plane" }, plain(type.replace(/_/g, " "))), el("span", { class: "deed" }, plain(deed)), end ? el("span", { class: bad ? "end fail" : "end" }, `→ ${end}`) : null));
  view.addEventListener("toggle", () => view.open && view.childElementCount === 1 && view.append(type === "http_call" ? requestView(details) : valueView(details)));
  return el("li", null, view);
}
