// Marks and notes of runs and trials, kept by the server beside the runs.
import { Gone, get, put } from "./api.js";
import { el } from "./dom.js";
import { MARKS } from "./words.js";

const PAUSE_MS = 700, AGAIN_MS = 2000, MOST = 10000;
let kept = {};

export async function loadNotes(signal) {
  kept = await get("notes", signal).catch((problem) => {
    if (problem.name === "AbortError") throw problem;
    return {};
  });
}

export const noteOf = (key) => kept[key] ?? { mark: "", note: "" };

// A mark by its sign, with its word for those who do not see it.
export function markSign(mark) {
  if (!MARKS[mark]) return null;
  const [sign, word] = MARKS[mark];
  return el("span", { class: `mark-sign ${mark}`, role: "img", "aria-label": word, title: word }, sign);
}

// The editor: marks as buttons, a note that is kept while one types. `path` is the run, or run/trial/id.
export function noteEditor(key) {
  const now = { ...noteOf(key) };
  const said = el("span", { class: "kept", role: "status" });
  const text = el("textarea", { id: "note-text", rows: "2", maxlength: String(MOST), placeholder: "Note (n)", "aria-label": "Note" });
  text.value = now.note;
  let waiting = 0, sending = false, again = false;
  // One at a time: what was sent first must not arrive last.
  async function keep() {
    clearTimeout(waiting);
    again = sending;
    if (sending) return;
    sending = true;
    said.textContent = "keeping…";
    try {
      kept[key] = await put(`notes/${key.split("/").map(encodeURIComponent).join("/")}`, { mark: now.mark, note: now.note });
      said.textContent = now.mark || now.note ? "kept" : "";
    } catch (problem) {
      said.textContent = problem instanceof Gone ? "not saved yet: the server does not answer" : problem.message;
      if (problem instanceof Gone) waiting = setTimeout(keep, AGAIN_MS);
    }
    sending = false;
    if (again) keep();
  }
  const buttons = Object.entries(MARKS).map(([mark, [sign, word]]) => {
    const chip = el("button", { type: "button", class: "chip", "data-mark": mark, "aria-pressed": String(now.mark === mark) }, el("span", { "aria-hidden": "true", class: `mark-sign ${mark}` }, sign), ` ${word}`);
    chip.addEventListener("click", () => {
      now.mark = now.mark === mark ? "" : mark;
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.mark === now.mark)));
      keep();
    });
    return chip;
  });
  text.addEventListener("input", () => {
    now.note = text.value;
    said.textContent = "…";
    clearTimeout(waiting);
    waiting = setTimeout(keep, PAUSE_MS);
  });
  text.addEventListener("blur", () => text.value !== noteOf(key).note && keep());
  return el("div", { class: "note" }, el("div", { class: "chips", role: "group", "aria-label": "Mark" }, ...buttons, said), text);
}
