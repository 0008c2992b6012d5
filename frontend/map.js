// The map of an agent's calls: call sites from top to bottom, on the left which reply feeds which later one, on the right which faults were tried there.
import { el, plain, svg, visible } from "./dom.js";
import { number, plural } from "./words.js";

const ROW = 32, TOP = 6, LANE = 13, BEND = 6, OFF = 6, WIDE = 560, FONT = 14, TALL = 15, WRITE = 44;
const STATES = [["held", "pass"], ["failed", "fail"], ["infeasible", "na"], ["not met", "unproven"], ["open", "open"]];
const KINDS = { call: "", answer: "", file: "file ", row: "row in " };

// One figure for each prompt. close() ends the watch over its width.
export function mapView({ coverage, scores, prompts }) {
  const figures = prompts.map((one, n) => new MapFigure(one, n === 0));
  const said = (scores ?? []).map(({ part, run, score }) => `${part} ${number(score)} in run ${run}`).join(", ");
  const nodes = [
    coverage ? plain(coverage, "p") : null,
    said ? plain(`Score: ${said}. A score counts only the faults that were tried.`, "p") : null,
    ...figures.map((one) => one.node),
  ];
  return { nodes: nodes.filter(Boolean), close: () => figures.forEach((one) => one.close()) };
}

class MapFigure {
  constructor({ asked, sites = [], ends = [], left_out = 0 }, explains) {
    this.explains = explains;
    this.rows = [...sites, ...ends.map((end) => ({ ...end, end: true }))];
    this.edges = lanes(this.findEdges());
    this.tip = el("p", { class: "tip", role: "status" });
    this.place = el("div", { class: "map-place" });
    const left = left_out ? `${plural(left_out, "further call")} not shown. ` : "";
    const none = this.edges.length ? "" : "No reply feeds a later call, a file, a row or the answer.";
    this.node = el("figure", { class: this.rows.length > TALL ? "map tall" : "map" }, asked ? el("figcaption", null, "asked: ", plain(asked)) : null, this.place, left || none ? el("p", { class: "note" }, left + none) : null, this.tip);
    this.at = 0;
    this.watch = new ResizeObserver(() => {
      const width = Math.floor(this.place.clientWidth);
      if (width && width !== this.width) this.draw((this.width = width));
    });
    this.watch.observe(this.place);
    this.showLegend();
  }

  close() {
    this.watch.disconnect();
  }

  // [row of the source, row of the target, values]; a site may feed one that was reached before it and used again.
  findEdges() {
    const key = (kind, name) => `${kind === "call" ? "" : kind} ${name}`;
    const rowOf = new Map(this.rows.map((row, n) => [key(row.end ? row.kind : "call", row.name), n]));
    return this.rows.flatMap((row, from) => (row.links ?? []).map(({ kind, to, values }) => ({ from, to: rowOf.get(key(kind, to)), values: values ?? [] }))).filter((edge) => edge.to !== undefined && edge.to !== edge.from);
  }

  draw(room) {
    const count = new Set(this.edges.map((edge) => edge.lane)).size, wide = room >= WIDE;
    const step = count ? Math.min(LANE, (room * 0.28) / count) : 0;
    this.x = count ? Math.round(count * step) + 16 : 10;
    this.covered = wide ? 210 : 66;
    this.lane = (edge) => this.x - 14 - edge.lane * step;
    // No wider than its longest name needs, so that the bars are near the names.
    const longest = Math.max(...this.rows.map((row) => textWidth(nameOf(row)) + (row.write ? WRITE : 0)));
    const width = Math.min(room, Math.ceil(this.x + 14 + longest + 36 + this.covered)), height = TOP * 2 + this.rows.length * ROW;
    const drawn = svg("svg", { width, height, role: "group", "aria-label": `${plural(this.rows.filter((row) => !row.end).length, "call")} in order, and which reply feeds which call. Arrow keys go from row to row.` });
    this.nodes = this.rows.map((row, n) => this.row(row, n, width, wide));
    drawn.append(...this.nodes, svg("g", { class: "edges", "aria-hidden": "true" }, ...this.edges.map((edge) => this.edge(edge))));
    drawn.addEventListener("keydown", (event) => this.keyed(event));
    drawn.addEventListener("pointerleave", () => this.pick(document.activeElement?.closest?.("svg") === drawn ? this.at : -1));
    this.nodes[this.at]?.setAttribute("tabindex", "0");
    this.place.replaceChildren((this.drawn = drawn));
  }

  y(n) {
    return TOP + n * ROW + ROW / 2;
  }

  // Out of the source, along its lane, into the target, with an arrowhead there.
  edge(edge) {
    const x = this.lane(edge), down = edge.to > edge.from ? 1 : -1, y1 = this.y(edge.from) + OFF, y2 = this.y(edge.to) - OFF, bend = BEND * down;
    const path = `M${this.x} ${y1}H${x + BEND}Q${x} ${y1} ${x} ${y1 + bend}V${y2 - bend}Q${x} ${y2} ${x + BEND} ${y2}H${this.x - 4}`;
    return svg("g", { class: "edge", "data-from": edge.from, "data-to": edge.to }, svg("path", { d: path }), svg("path", { class: "head", d: `M${this.x + 1} ${y2}l-7 -3.500v7Z` }));
  }

