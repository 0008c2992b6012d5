// The documents inside report.html. The viewer asks its server for the same ones. Each is a line: name, tab, JSON.
import { Cells } from "./cells.js";

const data = document.getElementById("data"), AROUND = 80;
let lines = null, parsed = new Map(), cells = null;

async function unpacked() {
  const packed = atob(data.textContent), bytes = new Uint8Array(packed.length);
  // A plain loop: Uint8Array.from with a function takes ten times as long here.
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const found = new Map();
  for (let at = 0; at < text.length; ) {
    const tab = text.indexOf("\t", at), end = text.indexOf("\n", tab);
    found.set(text.slice(at, tab), text.slice(tab + 1, end));
    at = end + 1;
  }
  return found;
}

// The document at a path; undefined if the page does not have it.
export async function inlinedDocument(path) {
  lines ??= unpacked();
  const known = await lines, [name, query] = path.split("?"), asked = new URLSearchParams(query ?? "");
  if (name === "run/cell") return cell(known, asked.get("rule"), asked.get("column"));
  if (name === "search") return search(known, asked.get("q"), Number(asked.get("limit")));
  if (name.startsWith("run/trial/")) return trial(known, decodeURIComponent(name.slice("run/trial/".length)));
  return read(known, name);
}

const parse = (known, name) => (known.has(name) ? JSON.parse(known.get(name)) : undefined);

// The documents of the run itself are read many times, so they are parsed once.
function read(known, name) {
  if (!parsed.has(name)) parsed.set(name, parse(known, name));
  return parsed.get(name);
}

function table(known) {
  const { rules, columns } = read(known, "run"), matrix = read(known, "run/matrix");
  if (matrix) cells ??= new Cells(rules, columns, matrix);
  return cells;
}

// A cell: its place in the matrix, the document under its numbers, and the document of each of its trials.
function cell(known, rule, column) {
  const found = table(known), r = found?.ruleAt.get(rule), c = found?.columnAt.get(column), i = found?.at(r, c) ?? -1;
  if (!(i >= 0)) return undefined;
  const { trials = [], left_out, ...more } = parse(known, `run/cell/${r}/${c}`) ?? {}, { rows, strings } = found;
  const { severity, where } = found.rules[r], word = (name) => strings[rows[name][i]];
  const reason = word("reason") || (trials.find((one) => one.outcome === found.outcome(i)) ?? trials[0])?.reason;
  const next = trials.length || found.outcome(i) === "n/a" ? "" : "its trials are not in this page; see the note above the matrix";
  return {
    cell: { rule, column, outcome: found.outcome(i), severity, where, reason, flags: word("flags"), tally: word("tally"), next, ...more },
    trials: trials.map((one) => ({ ...brief(parse(known, `run/trial/${one.id}`), one.turn ?? 0), ...one })),
    left_out,
  };
}

function brief({ id, turns = [], faults = [], ending, detail, replica, again }, turn) {
  return { id, prompt: turns[0]?.asked ?? "", answer: turns[turn]?.text, latency_ms: turns.reduce((sum, one) => sum + one.latency_ms, 0), faults: faults.map((one) => one.text), ending, detail, replica, again };
}

// The verdicts on a trial of a contract are in the cells of its column, so a trial that many rules share is stored once.
function trial(known, id) {
  const found = parse(known, `run/trial/${id}`);
  return found && { turns: [], faults: [], trace: [], ...found, verdicts: found.verdicts ?? verdicts(known, found) };
}

function verdicts(known, { id, column }) {
  const found = table(known), c = found?.columnAt.get(column);
  return (found?.rules ?? []).flatMap((rule, r) => {
    const line = known.get(`run/cell/${r}/${c}`);
    const one = line?.includes(id) && JSON.parse(line).trials?.find((other) => other.id === id);
    return one ? [{ rule: rule.id, description: rule.description, severity: rule.severity, check: rule.check, where: rule.where, ...one }] : [];
  });
}

// Finds a text in prompts, answers and reasons, and a trial by the beginning of its id.
function search(known, q, limit) {
  const words = q.toLowerCase(), escaped = JSON.stringify(words).slice(1, -1), hits = [];
  for (const [name, line] of known) {
    if (hits.length >= limit) break;
    if (!/^run\/(trial|cell)\//.test(name) || !line.toLowerCase().includes(escaped)) continue;
    hits.push(...(name.startsWith("run/trial/") ? inTrial : inCell)(known, name, JSON.parse(line), words));
  }
  return { hits: hits.slice(0, limit), searched: 1, not_searched: 0, more: hits.length >= limit };
}

function inTrial(known, name, { id, column, turns = [], verdicts: said = [] }, words) {
  const texts = [...turns.flatMap((one) => [["answer", one.text], ["prompt", one.asked]]), ...said.map((one) => ["reason", one.reason, one.rule])];
  const begins = id.startsWith(words) ? [{ run: "", trial: id, column, rule: "", where: "trial", text: id, at: [0, words.length] }] : [];
  return [...begins, ...texts.flatMap(([where, text, rule = ""]) => excerpt(text, words, { run: "", trial: id, column, rule, where }))];
}

function inCell(known, name, { trials = [] }, words) {
  const [r, c] = name.split("/").slice(2), { rules, columns } = table(known);
  return trials.flatMap((one) => excerpt(one.reason, words, { run: "", trial: one.id, column: columns[c].name, rule: rules[r].id, where: "reason" }));
}

function excerpt(text, words, hit) {
  const at = (text ?? "").toLowerCase().indexOf(words), end = at + words.length;
  if (at < 0) return [];
  const start = Math.max(0, at - AROUND), before = start ? "…" : "";
  return [{ ...hit, text: `${before}${text.slice(start, end + AROUND)}${end + AROUND < text.length ? "…" : ""}`, at: [at - start + before.length, end - start + before.length] }];
}
