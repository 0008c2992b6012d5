// What the single-file report builds its elements with, for modules. Text only ever goes in as text.
export const { el, plain, passage, appendVisible, copyButton } = globalThis;

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
