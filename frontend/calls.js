// The calls of a trial on a line of time: when each began, how long it took, which fault met it. A row opens what was sent and came back.
import { button, el, passage, plain, svg } from "./dom.js";
import { pretty } from "./evidence.js";
import { milliseconds } from "./words.js";

const FIRST = 150, TICKS = 5, PREVIEW = 300;

export function callTimeline(trace, faults, latency, leftOut) {
  const whole = Math.max(1, latency, ...trace.map((call) => call.ts * 1000 + call.duration_ms));
  const list = el("ol", { class: "call-rows" });
  let at = 0;
  const more = button("", () => add(), { class: "more" });
  function add() {
    list.append(...trace.slice(at, at + FIRST).map((call) => callRow(call, whole, faultsOf(call, faults))));
    at += FIRST;
    more.hidden = at >= trace.length;
    more.textContent = `Show ${Math.min(FIRST, trace.length - at)} more of ${trace.length - at}`;
  }
  add();
  const rest = leftOut ? el("p", { class: "nothing" }, `and ${leftOut} more in the run's folder`) : null;
  return el("div", { class: "calls-chart" }, axis(whole), list, more, rest);
}

// Steps that people count in.
function stepOf(whole) {
  const rough = whole / TICKS, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}

function axis(whole) {
  const step = stepOf(whole), marks = [];
  for (let ms = 0; ms <= whole * 0.95; ms += step) {
    marks.push(svg("line", { x1: `${(100 * ms) / whole}%`, x2: `${(100 * ms) / whole}%`, y1: 16, y2: 22 }));
    marks.push(svg("text", { x: `${(100 * ms) / whole}%`, y: 12, "text-anchor": ms ? "middle" : "start" }, milliseconds(ms)));
  }
  return el("div", { class: "call-axis", "aria-hidden": "true" }, el("span", null, "began"), svg("svg", { width: "100%", height: 22 }, ...marks), el("span", null, "call"));
}

function faultsOf(call, faults) {
  if (!call.fault) return [];
  const modes = call.fault.split("+");
  return faults.filter((fault) => modes.includes(fault.mode) && fault.call === call.n && (fault.retry ?? 0) === (call.retry ?? 0) && (fault.plane === call.plane || fault.target === call.tool));
}

function bar(call, whole) {
  const from = (100 * call.ts * 1000) / whole, wide = Math.max(0.4, (100 * call.duration_ms) / whole);
  const made = svg("svg", { class: "call-bar", width: "100%", height: 16, "aria-hidden": "true" },
    svg("line", { class: "track", x1: 0, x2: "100%", y1: 8, y2: 8 }), svg("rect", { x: `${Math.min(99.6, from)}%`, width: `${wide}%`, y: 4, height: 8, rx: 2 }));
  if (call.fault) made.append(svg("svg", { x: `${Math.min(99.6, from + wide)}%`, y: 8, overflow: "visible" }, svg("path", { class: "fault-sign", d: "M0-6L6 0L0 6L-6 0Z" })));
  return made;
}

const endingOf = (call) => [call.status ?? "", call.error_type, call.phase === "done" ? "" : call.phase].filter(Boolean).join(" ");
const oneLine = (text) => text.slice(0, PREVIEW).replace(/\s+/g, " ");

function callRow(call, whole, faults) {
  const tokens = call.cost ? (call.cost.input_tokens ?? 0) + (call.cost.output_tokens ?? 0) : 0;
  const what = el("span", { class: "what" },
    el("span", { class: "call-name" }, el("span", { class: "plane" }, plain(call.plane || call.event_type)), " ", plain(call.tool, "b")),
    el("span", { class: "call-words" }, milliseconds(call.duration_ms), endingOf(call) ? el("span", { class: "ending" }, " ", plain(endingOf(call))) : null, call.retry ? ` ↻ retry ${call.retry}` : null, call.times > 1 ? ` × ${call.times}` : null, tokens ? ` · ${tokens} tokens` : null, call.script ? el("span", null, " · script ", plain(call.script)) : null, call.fault ? el("span", null, " ", el("code", { class: "fault" }, "◆ ", plain(call.fault))) : null),
    call.input ? el("small", { class: "peek" }, el("span", { "aria-label": "sent" }, "→ "), plain(oneLine(call.input))) : null,
    call.output ? el("small", { class: "peek" }, el("span", { "aria-label": "returned" }, "← "), plain(oneLine(call.output))) : null);
  const summary = el("summary", { "data-entry": true }, el("span", { class: "when" }, milliseconds(call.ts * 1000)), bar(call, whole), what);
  const view = el("details", { class: call.fault ? "call faulty" : call.failed ? "call failed" : "call" }, summary);
  view.addEventListener("toggle", () => view.open && view.childElementCount === 1 && view.append(callBody(call, faults)));
  return el("li", null, view);
}

function callBody(call, faults) {
  const text = (title, value) => [el("h4", null, title), value ? passage(pretty(value)) : el("p", { class: "nothing" }, "nothing")];
  const cost = call.cost ? [call.cost.model, `${call.cost.input_tokens ?? 0} tokens in, ${call.cost.output_tokens ?? 0} out`, call.cost.estimated_usd == null ? "" : `about $${call.cost.estimated_usd}`].filter(Boolean).join(" · ") : "";
  return el("div", { class: "call-body" }, faults.length ? el("h4", null, "Faults on this call") : null, faults.length ? faultList(faults) : null, ...text("Sent", call.input), ...text("Returned", call.output),
    call.unsent ? el("p", { class: "nothing" }, "The call was not forwarded: a fault answered or delayed it.") : null, cost ? plain(cost, "p") : null);
}

export function faultList(faults) {
  return el("ol", { class: "timeline" }, ...faults.map(({ plane, target, mode, call, effect, would, got, change, note }) => {
    const where = target && target !== "*" && target !== plane ? `${plane} ${target}` : plane;
    const idle = effect === "met" ? null : el("i", null, effect === "erased" ? " undone by another fault" : " no effect");
    return el("li", { class: effect === "met" ? "" : "idle" },
      el("p", null, call ? el("span", { class: "call" }, `call ${call}`) : null, plain(where, "b"), " ", plain(mode, "code"), idle),
      change ? el("p", { class: "change" }, el("ins", null, plain(change))) : would || got ? el("p", { class: "change" }, el("del", null, plain(would || "nothing")), el("span", { "aria-label": "became" }, " → "), el("ins", null, plain(got || "nothing"))) : null,
      note ? plain(note, "p") : null);
  }));
}
