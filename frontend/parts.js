// The parts of a whole run: what each came to, and its share of the score.
import { runAddress } from "./address.js";
import { el, inlined, plain } from "./dom.js";
import { badge, number, span, wordOf } from "./words.js";

export function partsTable(weights, rows, id) {
  const shown = weights ?? rows.map((row) => ({ ...row, run: row.id, verdict: wordOf(row), reasons: [] }));
  const head = el("tr", null, ...["verdict", "part", "score", "share", "weight", "what it came to"].map((word) => el("th", { scope: "col" }, word)));
  return el("table", { class: "parts-table" }, el("thead", null, head), el("tbody", null, ...shown.map((part) => partRow(part, id))));
}

function partRow(part, id) {
  const interval = span(part.low, part.high), run = part.run || `${id}/${part.part}`;
  const name = part.skipped || (inlined && !part.page) ? plain(part.part) : el("a", { href: inlined ? part.page : runAddress(run), "data-entry": true }, plain(part.part));
  return el("tr", null,
    el("td", null, part.skipped ? el("span", { class: "badge" }, "not run") : badge(part.verdict || "running")),
    el("th", { scope: "row" }, name),
    el("td", { class: "number" }, part.number ?? number(part.score), interval ? el("span", { class: "interval" }, ` ${interval}`) : null),
    el("td", { class: "number", "data-head": "share" }, !part.share ? "–" : `${Math.round(100 * part.share)} %`),
    el("td", { class: "number", "data-head": "weight" }, part.weight ? String(part.weight) : "–"),
    el("td", { class: "said" }, plain(part.skipped || part.said || (part.reasons ?? []).join(", "))));
}
