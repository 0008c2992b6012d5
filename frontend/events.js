// What the server tells by itself. One connection a tab, and none while the tab is hidden: a browser has six a host.
import { lost } from "./api.js";

const HIDDEN_MS = 20000, FIRST_MS = 1000, LONGEST_MS = 15000;
const KINDS = ["runs", "progress", "cells", "trial", "ended"];
let source = null, address = null, hear = null, again = 0, wait = FIRST_MS, hiding = 0;

// `hear(kind, data)` is told what comes; `open` when a connection stands: then what is shown may be old.
export function listen(run, call) {
  close();
  address = run == null ? "api/events" : `api/events?run=${encodeURIComponent(run)}`;
  hear = call;
  wait = FIRST_MS;
  if (!document.hidden) open();
}

export function deafen() {
  close();
  hear = null;
}

function open() {
  if (!hear || source) return;
  clearTimeout(again);
  const mine = (source = new EventSource(address));
  mine.onopen = () => {
    wait = FIRST_MS;
    hear?.("open", {});
  };
  mine.onerror = () => mine === source && retry();
  for (const kind of KINDS) mine.addEventListener(kind, (event) => mine === source && hear?.(kind, parsed(event.data)));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function retry() {
  const refused = source.readyState === EventSource.CLOSED;
  close();
  if (!refused) fetch("api/runs?limit=0", { cache: "no-store" }).catch(lost);
  again = setTimeout(open, wait);
  wait = Math.min(2 * wait, LONGEST_MS);
}

function close() {
  clearTimeout(again);
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(close, HIDDEN_MS);
  else open();
});
