// Talks to the server. When it does not answer a line says so, and the page comes back by itself. A page without a server carries the answers.
import { inlinedDocument } from "./documents.js";
import { inlined } from "./dom.js";

const gone = document.getElementById("gone");
const RETRY_MS = [1000, 2000, 4000, 8000];
let tries = 0, waiting = 0, onBack = () => {};

export class Refused extends Error {
  constructor(status, { error, hint } = {}) {
    super(error || `The server answered ${status}.`);
    this.status = status;
    this.hint = hint ?? "";
  }
}

export class Gone extends Error {}

const NOT_HERE = { error: "This page does not contain it.", hint: "To see all trials, run holdfast view or holdfast report -o run.json" };

export async function get(path, signal) {
  if (inlined) {
    const found = await inlinedDocument(path);
    if (found === undefined) throw new Refused(404, NOT_HERE);
    return found;
  }
  const answer = await reach(path, { signal });
  return answer.json();
}

export async function put(path, value) {
  const answer = await reach(path, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
  return answer.json();
}

async function reach(path, options) {
  let answer;
  try {
    answer = await fetch(`api/${path}`, { cache: "no-store", ...options });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    lost();
    throw new Gone("the server does not answer");
  }
  back();
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => ({})));
}

export function whenBack(call) {
  onBack = call;
}

export function lost() {
  gone.textContent = "The server does not respond. This page keeps trying; if holdfast view has stopped, start it again and open the address it prints.";
  gone.hidden = false;
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    get("runs?limit=0").catch(() => {});
  }, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
}

function back() {
  if (gone.hidden) return;
  gone.hidden = true;
  clearTimeout(waiting);
  waiting = tries = 0;
  onBack();
}
