// Answers and reasons of all runs that hold a text.
import { get } from "./api.js";
import { cellAddress, runAddress, searchAddress, trialAddress } from "./address.js";
import { appendVisible, el, inlined, plain, visible } from "./dom.js";
import { middle } from "./names.js";
import { TOP, plural } from "./words.js";

const EXCERPTS = 3, NAME = 60;

export async function search({ asked }, signal) {
  const page = { title: "Search", crumbs: [TOP, ["Search", location.hash.split("?")[0]]], up: "#/" };
  const holder = el("div", { class: "search-page" });
  page.body = [holder];
  const draw = async (q, run) => {
    page.title = q ? `${q} · Search` : "Search";
    holder.replaceChildren(...(await results(q, run, signal)));
  };
  page.follow = (address) => draw(address.asked.get("q") ?? "", address.asked.get("run") ?? "").catch(() => {});
  await draw(asked.get("q") ?? "", asked.get("run") ?? "");
  return page;
}

async function results(q, run, signal) {
  const title = el("h1", null, q ? plain(q) : "Search");
  if (!q) return [title, el("p", { class: "lead" }, `Type words of an answer, a prompt${inlined ? " or a reason" : ", a reason or a note"} above (/).`)];
  const found = await get(`search?${new URLSearchParams({ q, limit: 100, ...(run ? { run } : {}) })}`, signal);
  const told = `${found.hits.length ? plural(found.hits.length, "place") : "Nothing"} in ${inlined ? "this page" : plural(found.searched, "run")}${found.not_searched ? `; ${plural(found.not_searched, "older run")} not searched: ask for more words, or search one run` : found.more ? ", and there are more" : ""}`;
  return [title, el("p", { class: "lead", role: "status" }, told, run ? el("span", null, " (only run ", plain(run), "). ", el("a", { href: searchAddress(q) }, "Search all runs")) : ""), el("ol", { class: "hits" }, ...grouped(found.hits).map(entry))];
}

// Places of one trial make one entry.
function grouped(hits) {
  const groups = new Map();
  for (const hit of hits) {
    const key = JSON.stringify([hit.run, hit.trial || [hit.rule, hit.column]]);
    groups.set(key, [...(groups.get(key) ?? []), hit]);
  }
  return [...groups.values()];
}

function entry(hits) {
  const [hit] = hits, column = hits.find((one) => one.column)?.column, rules = [...new Set(hits.map((one) => one.rule).filter(Boolean))];
  const href = hit.trial ? trialAddress(hit.run, hit.trial) : hit.rule && hit.column ? cellAddress(hit.run, hit.rule, hit.column) : runAddress(hit.run);
  const whereIn = (name) => [rules.map(name).join(", "), column && `in ${name(column)}`].filter(Boolean).join(" ");
  const where = el("span", { title: visible(whereIn(String)) }, plain(whereIn((name) => middle(name, NAME))));
  return el("li", null, el("a", { href, "data-entry": true }, el("span", { class: "hit-head" }, hit.run ? el("b", null, plain(hit.run)) : null, where, hit.trial ? el("code", null, plain(hit.trial)) : null), ...hits.slice(0, EXCERPTS).map(excerpt), hits.length > EXCERPTS ? el("p", { class: "soft" }, `and ${hits.length - EXCERPTS} more`) : null));
}

function excerpt(hit) {
  const text = el("p", { class: "excerpt", dir: "auto" }), [start, end] = hit.at ?? [0, 0], mark = el("mark");
  appendVisible(text, hit.text.slice(0, start));
  appendVisible(mark, hit.text.slice(start, end));
  if (end > start) text.append(mark);
  appendVisible(text, hit.text.slice(end));
  text.prepend(el("span", { class: "where" }, plain(hit.where)));
  return text;
}
