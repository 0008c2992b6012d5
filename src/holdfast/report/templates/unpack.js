// The run's data: base64, gzip, JSON. Columns of numbers over one table of strings.
async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(packed.length);
  // A plain loop: Uint8Array.from with a function takes ten times as long here.
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const OUTCOMES = ["pass", "fail", "error", "unproven", "n/a"];
const SIGNS = ["✔", "✘", "!", "?", "–"];
const PASS = 0, NOT_APPLICABLE = 4;

const data = await unpack().catch((problem) => {
  document.getElementById("status").textContent = "This browser cannot unpack the matrix. report.json has the same content.";
  throw problem;
});
const { rules, columns, cells, trials, strings } = data;
const cellCount = cells.rule.length;

// Which cell stands at a rule and a column; -1 where there is none.
const cellAt = new Int32Array(rules.length * columns.length).fill(-1);
for (let i = 0; i < cellCount; i++) cellAt[cells.rule[i] * columns.length + cells.column[i]] = i;

const ruleName = (cell) => rules[cells.rule[cell]][0];
const columnName = (n) => (columns[n][1] ? `${columns[n][0]} [${columns[n][1]}]` : columns[n][0]);
const trialsOf = (cell) => [cells.first[cell], cell + 1 < cellCount ? cells.first[cell + 1] : trials.id.length];
