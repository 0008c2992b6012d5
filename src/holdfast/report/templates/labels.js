// Heads that would be cut alike are cut in the middle, so that they can be told apart.
const ruler = document.createElement("canvas").getContext("2d");

// A label for each name that is too wide and begins like another; the style cuts all others at their end.
function labelsOf(names, width, node) {
  const style = getComputedStyle(node), text = names.join("");
  ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const tooWide = (label) => ruler.measureText(label).width > width;
  const most = Math.floor((width * text.length) / ruler.measureText(text).width);
  const long = [...new Set(names)].filter((name) => name.length > most / 2 && tooWide(name));
  // Wide letters take room from the others.
  for (let room = most; room > 5; room--) {
    const labels = new Map(groupedBy(long, (name) => name.slice(0, room * 0.8)).flatMap((group) => labelsOfGroup(group, room)));
    if (![...labels.values()].some(tooWide)) return labels;
  }
  return new Map();
}

function groupedBy(names, key) {
  const groups = new Map();
  for (const name of names) {
    const found = key(name);
    if (groups.has(found)) groups.get(found).push(name);
    else groups.set(found, [name]);
  }
  return [...groups.values()];
}

// The middle left out where that tells a name from the others; else all but the part that differs; else a number.
function labelsOfGroup(group, room) {
  if (group.length < 2) return [];
  const head = Math.floor((room - 1) / 4), tail = room - 1 - head, [one, ...others] = group, labels = [];
  let same = head, open = group;
  while (same < one.length && others.every((other) => other[same] === one[same])) same++;
  for (const cut of [(name) => `${name.slice(0, head)}…${name.slice(-tail)}`, (name) => `${name.slice(0, head)}…${name.slice(same, same + tail - 1)}…`]) {
    const alike = groupedBy(open, cut);
    labels.push(...alike.filter((names) => names.length === 1).map(([name]) => [name, cut(name)]));
    open = alike.filter((names) => names.length > 1).flat();
  }
  return [...labels, ...open.map((name, n) => [name, `${name.slice(0, room - 1 - String(n + 1).length)}…${n + 1}`])];
}

function putLabels(nodes, names, width) {
  if (!nodes.length || !names.some((name) => name.length > 10)) return;
  const labels = labelsOf(names, width, nodes[0]);
  nodes.forEach((node, n) => {
    if (!labels.has(names[n])) return;
    node.replaceChildren(plain(labels.get(names[n])));
    node.parentNode.setAttribute("aria-label", names[n]);
  });
}
