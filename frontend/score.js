// The score of a run as a number, on its gauge, and what stands beside it.
import { el, plain, svg } from "./dom.js";
import { number, span } from "./words.js";

export function scoreView({ number: value, low, high, interval, min_score: least, calm_and_chaos: kinds, pass_hat: hats, paired }, label) {
  const told = interval || (span(low, high) ? `95 %: ${span(low, high)}` : "");
  const parts = [...(kinds ?? []), ...Object.entries(hats ?? {}).map(([k, one]) => [`pass^${k}`, one.toFixed(2)])];
  return el("section", { class: "score", "aria-label": "Score" },
    el("p", { class: "number" }, el("span", { class: "label" }, label), " ", el("strong", null, number(value))),
    value == null ? el("p", { class: "nothing" }, "No score yet.") : el("figure", null, gauge(value, low, high, least, `${label} ${number(value)} of 100; ${told}`), el("figcaption", null, told ? el("span", null, plain(told)) : null, least == null ? null : el("span", null, `minimum ${least}`))),
    el("dl", { class: "parts" }, ...parts.map(([name, one]) => el("div", null, el("dt", null, plain(name)), el("dd", null, plain(one))))),
    paired ? plain(paired, "p") : null);
}

function gauge(value, low, high, least, label) {
  const line = (kind, at, from, to) => svg("line", { class: kind, x1: `${at}%`, x2: `${at}%`, y1: from, y2: to });
  return svg("svg", { class: "gauge", width: "100%", height: 46, role: "img", "aria-label": label },
    svg("rect", { class: "track", x: 0, y: 15, width: "100%", height: 6, rx: 3 }),
    low == null || high == null ? null : svg("rect", { class: "band", x: `${low}%`, y: 11, width: `${high - low}%`, height: 14, rx: 3 }),
    least == null ? null : line("least", least, 5, 31), line("here", value, 7, 29),
    svg("text", { x: 0, y: 44 }, "0"), svg("text", { x: "50%", y: 44, "text-anchor": "middle" }, "50"), svg("text", { x: "100%", y: 44, "text-anchor": "end" }, "100"));
}
