// The parts of a whole run: what each came to, and its share of the score.
import { cellAddress, runAddress } from "./address.js";
import { Causes } from "./causes.js";
import { el, inlined, plain } from "./dom.js";
import { badge, number, span, wordOf } from "./words.js";

export function partsTable(weights, rows, id) {
  const shown = weights?.filter((part) => !part.skipped) ?? rows.map((row) => ({ ...row, run: row.id, verdict: wordOf(row), reasons: [] }));
  const head = el("tr", null, ...["verdict", "part", "score", "share", "weight", "result"].map((word) => el("th", { scope: "col" }, word)));
  const idle = (weights ?? []).filter((part) => part.skipped).map((part) => `${part.part} (${part.skipped})`);
  const table = el("table", { class: "parts-table" }, el("thead", null, head), el("tbody", null, ...shown.map((part) => partRow(part, id))));
  return el("div", null, table, idle.length ? plain(`Not run: ${idle.join(", ")}`, "p") : null);
}

// A part that did not hold: its causes, then its matrix.
export function failedPart(part) {
  const causes = new Causes(part.run, part);
  causes.heads = part;
  causes.take(part);
  causes.node.querySelector("h2").replaceChildren("Failures in ", plain(part.part));
  return el("section", { class: "failed-part" }, causes.node, part.matrix.rows.length ? matrixTable(part) : null);
}

function matrixTable({ run, page, matrix: { heads, rows, left_out: more } }) {
  const at = (rule, head) => (inlined ? page : "") + cellAddress(run, rule, head);
  const cell = (rule, head, [outcome, text]) => el("td", { class: outcome.replace("/", "") }, outcome && outcome !== "n/a" ? el("a", { href: at(rule, head), "aria-label": `${outcome}, ${rule} in ${head}` }, text) : text);
  const line = ({ rule, severity, cells }) => el("tr", null, el("th", { scope: "row" }, plain(rule), " ", el("small", { class: severity }, severity)), ...cells.map((face, n) => cell(rule, heads[n], face)));
  const head = el("tr", null, el("th", { scope: "col" }, "rule"), ...heads.map((name) => el("th", { scope: "col" }, plain(name))));
  return el("div", { class: "scroller" }, el("table", { class: "part-matrix" }, el("thead", null, head), el("tbody", null, ...rows.map(line))), more ? plain(`${more} more rules and scenarios on the page of the part`, "p") : null);
}

function partRow(part, id) {
  const interval = span(part.low, part.high), run = part.run || `${id}/${part.part}`;
  const name = part.skipped || (inlined && !part.page) ? plain(part.part) : el("a", { href: inlined ? part.page : runAddress(run), "data-entry": true }, plain(part.part));
  return el("tr", null,
    el("td", null, part.skipped ? el("span", { class: "badge" }, "not run") : badge(part.verdict || "running")),
    el("th", { scope: "row" }, name),
    el("td", { class: "number" }, part.number ?? number(part.score), interval ? el("span", { class: "interval" }, ` ${interval}`) : null),
    el("td", { class: "number", "data-head": "share" }, !part.share ? "–" : `${Math.round(100 * part.share)} %`),
    el("td", { class: "number", "data-head": "weight" }, part.weight ? part.weight.toFixed(2) : "–"),
    el("td", { class: "said" }, plain(part.skipped || part.said || (part.reasons ?? []).join(", "))));
}
