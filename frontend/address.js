// The page's address: which page, which run, which trial, and what is filtered. It all stands in the fragment.
// The page of one run, which has no server, names no run.
import { inlined } from "./dom.js";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function readAddress(hash = location.hash) {
  const [path, ...query] = hash.replace(/^#\/?/, "").split("?");
  const [page, ...parts] = path.split("/").filter(Boolean).map(decoded);
  const asked = new URLSearchParams(query.join("?"));
  if (inlined && !page) return { page: "run", run: "", asked };
  if (inlined && page === "trial" && parts.length) return { page, run: "", trial: parts.join("/"), asked };
  if (page === "run") {
    const at = parts.indexOf("trial");
    if (at > 0 && parts[at + 1]) return { page: "trial", run: parts.slice(0, at).join("/"), trial: parts.slice(at + 1).join("/"), asked };
    if (parts.length) return { page: "run", run: parts.join("/"), asked };
  }
  if (page === "compare" && parts.length === 2) return { page, a: parts[0], b: parts[1], asked };
  if (page === "search") return { page, asked };
  return { page: page ? "missing" : "list", asked };
}

const segments = (id) => id.split("/").map(encodeURIComponent).join("/");
const withQuery = (path, asked) => (asked && String(asked) ? `${path}?${asked}` : path);

const home = (run) => (inlined ? "#" : `#/run/${segments(run)}`);

export const runAddress = (run, asked) => withQuery(inlined ? "#/" : home(run), asked && new URLSearchParams(asked));
export const trialAddress = (run, trial) => `${home(run)}/trial/${encodeURIComponent(trial)}`;
export const cellAddress = (run, rule, column) => runAddress(run, { cell: `${rule}|${column}` });
export const compareAddress = (a, b) => `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;
export const searchAddress = (text, run) => withQuery("#/search", new URLSearchParams({ q: text, ...(run ? { run } : {}) }));
export const runPath = (run) => (inlined ? "run" : `runs/${segments(run)}`);
export const trialPath = (run, trial) => `${runPath(run)}/trial/${encodeURIComponent(trial)}`;

// Changes what is asked of the page that is shown, and adds nothing to the history. Empty values go.
export function ask(changes) {
  const [path, ...query] = location.hash.split("?");
  const asked = new URLSearchParams(query.join("?"));
  for (const [name, value] of Object.entries(changes)) {
    if (value) asked.set(name, value);
    else asked.delete(name);
  }
  history.replaceState(history.state, "", withQuery(path || "#/", asked));
}
