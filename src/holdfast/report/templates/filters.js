// Filters, and the state of the page in its address.
const NAMED = ["severity", "scenario", "text", "cause", "cell"];
const state = { outcome: new Set(), severity: "", scenario: "", text: "", cause: "", cell: "" };
const form = document.getElementById("filters");
const fields = { severity: form.querySelector("#severity"), scenario: form.querySelector("#scenario"), text: form.querySelector("#text") };
const chips = [...form.querySelectorAll("[data-outcome]")];
const clear = form.querySelector("#clear");
let lowered = null;

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  state.outcome = new Set((asked.get("outcome") ?? "").split(",").filter((word) => OUTCOMES.includes(word)));
  for (const name of NAMED) state[name] = asked.get(name) ?? "";
}

function writeAddress() {
  const asked = new URLSearchParams();
  if (state.outcome.size) asked.set("outcome", [...state.outcome].join(","));
  for (const name of NAMED) if (state[name]) asked.set(name, state[name]);
  history.replaceState(null, "", `#${asked}`);
}

function filtering() {
  return Boolean(state.outcome.size || state.severity || state.scenario || state.text || state.cause);
}

// Strings are shared by many cells, so each is searched once.
function stringsWith(text) {
  lowered ??= strings.map((s) => s.toLowerCase());
  return Uint8Array.from(lowered, (s) => (s.includes(text) ? 1 : 0));
}

function cellHolds(cell, hits, namesHit) {
  if (namesHit.rules[cells.rule[cell]] || namesHit.columns[cells.column[cell]] || hits[cells.reason[cell]]) return true;
  const [from, to] = trialsOf(cell);
  for (let t = from; t < to; t++) {
    if (hits[trials.prompt[t]] || hits[trials.reason[t]] || (trials.answer[t] >= 0 && hits[trials.answer[t]])) return true;
    if (trials.id[t].startsWith(state.text)) return true;
  }
  return false;
}

function matchingCells() {
  const text = state.text.trim().toLowerCase();
  const hits = text ? stringsWith(text) : null;
  const has = (words) => words.some((word) => word.toLowerCase().includes(text));
  const namesHit = text && { rules: rules.map((r) => has([r[0], r[2], r[3]])), columns: columns.map((c) => has(c)) };
  const matches = new Uint8Array(cellCount);
  const ofCause = state.cause && new Set(data.causes[state.cause - 1] ?? []);
  for (let i = 0; i < cellCount; i++) {
    if (ofCause && !ofCause.has(i)) continue;
    if (state.outcome.size && !state.outcome.has(OUTCOMES[cells.outcome[i]])) continue;
    if (state.severity && rules[cells.rule[i]][1] !== state.severity) continue;
    if (state.scenario && columns[cells.column[i]][0] !== state.scenario) continue;
    matches[i] = !text || cellHolds(i, hits, namesHit) ? 1 : 0;
  }
  return matches;
}

function applyFilters() {
  const on = filtering();
  const matches = on ? matchingCells() : null;
  const ruleSeen = new Set(), columnSeen = new Set();
  let count = 0;
  for (let i = 0; i < cellCount; i++) {
    if (matches && !matches[i]) continue;
    count++;
    ruleSeen.add(cells.rule[i]);
    columnSeen.add(cells.column[i]);
  }
  const all = (list) => list.map((_, n) => n);
  drawMatrix(all(rules).filter((n) => ruleSeen.has(n)), all(columns).filter((n) => columnSeen.has(n)), matches);
  document.getElementById("status").textContent = on ? `${count} of ${cellCount} cells${state.cause ? ", of one cause" : ""}` : `${cellCount} cells`;
  clear.hidden = !on;
  chips.forEach((chip) => chip.setAttribute("aria-pressed", state.outcome.has(chip.dataset.outcome)));
  for (const [name, field] of Object.entries(fields)) if (field.value !== state[name]) field.value = state[name];
}

function changed() {
  writeAddress();
  applyFilters();
}

function onlyCause(cause) {
  Object.assign(state, { outcome: new Set(), severity: "", scenario: "", text: "", cause });
  changed();
}

function startFilters() {
  const options = (field, words) => field.append(...words.map((word) => el("option", { value: word }, word)));
  options(fields.severity, ["critical", "high", "medium", "low"].filter((word) => rules.some((rule) => rule[1] === word)));
  options(fields.scenario, [...new Set(columns.map((column) => column[0]))]);
  let waiting = 0;
  fields.text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.text = fields.text.value; changed(); }, 120);
  });
  for (const name of ["severity", "scenario"]) fields[name].addEventListener("change", () => { state[name] = fields[name].value; changed(); });
  chips.forEach((chip) => chip.addEventListener("click", () => {
    const word = chip.dataset.outcome;
    if (!state.outcome.delete(word)) state.outcome.add(word);
    changed();
  }));
  clear.addEventListener("click", () => { onlyCause(""); fields.text.focus(); });
  document.querySelectorAll("[data-cause]").forEach((button) => {
    button.addEventListener("click", () => { onlyCause(button.dataset.cause); document.getElementById("matrix-head").scrollIntoView(); });
    button.hidden = false;
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}
