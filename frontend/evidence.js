// What was recorded, in the form that shows it best: rows as a table, requests with their bodies, texts as texts.
import { el, passage, plain } from "./dom.js";

const ROWS = 200, FIELDS = 10, DEEP = 4;

// JSON is shown with its lines broken; any other text as it is.
export function pretty(text) {
  const start = text.trimStart()[0];
  if ((start !== "{" && start !== "[") || text.length > 100000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const isPlain = (value) => value === null || typeof value !== "object";
const asText = (value) => (value === null || value === undefined ? "null" : typeof value === "string" ? value : JSON.stringify(value));
const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export function valueView(value, depth = 0) {
  if (typeof value === "string") return value.length > 60 || value.includes("\n") ? passage(pretty(value)) : plain(value);
  if (isPlain(value)) return el("code", null, plain(asText(value)));
  if (depth >= DEEP) return passage(JSON.stringify(value, null, 2));
  if (Array.isArray(value)) return listView(value, depth);
  if (Array.isArray(value.columns) && Array.isArray(value.rows)) return rowsView(value);
  if (typeof value.method === "string" && ("path" in value || "url" in value)) return requestView(value);
  const entries = Object.entries(value);
  if (!entries.length) return el("span", { class: "nothing" }, "nothing");
  if (depth === 0 && entries.length === 1 && !isPlain(entries[0][1])) return valueView(entries[0][1], 1);
  return el("dl", { class: "evidence" }, ...entries.map(([name, one]) => el("div", null, el("dt", null, plain(name)), el("dd", null, valueView(one, depth + 1)))));
}

function listView(list, depth) {
  if (!list.length) return el("span", { class: "nothing" }, "none");
  if (list.every(isPlain) && list.every((one) => asText(one).length < 60) && list.length < 12) return plain(list.map(asText).join(", "));
  if (list.every((one) => isRecord(one) && typeof one.method === "string")) return el("ol", { class: "exchanges" }, ...list.slice(0, ROWS).map((one) => el("li", null, requestView(one))));
  const fields = list.every(isRecord) ? [...new Set(list.flatMap(Object.keys))] : [];
  if (fields.length && fields.length <= FIELDS && list.every((one) => Object.values(one).every(isPlain))) return rowsView({ columns: fields, rows: list.map((one) => fields.map((name) => one[name] ?? null)) });
  const shown = list.slice(0, ROWS).map((one) => el("li", null, valueView(one, depth + 1)));
  return el("ol", { class: "values" }, ...shown, list.length > ROWS ? el("li", { class: "nothing" }, `and ${list.length - ROWS} more`) : null);
}

// Rows of a database, or anything else in rows.
export function rowsView({ columns, rows, count }) {
  const shown = rows.slice(0, ROWS), more = Math.max(count ?? 0, rows.length) - shown.length;
  const cell = (value) => el("td", { class: typeof value === "number" ? "number" : "" }, value === null ? el("i", null, "null") : plain(asText(value)));
  const table = el("table", { class: "sql" }, el("thead", null, el("tr", null, ...columns.map((name) => el("th", { scope: "col" }, plain(asText(name)))))),
    el("tbody", null, ...shown.map((row) => el("tr", null, ...(Array.isArray(row) ? row : [row]).map(cell)))));
  const told = rows.length ? (more > 0 ? `and ${more} more rows` : "") : "no rows";
  return el("div", { class: "table-place", tabindex: "0", role: "group", "aria-label": "Rows" }, table, told ? el("p", { class: "nothing" }, told) : null);
}

function headersView(headers) {
  const pairs = Array.isArray(headers) ? headers : Object.entries(headers);
  return el("details", { class: "headers" }, el("summary", null, `${pairs.length} headers`), passage(pairs.map((pair) => (Array.isArray(pair) ? `${pair[0]}: ${asText(pair[1])}` : asText(pair))).join("\n")));
}

// A request as it was seen, and what was answered.
export function requestView(one) {
  const { method, path, url, status, headers, body, request_body: sent, response_body: got, ...rest } = one;
  const told = Object.entries(rest).filter(([, value]) => isPlain(value) && value !== null && value !== "").map(([name, value]) => `${name} ${asText(value)}`).join(" · ");
  return el("div", { class: "exchange" },
    el("p", null, el("b", null, plain(method)), " ", plain(url ?? path, "code"), status == null ? null : el("span", { class: status >= 400 ? "status-code bad" : "status-code" }, ` ${status}`), told ? el("small", null, plain(told)) : null),
    headers && Object.keys(headers).length ? headersView(headers) : null,
    body ?? sent ? el("div", null, el("h5", null, "sent"), passage(pretty(asText(body ?? sent)))) : null,
    got ? el("div", null, el("h5", null, "returned"), passage(pretty(asText(got)))) : null);
}

const UNSHOWN = "not shown: over 32,000 bytes, not text, or more than is kept of a trial";

// A file's change, line by line; a sign stands beside each colour.
export function fileView({ path, op, before, after, diff, bytes }) {
  const lines = diff ? diff.split("\n") : null;
  if (lines?.[0].startsWith("--- ")) lines.splice(0, 2); // the file's name, twice; a removed line may look the same further down
  const counted = lines && [lines.filter((line) => line[0] === "+").length, lines.filter((line) => line[0] === "-").length];
  const known = Boolean(lines) || before != null || after != null;
  const summary = el("summary", { "data-entry": true }, el("code", null, plain(path)), el("span", { class: "op" }, plain(op ?? "")), counted ? el("span", { class: "op" }, el("ins", null, `+${counted[0]}`), " ", el("del", null, `−${counted[1]}`)) : null, bytes == null ? null : el("span", { class: "op" }, `${bytes.toLocaleString("en")} bytes`), known ? null : el("span", { class: "op" }, UNSHOWN));
  const body = lines ? diffView(lines) : before != null || after != null ? el("div", null, before == null ? null : passage(before), after == null ? null : passage(after)) : null;
  return el("details", { class: "file", open: Boolean(lines) && lines.length < 40 }, summary, body);
}

function diffView(lines) {
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  return el("pre", { class: "diff", tabindex: "0" }, ...lines.map((line) => plain(line || " ", "span")).map((node, n) => {
    node.className = kinds[lines[n][0]] ?? "";
    return node;
  }));
}
