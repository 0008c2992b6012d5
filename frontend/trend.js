// The scores of a file's runs over time, as `holdfast trend` shows them: a line, the intervals as a band, a point per run that opens it.
import { runAddress } from "./address.js";
import { el, plain, svg, visible } from "./dom.js";
import { SIGNS, number, plural, span, toneOf, when } from "./words.js";

const HEIGHT = 190, LEFT = 34, RIGHT = 14, TOP = 10, BOTTOM = 36, LABEL = 112;
const SHAPES = { pass: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", fail: "M0-5.500L5.500 0L0 5.500L-5.500 0Z", error: "M-4-4h8v8h-8Z", unproven: "M0-5L5 4.500H-5Z" };

// Only points of one part make a line: those of the newest run, unless another part is picked.
export function trend(found, part, pickPart) {
  const shown = found.parts.find((one) => one.part === part) ?? found.parts.find((one) => one.part === found.newest) ?? found.parts[0];
  const scored = shown.points.filter((point) => point.level != null);
  const figure = el("figure", { class: "trend" });
  const picks = found.parts.length < 2 ? null : el("div", { class: "chips", role: "group", "aria-label": "Part" },
    ...found.parts.map((one) => el("button", { type: "button", class: "chip", "aria-pressed": String(one === shown), onclick: () => pickPart(one.part) }, plain(one.part))));
  const tip = el("p", { class: "tip", role: "status" });
  const place = el("div", { class: "trend-place" });
  const left = shown.left_out ? el("p", { class: "tip" }, `${plural(shown.left_out, "partial or unfinished run")} not shown`) : null;
  figure.append(...[picks, place, tip, left].filter(Boolean));
  if (scored.length < 2) {
    place.append(el("p", { class: "nothing" }, scored.length ? "only one complete run has a score; a trend needs two" : "no complete run has a score yet"));
    return { figure, close() {} };
  }
  let width = 0, at = -1;
  const chart = new Chart(scored, (n) => {
    at = n;
    tip.replaceChildren(...told(scored[n]));
  });
  const watch = new ResizeObserver(() => {
    if (place.clientWidth && place.clientWidth !== width) place.replaceChildren(chart.draw((width = place.clientWidth), at));
  });
  watch.observe(place);
  tip.replaceChildren(...told(scored.at(-1)));
  return { figure, close: () => watch.disconnect() };
}

function told(point) {
  const tone = toneOf(point.verdict), interval = span(point.low, point.high);
  return [el("b", null, plain(point.id)), " ", el("span", { class: `sign ${tone}` }, `${SIGNS[tone] ?? "!"} ${point.verdict || "no verdict"}`), " ", el("b", null, scoreWord(point)),
    interval ? ` (95 %: ${interval}) ` : " ", when(point.started), point.commit ? el("span", null, " commit ", plain(point.commit, "code")) : ""];
}

const scoreWord = (point) => (point.score == null ? `${point.cases_passed}/${point.cases} cases` : number(point.score));

class Chart {
  constructor(points, onPoint) {
    this.points = points;
    this.onPoint = onPoint;
  }

  draw(width, at) {
    this.step = (width - LEFT - RIGHT - 12) / Math.max(1, this.points.length - 1);
    this.drawn = svg("svg", { width, height: HEIGHT, role: "group", "aria-label": `Score of ${this.points.length} runs, oldest first. Arrow keys go from run to run.` });
    this.drawn.append(...this.axes(width), ...this.bands(), this.line(), ...this.dots());
    this.drawn.addEventListener("keydown", (event) => this.keyed(event));
    this.drawn.addEventListener("pointermove", (event) => this.onPoint(this.nearest(event)));
    this.drawn.addEventListener("click", (event) => event.target.closest("a") ?? this.links[this.nearest(event)].dispatchEvent(new MouseEvent("click", { bubbles: false })));
    this.links[at < 0 ? this.points.length - 1 : at].setAttribute("tabindex", "0");
    return this.drawn;
  }

  x(n) {
    return LEFT + 6 + n * this.step;
  }

  y(score) {
    return TOP + (1 - score / 100) * (HEIGHT - TOP - BOTTOM);
  }

  axes(width) {
    const made = [];
    for (const score of [0, 25, 50, 75, 100]) {
      made.push(svg("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: this.y(score), y2: this.y(score) }));
      made.push(svg("text", { class: "tick", x: LEFT - 8, y: this.y(score) + 4, "text-anchor": "end" }, String(score)));
    }
    const every = Math.max(1, Math.ceil(LABEL / Math.max(this.step, 0.01)));
    let before = "";
    for (let n = this.points.length - 1; n >= 0; n -= every) {
      const { id, started, commit } = this.points[n], time = when(started).textContent, anchor = n === this.points.length - 1 ? "end" : this.x(n) < LEFT + 40 ? "start" : "middle";
      if (anchor === "start" && every * this.step < LABEL + 40) break;
      const x = anchor === "end" ? width - RIGHT + 6 : anchor === "start" ? LEFT : this.x(n);
      made.push(svg("line", { class: "stroke", x1: this.x(n), x2: this.x(n), y1: this.y(0), y2: this.y(0) + 4 }));
      made.push(svg("text", { class: "tick", x, y: HEIGHT - 17, "text-anchor": anchor }, time === before ? visible(id) : time));
      before = time;
      if (commit) made.push(svg("text", { class: "tick commit", x, y: HEIGHT - 3, "text-anchor": anchor }, visible(commit)));
    }
    return made;
  }

  // Where there is an interval; a gap parts two bands.
  bands() {
    const made = [];
    let part = [];
    const end = () => {
      if (part.length) {
        const wide = part.length === 1 ? Math.min(4, this.step / 2) : 0;
        const above = part.flatMap((n) => [[this.x(n) - wide, this.y(this.points[n].high)], [this.x(n) + wide, this.y(this.points[n].high)]]);
        const below = part.flatMap((n) => [[this.x(n) - wide, this.y(this.points[n].low)], [this.x(n) + wide, this.y(this.points[n].low)]]);
        made.push(svg("polygon", { class: "band", points: [...above, ...below.reverse()].map((pair) => pair.map((v) => v.toFixed(1)).join(",")).join(" ") }));
      }
      part = [];
    };
    this.points.forEach((point, n) => (point.low == null || point.high == null ? end() : part.push(n)));
    end();
    return made;
  }

  line() {
    return svg("polyline", { class: "path", points: this.points.map((point, n) => `${this.x(n).toFixed(1)},${this.y(point.level).toFixed(1)}`).join(" ") });
  }

  dots() {
    const scale = this.step < 7 ? 0.55 : 1;
    this.links = this.points.map((point, n) => {
      const tone = toneOf(point.verdict) || "na";
      const link = svg("a", { href: runAddress(point.id), tabindex: "-1", transform: `translate(${this.x(n).toFixed(1)} ${this.y(point.level).toFixed(1)})`, class: `point ${tone}`, "aria-label": `${point.id}, ${point.verdict || "no verdict"}, ${scoreWord(point)}` },
        svg("circle", { class: "hit", r: Math.min(14, Math.max(4, this.step / 2)) }), svg("path", { d: SHAPES[tone] ?? SHAPES.pass, transform: `scale(${scale})` }));
      link.addEventListener("focus", () => this.onPoint(n));
      return link;
    });
    return this.links;
  }

  nearest(event) {
    const x = event.clientX - this.drawn.getBoundingClientRect().left;
    return Math.max(0, Math.min(this.points.length - 1, Math.round((x - LEFT - 6) / this.step)));
  }

  keyed(event) {
    const at = this.links.indexOf(event.target.closest("a"));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.links.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = this.links[Math.max(0, Math.min(this.links.length - 1, to))];
    this.links[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  }
}
