// Answers and reasons of all runs that hold a text.
import { get } from "./api.js";
import { cellAddress, runAddress, trialAddress } from "./address.js";
import { appendVisible, el, plain } from "./dom.js";
import { plural } from "./words.js";

export async function search({ asked }, signal) {
  const page = { title: "Search", crumbs: [["Runs", "#/"], ["Search", location.hash.split("?")[0]]], up: "#/" };
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
  if (!q) return [title, el("p", { class: "lead" }, "Type what an answer, a prompt, a reason or a note holds, above (/).")];
  const found = await get(`search?${new URLSearchParams({ q, limit: 100, ...(run ? { run } : {}) })}`, signal);
  const told = `${found.hits.length ? plural(found.hits.length, "place") : "Nothing"} in ${plural(found.searched, "run")}${found.more ? ", and there may be more: what was not searched is older" : ""}`;
  return [title, el("p", { class: "lead", role: "status" }, told, run ? el("span", null, " (only ", plain(run), ")") : ""), el("ol", { class: "hits" }, ...found.hits.map((hit) => entry(hit)))];
}

function entry(hit) {
  const href = hit.trial ? trialAddress(hit.run, hit.trial) : hit.rule && hit.column ? cellAddress(hit.run, hit.rule, hit.column) : runAddress(hit.run);
  const text = el("p", { class: "excerpt", dir: "auto" }), [start, end] = hit.at ?? [0, 0], mark = el("mark");
  appendVisible(text, hit.text.slice(0, start));
  appendVisible(mark, hit.text.slice(start, end));
  if (end > start) text.append(mark);
  appendVisible(text, hit.text.slice(end));
  const where = [hit.rule, hit.column && `in ${hit.column}`].filter(Boolean).join(" ");
  return el("li", null, el("a", { href, "data-entry": true }, el("span", { class: "hit-head" }, el("b", null, plain(hit.run)), el("span", { class: "badge" }, hit.where), plain(where)), text));
}
