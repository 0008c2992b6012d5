// A hunt: what breaks the agent and how each cause was reduced, then call sites by faults.
import { trialAddress } from "./address.js";
import { command, el, facts, inlined, passage, plain, section } from "./dom.js";
import { badge, plural } from "./words.js";

const OPEN = 3, SIGNS = { held: "✔", failed: "✘", infeasible: "–", "not met": "?", open: "·" };
const TONES = { held: "pass", failed: "fail", infeasible: "na", "not met": "unproven", open: "na" };

export function huntView(run, { causes, flaky, gave_up, fixed, notes, rows }) {
  return [
    section("Causes", causes.length ? el("ol", { class: "causes" }, ...causes.map((cause, n) => el("li", null, causeView(run, cause, n < OPEN)))) : null),
    section("Flaky: failed, but not reliably", flaky.length ? el("ol", { class: "causes" }, ...flaky.map((cause) => el("li", null, causeView(run, cause, false, "flaky")))) : null),
    section("Gave up: no answer and no write", gave_up.length ? el("ul", null, ...gave_up.map((text) => plain(text, "li"))) : null),
    section("Fixed", fixed.length ? plain(fixed.join(", "), "p") : null),
    section("Call sites × faults", rows.length ? sites(rows) : null, ...notes.map((note) => plain(note, "p"))),
  ].filter(Boolean);
}

function causeView(run, cause, open, word = "fail") {
  const summary = el("summary", { "data-entry": true }, badge(word), el("span", { class: "what" }, el("b", null, plain(cause.faults)), cause.known ? el("small", null, " known") : null),
    el("span", { class: "why" }, "breaks ", plain(cause.rules), " ", el("code", null, plain(cause.code))));
  return el("details", { class: "cause", open }, summary, facts([
    ["asked", cause.asked],
    ["because", cause.because],
    ["failed", cause.failed],
    ["story", cause.steps?.length > 1 ? el("ol", { class: "steps" }, ...cause.steps.map(step)) : ""],
    ["paste", passage(cause.paste)],
    ["reproduce", command(cause.again)],
    ["trial", !cause.trial ? "" : inlined ? command(`holdfast show ${cause.trial}`) : el("a", { class: "button", href: trialAddress(run, cause.trial) }, "Open trial: calls, files, audit")],
  ]));
}

// A plan that was tried on the way from the first failure to the cause.
function step({ faults, failed, runs }) {
  const tone = failed ? "fail" : "pass", said = failed ? `failed ${failed} of ${runs}` : `held in ${plural(runs, "trial")}`;
  return el("li", null, el("span", { class: `sign ${tone}`, "aria-hidden": "true" }, failed ? "✘" : "✔"), " ", plain(faults), " ", el("small", null, said));
}

// Call sites by faults, with the states that occur in the legend.
export function sites(rows) {
  const modes = [...new Set(rows.flatMap((row) => Object.keys(row.states)))];
  const cell = (state) => el("td", { class: state ? TONES[state] : null, title: state }, state ? el("span", { "aria-hidden": "true" }, SIGNS[state]) : "", state ? el("span", { class: "offscreen" }, state) : "");
  const head = el("tr", null, el("th", { scope: "col" }, "call"), ...modes.map((mode) => el("th", { scope: "col" }, plain(mode, "span"))));
  const body = rows.map(({ site, states }) => el("tr", null, el("th", { scope: "row" }, plain(site)), ...modes.map((mode) => cell(states[mode]))));
  const states = new Set(rows.flatMap((row) => Object.values(row.states)));
  const legend = Object.entries(SIGNS).filter(([state]) => states.has(state)).map(([state, sign]) => `${sign} ${state}`).join("   ");
  return el("div", { class: "sites-scroll" }, el("table", { class: "sites" }, el("caption", null, legend), el("thead", null, head), el("tbody", null, ...body)));
}
