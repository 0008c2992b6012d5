// Whether this is report.html, the page of one run that has no server: it carries its documents.
export const inlined = document.getElementById("data") !== null;

// Builds elements. Text only ever goes in as text, so nothing in the data can become markup.
export function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

// Controls, bidi overrides and invisible characters are shown by their number.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;

export function appendVisible(parent, text) {
  let rest = text;
  for (let at = rest.search(HIDDEN); at >= 0; at = rest.search(HIDDEN)) {
    const code = rest.charCodeAt(at).toString(16);
    const name = code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
    parent.append(rest.slice(0, at), el("span", { class: "hidden-char", title: `U+${code.padStart(4, "0").toUpperCase()}` }, name));
    rest = rest.slice(at + 1);
  }
  parent.append(rest);
}

const SHOWN = 20000, UNBROKEN = /(\S{300,})/, PIECES = /[^]{1,200}/gu, HALF = /^[\udc00-\udfff]/;

// A word that fills lines may break anywhere; cut in pieces, as the time to lay out one grows with the square of its length.
function appendText(parent, text) {
  text.split(UNBROKEN).forEach((part, n) => {
    if (n % 2 === 0) return appendVisible(parent, part);
    const word = el("span", { class: "unbroken" });
    for (const piece of part.match(PIECES)) {
      appendVisible(word, piece);
      word.append(el("wbr"));
    }
    parent.append(word);
  });
}

function appendMarked(block, text, from, to, marks) {
  let at = from;
  for (const [start, end] of marks) {
    if (start < at || end <= start || end > to) continue;
    appendText(block, text.slice(at, start));
    const mark = el("mark");
    appendText(mark, text.slice(start, end));
    block.append(mark);
    at = end;
  }
  appendText(block, text.slice(at, to));
}

// A block of text with the deciding spans marked. Of a long one there is the beginning, up to the last mark, and a button for more.
export function passage(text = "", marks = []) {
  const block = el("pre", { class: "text", dir: "auto" }), sorted = [...marks].sort((a, b) => a[0] - b[0]);
  const more = el("button", { type: "button", class: "more-text", onclick: () => (add(), more.focus({ preventScroll: true })) });
  let at = 0;
  function add() {
    let to = Math.min(text.length, Math.max(at + SHOWN, ...sorted.map(([, end]) => end)));
    if (HALF.test(text.charAt(to))) to++;
    more.remove();
    appendMarked(block, text, at, to, sorted);
    at = to;
    if (at === text.length) return;
    const left = text.length - at;
    more.textContent = `Show ${Math.min(SHOWN, left).toLocaleString("en")} of ${left.toLocaleString("en")} more characters`;
    block.append(more);
  }
  add();
  return block;
}

export function plain(text, tag = "bdi") {
  const made = el(tag);
  appendVisible(made, text ?? "");
  return made;
}

export function copyButton(text) {
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Select it and copy";
    setTimeout(() => (button.textContent = "Copy"), 1600);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Some browsers give a page from disk no clipboard.
    const area = el("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A text for where no element can stand: a tooltip, an option, a title.
export function visible(text) {
  const holder = document.createElement("i");
  appendVisible(holder, text ?? "");
  return holder.textContent;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) if (value != null && value !== false) made.setAttribute(name, value);
  made.append(...children.filter((child) => child != null && child !== ""));
  return made;
}

// A control that does something, in words.
export function button(text, onclick, attributes) {
  return el("button", { type: "button", onclick, ...attributes }, text);
}

// A command in its words, so that a line never ends inside of one.
export function command(text) {
  const words = text.split(" ").flatMap((word, n) => [n ? " " : "", plain(word, "span")]);
  return el("div", { class: "command" }, el("code", { dir: "ltr" }, ...words), copyButton(text));
}

// A titled part of a page; null where it has nothing to show.
export function section(title, ...content) {
  const shown = content.filter((one) => one != null);
  return shown.length ? el("section", null, el("h2", null, title), ...shown) : null;
}

export function facts(pairs) {
  const rows = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", { class: "facts" }, ...rows.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, typeof value === "string" ? plain(value) : value))));
}
