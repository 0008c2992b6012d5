// One run: did it hold, where not, why, and how to see it again; live while it goes.
import { get } from "./api.js";
import { compareAddress, runAddress, runPath } from "./address.js";
import { cases } from "./cases.js";
import { Causes } from "./causes.js";
import { el, inlined, plain, section, visible } from "./dom.js";
import { listen } from "./events.js";
import { huntView, sites } from "./hunt.js";
import { Live } from "./live.js";
import { mapView } from "./map.js";
import { Matrix } from "./matrix.js";
import { loadNotes, noteEditor } from "./notes.js";
import { failedPart, partsTable } from "./parts.js";
import { scoreView } from "./score.js";
import { SIGNS, TOP, plural, toneOf, took, when, wordOf } from "./words.js";

const AGAIN_MS = 1500, HEAD_MS = 2000;

export async function run(address, signal) {
  const page = new RunPage(address, signal);
  await page.start();
  return page;
}

class RunPage {
  constructor(address, signal) {
    this.id = address.run;
    this.asked = address.asked;
    this.signal = signal;
    const [whole, ...part] = this.id.split("/");
    this.crumbs = inlined ? [] : [TOP, [whole, runAddress(whole)], ...(part.length ? [[part.join("/"), runAddress(this.id)]] : [])];
    this.up = inlined ? "" : part.length ? runAddress(whole) : "#/";
  }

  async start() {
    const path = runPath(this.id);
    const [found, packed] = await Promise.all([get(path, this.signal), get(`${path}/matrix`, this.signal).catch(() => null), inlined ? null : loadNotes(this.signal)]);
    this.head = el("header", { class: "top" });
    this.causes = new Causes(this.id);
    this.cases = el("section", null);
    this.matrixPlace = el("section", null);
    this.foot = el("footer", null);
    this.body = [this.head, this.causes.node, this.cases, this.matrixPlace, this.foot];
    if (!inlined) this.body.splice(-1, 0, el("section", { class: "noted" }, el("h2", null, "Mark and note"), noteEditor(this.id)));
    this.take(found, packed);
    this.title = `${verdictOf(found)} ${found.name || this.id}`;
  }

  ready() {
    this.matrix?.read(this.asked);
    const causes = this.loadCauses();
    if (inlined) return causes;
    this.findNeighbours();
    let first = true;
    listen(this.running ? this.id : null, (kind, data) => {
      if (kind === "open") {
        if (!first || this.running) this.refresh();
        first = false;
      } else this.hear(kind, data);
    });
    return causes;
  }

  get running() {
    return this.found.run.state === "running";
  }

  take(found, packed) {
    this.found = found;
    if (inlined && found.weights) document.getElementById("find").hidden = true; // it has no answers
    const face = JSON.stringify(found);
    if (face !== this.face) this.draw(found);
    this.face = face;
    this.takeMatrix(found, packed);
  }

  draw(found) {
    this.head.replaceChildren(...this.headParts(found).filter(Boolean));
    this.foot.replaceChildren(...footParts(found).filter(Boolean));
    if (found.hunt || found.map) this.drawHunt(found);
    if (found.failed?.length) this.cases.replaceChildren(...found.failed.map(failedPart));
    if (found.cases?.length) this.cases.replaceChildren(el("h2", null, this.casesTitle(found)), ...cases(this.id, found.cases));
  }

  drawHunt({ hunt, map }) {
    this.map?.close();
    this.map = map?.prompts.length ? mapView(map) : null;
    const drawn = section("Map: calls in order, and which reply feeds which call", ...(this.map?.nodes ?? []));
    const tried = hunt ? null : section("Call sites × faults of all stored runs", map.rows.length ? sites(map.rows) : null);
    this.cases.replaceChildren(...[...(hunt ? huntView(this.id, hunt) : []), drawn, tried].filter(Boolean));
  }

  casesTitle({ cases: list, cases_left_out: more = 0, noun }) {
    const passed = list.filter((one) => one.status === "pass").length;
    return `${noun === "session" ? "Sessions" : "Cases"}: ${passed} of ${list.length + more} passed`;
  }

