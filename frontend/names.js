// Shortens names so that no two that differ look alike: what they share goes, what tells them apart stays.
const DOTS = "…";

export const middle = (name, room) => {
  if (name.length <= room) return name;
  const tail = Math.floor((room - 1) / 2);
  return name.slice(0, room - 1 - tail) + DOTS + name.slice(name.length - tail);
};

const shared = (a, b) => {
  let n = 0;
  while (n < a.length && a[n] === b[n]) n++;
  return n;
};

// The name around the place where it parts from its likes.
function around(name, at, room) {
  const head = Math.max(4, Math.floor(room / 4)), rest = room - head - 2;
  const from = Math.max(head, Math.min(at - Math.floor(rest / 3), name.length - rest));
  return name.slice(0, head) + DOTS + name.slice(from, from + rest) + (from + rest < name.length ? DOTS : "");
}

export function tellable(names, room) {
  const short = names.map((name) => middle(name, room));
  const alike = new Map();
  short.forEach((text, n) => alike.set(text, [...(alike.get(text) ?? []), n]));
  for (const group of alike.values()) if (group.length > 1) apart(names, short, group, room);
  return short;
}

function apart(names, short, group, room) {
  const sorted = [...group].sort((a, b) => (names[a] < names[b] ? -1 : 1));
  sorted.forEach((n, i) => {
    const likes = [sorted[i - 1], sorted[i + 1]].filter((other) => other !== undefined && names[other] !== names[n]);
    if (likes.length) short[n] = around(names[n], Math.max(...likes.map((other) => shared(names[n], names[other]))), room);
  });
  const seen = new Map();
  for (const n of group) {
    const before = seen.get(short[n]) ?? 0;
    seen.set(short[n], before + 1);
    if (before && group.some((other) => other !== n && short[other] === short[n] && names[other] !== names[n])) short[n] += ` ·${before + 1}`;
  }
}

// Files by the shortest end of their path that no other of them has.
export function fileNames(paths) {
  const names = new Map();
  for (const path of paths) {
    const parts = path.split("/");
    let count = 1;
    while (count < parts.length && paths.some((other) => other !== path && other.endsWith(`/${parts.slice(-count).join("/")}`))) count++;
    names.set(path, parts.slice(-count).join("/"));
  }
  return names;
}
