// The cells of tables, as cells.py writes the first of them: every text escaped.

const CAUSE_CHARACTERS = 240;
const LIST_MAX = 4;
const LISTED_MAX = 40;
const JAVA_CLASSES = ["java.lang.Throwable: ", "java.lang.Exception: "];
const TONES = { ok: "out", slow: "warm", stuck: "bad" };

function escaped(text) {
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
  return String(text).replace(/[&<>"']/g, (mark) => marks[mark]);
}

function hinted(hint, shown) {
  return `<span title="${escaped(hint)}">${shown}</span>`;
}

function causeCell(value) {
  const text = JAVA_CLASSES.reduce((left, each) => {
    return left.startsWith(each) ? left.slice(each.length) : left;
  }, value);
  const characters = [...text];
  if (characters.length <= CAUSE_CHARACTERS) return escaped(text);
  return hinted(text, `${escaped(characters.slice(0, CAUSE_CHARACTERS).join(""))}…`);
}

function listOf(values) {
  if (Array.isArray(values)) return values.map(String);
  return Object.entries(values).map(([name, number]) => `${name} ${number.toLocaleString("en")}`);
}

function listCell(values) {
  const shown = listOf(values);
  const words = shown.slice(0, LIST_MAX).join(", ");
  const more = shown.length - LIST_MAX;
  if (more <= 0) return escaped(words);
  const left = more.toLocaleString("en");
  return hinted(shown.slice(0, LISTED_MAX).join(", "), `${escaped(words)} and ${left} more`);
}

const WORD_CELLS = {
  text: (value) => escaped(String(value).replaceAll("_", " ")),
  code: (value) => `<code title="${escaped(value)}">${escaped(value)}</code>`,
  cause: causeCell,
  badge: (value) => `<span class="badge tone-${TONES[value] || "gone"}">${escaped(value)}</span>`,
  flag: (value) => (value ? "yes" : ""),
  list: listCell,
  time: (value) => hinted(`${longMoment(value)} UTC`, shortMoment(value)),
};

function destinationCell(value, column, row) {
  if (value === null) return UNKNOWN;
  let shown = escaped(value + (data.labels[row("directory")] || ""));
  const subscription = row("subscription");
  if (subscription) shown += ` <span class="of">to ${escaped(subscription)}</span>`;
  const kind = escaped(row(`${column.name}_kind`) || "");
  const badge = kind ? `<span class="kind ${kind}">${kind}</span>` : "";
  return hinted(value, badge + shown);
}

function figureCell(value, column, row) {
  const write = CELL_TEXTS[column.unit];
  const text = value === null || value === undefined ? UNKNOWN : write(value);
  const shown = value ? text : `<i>${text}</i>`;
  const [low, high] = (column.bounds || []).map(row);
  if (typeof low !== "number" || typeof high !== "number") return shown;
  return hinted(`between ${write(low)} and ${write(high)}`, shown);
}

function barCell(value, column, row, highest) {
  const width = fixed(Math.max(0, (100 * (value || 0)) / highest), 1);
  return `<span class="measure"><span class="bar tone-${column.bar}">` +
    `<b style="width:${width}%"></b></span><span>${figureCell(value, { unit: column.unit }, row)}` +
    "</span></span>";
}

function rangeCell(value, column, row, highest) {
  const values = [value, ...column.ends.map(row)];
  if (values.some((each) => each === null)) return UNKNOWN;
  const [middle, high, top] = values.map((each) => {
    return (100 * Math.log10(1 + Math.max(0, each))) / Math.log10(1 + highest);
  });
  const far = `left:${fixed(high, 1)}%;width:${fixed(top - high, 1)}%`;
  const near = `left:${fixed(middle, 1)}%;width:${fixed(high - middle, 1)}%`;
  return `<span class="range"><b class="far" style="${far}"></b>` +
    `<b style="${near}"></b><i style="left:${fixed(middle, 1)}%"></i></span>`;
}

// Returns the HTML of a cell; `row` gives the value of another column of its row, `highest` is
// that of the scale.
function cellOf(column, row, highest) {
  const value = row(column.name);
  if (column.unit === "destination") return destinationCell(value, column, row);
  if (column.unit === "range") return rangeCell(value, column, row, highest);
  if (column.bar) return barCell(value, column, row, highest);
  if (CELL_TEXTS[column.unit]) return figureCell(value, column, row);
  return value === null ? UNKNOWN : WORD_CELLS[column.unit](value);
}