  row(row, n, width, wide) {
    const y = this.y(n), x = this.x, text = x + 14, room = width - text - (row.end ? 0 : this.covered + 12);
    const full = nameOf(row), name = fitted(full, room - (row.write ? WRITE : 0));
    const shape = row.end ? `M${x} ${y - 6}l6 6l-6 6l-6 -6Z` : row.write ? `M${x - 5} ${y - 5}h10v10h-10Z` : `M${x - 5} ${y}a5 5 0 1 0 10 0a5 5 0 1 0-10 0`;
    const label = svg("text", { class: "site-name", x: text, y: y + 5 }, name, row.write ? svg("tspan", { class: "write", dx: 8 }, "write") : "");
    const node = svg("g", { class: row.end ? "site end" : "site", tabindex: "-1", role: "img", "aria-label": this.told(row, n) },
      svg("rect", { class: "hit", x: 0, y: y - ROW / 2, width, height: ROW, rx: 4 }), svg("path", { class: "mark", d: shape }), label, row.end ? null : this.bar(row, width, y, wide));
    if (name !== full) node.append(svg("title", null, full));
    node.addEventListener("focus", () => this.pick(n));
    node.addEventListener("pointerenter", () => this.pick(n));
    node.addEventListener("click", () => this.go(n));
    return node;
  }

  // How many of the site's faults held, failed, were not met or are open.
  bar({ counts = {} }, width, y, wide) {
    const total = STATES.reduce((sum, [state]) => sum + (counts[state] ?? 0), 0), left = width - this.covered, long = wide ? 84 : 30;
    if (!total) return svg("text", { class: "count", x: left + long + 10, y: y + 4 }, wide ? "no faults here" : "–");
    let at = left;
    const parts = STATES.filter(([state]) => counts[state]).map(([state, tone]) => {
      const size = (long * counts[state]) / total;
      at += size;
      return svg("rect", { class: tone, x: at - size, y: y - 5, width: size, height: 10 });
    });
    const tried = (counts.held ?? 0) + (counts.failed ?? 0);
    const words = wide ? `${tried} of ${total} met${counts.failed ? `, ${counts.failed} ✘` : ""}` : `${tried}/${total}`;
    return svg("g", { class: "bar" }, ...parts, svg("text", { class: counts.failed ? "count fail" : "count", x: left + long + 10, y: y + 4 }, words));
  }

  told(row, n) {
    const of = (edges, end) => edges.map((edge) => `${nameOf(this.rows[edge[end]])}${edge.values.length ? ` (${edge.values.map(visible).join(", ")})` : ""}`).join("; ");
    const feeds = this.edges.filter((edge) => edge.from === n), fed = this.edges.filter((edge) => edge.to === n), counts = row.counts ?? {};
    const faults = STATES.filter(([state]) => counts[state]).map(([state]) => `${counts[state]} ${state}`).join(", ");
    return [`${nameOf(row)}${row.write ? ", a write" : ""}.`, feeds.length ? `Feeds ${of(feeds, "to")}.` : "", fed.length ? `Fed by ${of(fed, "from")}.` : "", faults ? `Faults: ${faults}.` : ""].filter(Boolean).join(" ");
  }

  showLegend() {
    const states = STATES.filter(([state]) => this.rows.some((row) => row.counts?.[state])).map(([state, tone]) => el("span", { class: `state ${tone}` }, state));
    this.tip.replaceChildren(...(this.explains ? ["● call  ■ write  ◆ file, row or answer   faults: ", ...states] : []));
  }

  pick(n) {
    this.drawn.classList.toggle("chosen", n >= 0);
    const on = new Set([n]);
    for (const edge of this.drawn.querySelectorAll(".edge")) {
      const { from, to } = edge.dataset, hit = Number(from) === n || Number(to) === n;
      edge.classList.toggle("on", hit);
      if (hit) on.add(Number(from)).add(Number(to));
    }
    this.nodes.forEach((node, at) => node.classList.toggle("on", on.has(at)));
    if (n < 0) this.showLegend();
    else this.tip.replaceChildren(this.nodes[n].getAttribute("aria-label"));
  }

  go(n) {
    this.nodes[this.at].setAttribute("tabindex", "-1");
    this.at = Math.max(0, Math.min(this.nodes.length - 1, n));
    this.nodes[this.at].setAttribute("tabindex", "0");
    this.nodes[this.at].focus();
  }

  keyed(event) {
    const to = { ArrowUp: this.at - 1, ArrowDown: this.at + 1, Home: 0, End: this.nodes.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.go(to);
  }
}

// The edges of one source share a lane; two sources share one if their lines do not meet. Short lines are nearest to the names.
function lanes(edges) {
  const spans = new Map();
  for (const { from, to } of edges) {
    const span = spans.get(from) ?? [from, from];
    spans.set(from, [Math.min(span[0], to), Math.max(span[1], to)]);
  }
  const ends = [], taken = new Map();
  for (const [from, [low, high]] of [...spans].sort(([, a], [, b]) => a[1] - a[0] - (b[1] - b[0]) || a[0] - b[0])) {
    let lane = 0;
    while ((ends[lane] ?? []).some(([l, h]) => low < h && l < high)) lane++;
    (ends[lane] ??= []).push([low, high]);
    taken.set(from, lane);
  }
  return edges.map((edge) => ({ ...edge, lane: taken.get(edge.from) }));
}

const nameOf = (row) => `${KINDS[row.kind] ?? ""}${visible(row.name)}`;

let measure = null;

function textWidth(text) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  return measure.measureText(text).width;
}

// The name within so many pixels: the middle is left out, because the end of a URL and the number say most.
function fitted(name, room) {
  if (textWidth(name) <= room) return name;
  let low = 3, high = name.length;
  const short = (size) => `${name.slice(0, Math.ceil(size * 0.45))}…${name.slice(name.length - Math.floor(size * 0.55))}`;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(short(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return short(low);
}
