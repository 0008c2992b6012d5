// Signs, words and numbers as every page says them: a word stands beside each sign.
import { el, inlined } from "./dom.js";

// The first of the crumbs: where the brand leads to.
export const TOP = [inlined ? "Run" : "Runs", "#/"];

export const OUTCOMES = ["pass", "fail", "error", "unproven", "n/a"];
export const SIGNS = { pass: "✔", fail: "✘", error: "!", unproven: "?", "n/a": "–" };
const STATES = { running: "▸", interrupted: "!", killed: "!", unreadable: "!", flaky: "≈" };
export const MARKS = { star: ["★", "starred"], todo: ["○", "to do"], ok: ["✔", "reviewed"], wrong: ["✘", "wrong verdict"] };

export const toneOf = (word) => (word ?? "").toLowerCase().replace("/", "");

export function badge(word) {
  const sign = SIGNS[word.toLowerCase()] ?? STATES[word];
  return el("span", { class: `badge ${toneOf(word)}` }, sign ? el("span", { "aria-hidden": "true" }, sign) : null, ` ${word}`);
}

// What one run came to, in a word: its verdict, or why it has none.
export function wordOf(run) {
  if (run.state === "ended") return run.verdict || "ended";
  return run.state;
}

export const scoreOf = (run) => run.score ?? null;
export const number = (value) => (value == null ? "–" : value.toFixed(2));
export const span = (low, high) => (low == null || high == null ? "" : `${Math.round(low)}–${Math.round(high)}`);
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export function money(usd) {
  if (usd == null) return "";
  return usd >= 1 || usd === 0 ? `$${usd.toFixed(2)}` : usd >= 0.001 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(6)}`;
}

export function took(seconds) {
  if (seconds == null) return "";
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function milliseconds(ms) {
  if (ms >= 10000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${Number(ms.toFixed(1))} ms`;
}

export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${String(Math.floor(whole / 60)).padStart(2, "0")}:${String(whole % 60).padStart(2, "0")}`;
}

// When a run began: the time of today, else the day and the time.
export function when(iso, now = new Date()) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return el("span", null, "");
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const year = at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  const day = at.toDateString() === now.toDateString() ? "today" : at.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year });
  return el("time", { datetime: iso, title: at.toLocaleString("en-GB") }, `${day} ${time}`);
}