  takeMatrix(found, packed) {
    this.causes.heads = found;
    if (!packed || !found.rules.length || !found.columns.length || !(found.has_matrix || this.running)) return;
    if (this.matrix && sameHeads(this.matrix.cells, found)) return this.matrix.fill(packed);
    this.matrix?.close();
    const matrix = (this.matrix = new Matrix(this.id, found.rules, found.columns, packed));
    this.matrixPlace.replaceChildren(el("h2", null, "Rules × scenarios"), packed.lacks ? plain(packed.lacks, "p") : "", ...matrix.nodes, el("p", { class: "keys" }, "Arrow keys move, Enter opens a cell, Esc closes it. A dot marks a cell with a note: flaky, fails in calm too, simulated, order may differ."));
    if (this.head.isConnected) matrix.read(new URLSearchParams(location.hash.split("?")[1] ?? ""));
  }

  headParts(found) {
    const { run } = found, word = verdictOf(found), tone = found.hunt ? toneOf(word) : toneOf(run.state === "ended" ? run.verdict : run.state);
    this.live ??= this.running ? new Live(this.id) : null;
    const states = { interrupted: "Interrupted. The results so far:", killed: "The run stopped unexpectedly, perhaps because it was killed. The results so far:", unreadable: run.note || found.note };
    const reasons = [found.hunt ? "" : states[run.state], ...(run.state === "running" ? [] : found.reasons ?? [])].filter(Boolean);
    const scored = found.number != null || (found.has_matrix && !this.running);
    return [
      el("p", { class: "eyebrow" }, plain([run.part, run.partial && "partial", `run ${run.id}`, run.branch, run.commit].filter(Boolean).join(" · ")), run.started ? " · " : "", run.started ? when(run.started) : ""),
      el("h1", null, plain(found.name || run.spec || run.id)),
      found.description ? plain(found.description, "p") : null,
      el("div", { class: `verdict ${tone}` }, el("p", { class: "word" }, el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[tone] ?? (this.running ? "▸" : "!")), word), el("ul", { class: "reasons" }, ...reasons.map((reason) => plain(reason, "li")))),
      found.resume && !this.running ? el("p", { class: "judged" }, "Resume it: ", el("code", null, plain(found.resume))) : null,
      this.running ? this.live.node : null,
      found.counted ? el("p", { class: "counted" }, plain(found.counted.replace(/ {3}/g, " · "), "strong")) : null,
      found.types?.length ? typesTable(found.types) : null,
      scored ? scoreView(found, (found.weights ? "Overall" : found.has_matrix ? "Resilience" : "Score") + (this.running ? " so far" : "")) : null,
      el("ul", { class: "judged" }, ...[found.judged, found.one_sample, found.flaky, found.attacks, found.used].filter(Boolean).map((text) => plain(text.replace(/ {3}/g, " · "), "li"))),
      found.tolerated?.length ? plain(`Tolerated by the minimum: ${found.tolerated.join(", ")}.`, "p") : null,
      ...(found.warnings ?? []).map((one) => el("p", { class: "warning", "data-code": one.code }, el("strong", null, "Warning"), plain(one.text))),
      found.weights || run.parts?.length ? partsTable(found.weights, run.parts, this.id) : null,
      (this.neighbours ??= el("nav", { class: "neighbours", "aria-label": "Other runs" })),
    ];
  }

  async loadCauses() {
    if (this.found.weights || this.found.hunt) return;
    await this.causes.load(this.signal).catch((problem) => problem.name === "AbortError" || console.info(problem.message));
    this.matrix?.showCauses(this.causes.found?.causes ?? []);
  }

  // The runs of the same file and part before and after this one.
  async findNeighbours() {
    const { run } = this.found;
    const { parts } = await get(`trend?${new URLSearchParams({ spec: run.spec ?? "" })}`, this.signal).catch(() => ({ parts: [] }));
    const ids = (parts.find((one) => one.part === run.part)?.points ?? []).map((point) => point.id), order = (id) => id.localeCompare(run.id, "en", { numeric: true });
    this.before = ids.findLast((id) => order(id) < 0);
    this.after = ids.find((id) => order(id) > 0);
    const link = (id, text, href) => (id ? el("a", { class: "button", href }, text, " ", plain(id)) : null);
    this.neighbours.replaceChildren(...[link(this.before, "Compare with", this.before && compareAddress(this.before, run.id)), link(this.before, "Before:", this.before && runAddress(this.before)), link(this.after, "After:", this.after && runAddress(this.after))].filter(Boolean));
  }

  key(key) {
    const to = { c: this.before && compareAddress(this.before, this.id), "[": this.before && runAddress(this.before), "]": this.after && runAddress(this.after) }[key];
    if (to) location.hash = to;
    return Boolean(to);
  }

  hear(kind, data) {
    if (kind === "progress") this.live?.progress(data);
    else if (kind === "cells") this.hearCells(data);
    else if (kind === "trial") this.hearTrial(data);
    else if (kind === "ended") this.later(true);
    else if (kind === "runs" && (!data.ids || data.ids.includes(this.id))) this.running ? this.headLater() : this.later(true);
  }

  // The cells of a run that goes on come by themselves; what stands above them is fetched now and then.
  headLater() {
    this.headDue ??= setTimeout(() => {
      this.headDue = null;
      this.refresh({ cells: false });
    }, HEAD_MS);
  }

  hearCells({ changed }) {
    if (this.matrix) this.matrix.put(changed);
    else this.later();
    this.headLater();
  }

  hearTrial(data) {
    this.live?.ended(data);
    if (data.outcome !== "pass") this.later();
  }

  // What came changes more than it says: fetched anew, not more often than one can read.
  later(whole = false) {
    this.wholly ||= whole;
    this.due ??= setTimeout(() => {
      this.due = null;
      if (this.wholly || !this.matrix) this.refresh();
      else this.loadCauses();
      this.wholly = false;
    }, AGAIN_MS);
  }

  async refresh({ cells = true } = {}) {
    const path = runPath(this.id), was = this.running;
    const asked = [get(path, this.signal), cells ? get(`${path}/matrix`, this.signal).catch(() => null) : null];
    const [found, packed] = await Promise.all(asked).catch(() => []);
    if (!found || this.signal.aborted) return;
    this.take(found, packed);
    if (was && !this.running && !cells) this.later(true);
    document.title = `${verdictOf(found)} ${visible(found.name || this.id)} · Holdfast`;
    this.loadCauses();
    if (was && !this.running) {
      this.findNeighbours();
      listen(null, (kind, data) => kind !== "open" && this.hear(kind, data));
    }
  }

  follow({ asked }) {
    this.matrix?.read(asked);
  }

  leave() {
    clearTimeout(this.due);
    clearTimeout(this.headDue);
    this.map?.close();
    this.matrix?.close();
  }
}

