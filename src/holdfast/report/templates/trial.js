// One trial: what was asked, what came back, the faults on the way, how to see it again.
function trialView(t, open) {
  const prompt = strings[trials.prompt[t]];
  const summary = el("summary", null, badge(trials.outcome[t]), el("span", { class: "asked" }, plain(prompt.slice(0, 120))), el("span", { class: "ms" }, duration(trials.latency[t])));
  const view = el("details", { class: "trial" }, summary);
  const fill = () => view.childElementCount === 1 && view.append(...trialBody(t));
  view.addEventListener("toggle", () => view.open && fill());
  if (open) {
    fill();
    view.open = true;
  }
  return view;
}

function trialBody(t) {
  const more = data.more[t] ?? {};
  const again = strings[trials.again[t]].replaceAll("\0", trials.id[t]);
  const ending = part("Ending", plain(endingOf(t), "p"));
  const badly = !strings[trials.ending[t]].startsWith("answered");
  return [
    badly ? ending : null,
    ...(more.turns ? conversation(more) : exchange(t, more)),
    part("Because", plain(strings[trials.reason[t]] || "no reason was recorded", "p")),
    more.calls ? part("Calls, in order", callTimeline(more)) : null,
    trials.faults[t].length ? part("Faults that fired, in order", timeline(trials.faults[t])) : null,
    badly ? null : ending,
    more.details ? part("Evidence", evidence(more.details)) : null,
    more.notes ? part("Notes", el("ul", null, ...more.notes.map((n) => plain(strings[n], "li")))) : null,
    more.output ? part("Output", passage(strings[more.output])) : null,
    again ? part("See it again", el("div", { class: "command" }, el("code", null, plain(again)), copyButton(again))) : null,
  ].filter(Boolean);
}

function part(title, ...content) {
  return el("section", null, el("h4", null, title), ...content);
}

function exchange(t, more) {
  const answer = trials.answer[t];
  return [
    part("Asked", passage(strings[trials.prompt[t]])),
    part("Answered", answer < 0 || strings[answer] === "" ? el("p", { class: "nothing" }, "nothing") : passage(strings[answer], more.marks)),
  ];
}

function conversation(more) {
  return more.turns.flatMap(([asked, said, ending, ms], n) => [
    part(`Asked, turn ${n + 1}`, passage(strings[asked])),
    part(`Answered after ${duration(ms)}`,
      said < 0 ? plain(`nothing (${strings[ending]})`, "p") : passage(strings[said], n === (more.turn ?? 0) ? more.marks : [])),
  ]);
}

function timeline(list) {
  return el("ol", { class: "timeline" }, ...list.map((n) => {
    const [call, met, plane, target, mode, would, got, note] = data.faults[n].map((v, i) => (i < 2 ? v : strings[v]));
    const where = target && target !== "*" && target !== plane ? `${plane} ${target}` : plane;
    return el("li", { class: met ? "" : "idle" },
      el("p", null, el("span", { class: "call" }, `call ${call}`), plain(where, "b"), " ", plain(mode, "code"), ...known(mode), met ? null : el("i", null, " no effect")),
      would || got ? el("p", { class: "change" }, el("del", null, plain(would || "nothing")), el("span", { "aria-label": "became" }, " → "), el("ins", null, plain(got || "nothing"))) : null,
      note ? plain(note, "p") : null);
  }));
}

// What public lists call an attack.
function known(mode) {
  return (Object.hasOwn(data.standards, mode) ? data.standards[mode] : []).flatMap(([id, title, list]) => [" ", el("abbr", { class: "standard", title: `${title} (${list})` }, id)]);
}

// Each call is three numbers: its kind, when it began and how long it took, in milliseconds.
function callTimeline(more) {
  const rows = [];
  for (let i = 0; i < more.calls.length; i += 3) rows.push(more.calls.slice(i, i + 3));
  const whole = Math.max(1, ...rows.map(([, from, took]) => from + took));
  const list = el("ol", { class: "calls" }, ...rows.map((row) => callRow(row, whole)));
  return more.rest ? el("div", null, list, plain(strings[more.rest], "p")) : list;
}

function callRow([kind, from, took], whole) {
  const [retry, tokens, failed, ...words] = data.calls[kind];
  const [plane, tool, ending, fault, sent, script] = words.map((n) => strings[n]);
  const bar = el("i");
  bar.style.setProperty("margin-left", `${(100 * from) / whole}%`);
  bar.style.setProperty("width", `${(100 * took) / whole}%`);
  return el("li", { class: fault ? "faulty" : failed ? "failed" : "" },
    el("span", { class: "when" }, `${duration(Math.round(from))}`),
    el("span", { class: "bar", "aria-hidden": "true" }, bar),
    el("span", { class: "what" },
      el("span", { class: "plane" }, plain(plane)), " ", plain(tool, "b"), " ",
      el("span", { class: "took" }, duration(took)),
      ending ? el("span", { class: "ending" }, " ", plain(ending)) : null,
      retry ? el("span", { class: "retry" }, ` ↻ retry ${retry}`) : null,
      tokens ? el("span", { class: "took" }, ` ${tokens} tokens`) : null,
      script ? el("span", { class: "took" }, " script ", plain(script)) : null,
      fault ? el("span", null, " ", plain(fault, "code")) : null,
      sent ? plain(sent, "small") : null));
}

function evidence(details) {
  return el("dl", { class: "evidence" }, ...Object.entries(details).map(([name, value]) => {
    const row = fact(name);
    row.lastChild.append(passage(value));
    return row;
  }));
}

function endingOf(t) {
  const replica = trials.replica[t] ? ` · replica ${trials.replica[t] + 1}` : "";
  return `${strings[trials.ending[t]]} after ${duration(trials.latency[t])}${replica} · trial ${trials.id[t]}`;
}

function duration(ms) {
  return ms >= 10000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 10 ? `${Math.round(ms)} ms` : `${ms} ms`;
}