// A hunt that a budget ended has a verdict of its own.
const verdictOf = (found) => (found.hunt ? found.verdict : wordOf(found.run));

const sameHeads = (cells, found) => JSON.stringify([cells.rules, cells.columns]) === JSON.stringify([found.rules, found.columns]);

// Mutations by type: a row each.
function typesTable([head, ...rows]) {
  const row = (cells) => el("tr", null, el("th", { scope: "row" }, plain(cells[0])), ...cells.slice(1).map((text) => plain(text, "td")));
  return el("table", { class: "types" }, el("caption", null, "Mutations by type"), el("thead", null, el("tr", null, ...head.map((text) => el("th", { scope: "col" }, text)))), el("tbody", null, ...rows.map(row)));
}

function footParts(found) {
  const { run } = found;
  const pairs = [["spec", run.spec], ["seed", found.seed], ["trials", run.trials], ["replicas", found.replicas], ["isolation", found.isolation], ["took", took(run.duration_s)], ["spec digest", found.spec_digest], ["agent digest", found.agent_digest], ["judged again from", found.judged_from], ["folder", found.folder], ["version", found.version]];
  const notes = found.notes ?? [], promises = (found.promises ?? []).filter((one) => one.enforced || one.asked);
  return [
    notes.length ? el("ul", null, ...notes.map((note) => plain(note, "li"))) : null,
    promises.length ? el("details", null, el("summary", null, `Enforced by the sandbox: ${promises.filter((one) => one.enforced).length} of ${promises.length}`), el("ul", null, ...promises.map((one) => plain(promiseText(one), "li")))) : null,
    el("dl", null, ...pairs.filter(([, value]) => value != null && value !== "" && value !== 0).map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, plain(String(value)))))),
    run.trials ? el("p", { class: "offscreen" }, plural(run.trials, "trial")) : null,
  ];
}

const promiseText = ({ feature, enforced, why }) => `${enforced ? "" : "not enforced: "}${feature}${why ? ` (${why})` : ""}`;
