// The page's life: which destination is shown, what the pointer reads, where one is.

const data = JSON.parse(document.getElementById("data").textContent);
const charts = [];
const tip = document.getElementById("tip");
const said = document.getElementById("said");

function colored(lines) {
  return lines.map((line) => ({ ...line, color: `var(--${line.tone})` }));
}

function legend(host, lines) {
  const list = host.closest("figure").querySelector(".legend");
  const keys = lines.map((line, place) => {
    const key = document.createElement("li");
    key.style.setProperty("--tone", line.color);
    key.className = `dash-${place}`;
    key.textContent = line.name;
    return key;
  });
  list.replaceChildren(...keys);
}

// Returns the lines of one series that have a value; of rates the first two in any case.
function linesOf(plot, series) {
  const lines = colored(plot.lines).map((line, at) => {
    const values = series.values[at];
    const under = series.values[line.floor];
    const floor = line.floor === null ? null : (cell) => (under ? under[cell] : 0);
    return { ...line, values, floor };
  });
  return lines.filter((line, at) => (plot.rate && at < 2) || line.values.some((value) => value));
}

function drawLines(host, plot, format) {
  const choice = document.querySelector(`select[data-for="${host.dataset.plot}"]`);
  const chart = new TimeChart(host, { ...plot, marks: data.marks, format });
  chart.written = plot.rate ? (value) => `${format(value)} /s` : format;
  chart.listeners.push(read);
  charts.push(chart);
  host.tabIndex = 0;
  host.setAttribute("role", "application");
  host.setAttribute("aria-roledescription", "plot");
  host.setAttribute("aria-describedby", "keys-help");
  timeRange.listeners.push((range) => chart.narrow(range));
  const show = (index) => {
    const lines = linesOf(plot, plot.series[index]);
    chart.show(lines);
    legend(host, lines);
  };
  show(0);
  if (!choice) return chart;
  plot.series.forEach((series, index) => choice.append(new Option(series.label, index)));
  choice.addEventListener("change", () => show(Number(choice.value)));
  return chart;
}

function tipLine(line, value, format) {
  const row = document.createElement("div");
  const dot = document.createElement("i");
  dot.style.background = line.color;
  row.append(dot, `${line.name} ${format(value)}`);
  return row;
}

function read(where, chart) {
  for (const each of charts) each.pointAt(where ? where.at : null);
  tip.hidden = !where;
  if (!where) return;
  const head = document.createElement("b");
  const time = new Date(where.at).toISOString();
  head.textContent = time.slice(chart.options.step >= 3600000 ? 0 : 11, 19).replace("T", " ");
  const lines = chart.lines.filter((line) => line.values[where.cell] !== null);
  tip.replaceChildren(
    head, ...lines.map((line) => tipLine(line, line.values[where.cell], chart.written)),
  );
  const left = where.x + 16;
  const fits = left + tip.offsetWidth < window.innerWidth - 8;
  tip.style.left = `${fits ? left : where.x - tip.offsetWidth - 16}px`;
  tip.style.top = `${Math.min(where.y, window.innerHeight - tip.offsetHeight - 8)}px`;
  if (where.isSaid) said.textContent = tip.innerText.replaceAll("\n", ", ");
}

function drawFigures(place, chart) {
  const { headings, rows } = chart.figures();
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const heading of headings) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = heading;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value;
  }
  place.replaceChildren(table);
}

// What is drawn is told in words, and as a table where one is opened.
function accompany(host, chart) {
  const drawn = document.querySelector(`[data-drawn="${host.dataset.plot}"]`);
  const title = host.getAttribute("aria-label");
  const renew = () => {
    host.setAttribute("aria-label", `${title}. ${chart.summary()}`);
    if (drawn.open) drawFigures(drawn.querySelector(".scroll"), chart);
  };
  drawn.addEventListener("toggle", renew);
  timeRange.listeners.push(renew);
  const choice = document.querySelector(`select[data-for="${host.dataset.plot}"]`);
  if (choice) choice.addEventListener("change", renew);
  renew();
}

const timed = Object.values(data.plots).find((plot) => plot.kind === "lines");
if (timed) timeRange.offer(timed.start, timed.start + timed.step * timed.cells);

for (const host of document.querySelectorAll("[data-plot]")) {
  const plot = data.plots[host.dataset.plot];
  const format = FORMATS[plot.unit] || countText;
  let chart;
  if (plot.kind === "lines") {
    chart = drawLines(host, plot, format);
  } else {
    const Chart = plot.kind === "bars" ? BarChart : HeatMap;
    chart = new Chart(host, { ...plot, format });
    if (plot.kind === "bars" && plot.lines.length > 1) legend(host, colored(plot.lines));
  }
  accompany(host, chart);
}

const tables = new Map();
for (const host of document.querySelectorAll("[data-table]")) {
  const name = host.dataset.table;
  tables.set(name, new DataTable(host, name, data.tables[name]));
}

const opened = [];
window.addEventListener("beforeprint", () => {
  for (const table of tables.values()) table.print(true);
  for (const each of document.querySelectorAll("details:not(.sql, .drawn):not([open])")) {
    each.open = true;
    opened.push(each);
  }
});
window.addEventListener("afterprint", () => {
  for (const table of tables.values()) table.print(false);
  for (const each of opened.splice(0)) each.open = false;
});

for (const button of document.querySelectorAll(".sql .copy")) {
  button.addEventListener("click", () => copy(button));
}

// A link into a report that is folded opens it.
function unfold() {
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  const folded = target && target.querySelector(":scope > details");
  if (folded) folded.open = true;
}
window.addEventListener("hashchange", unfold);
unfold();

// The table of contents shows which report is being read.
const links = new Map();
for (const link of document.querySelectorAll("nav a")) links.set(link.hash.slice(1), link);
const seen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) seen.add(target.id);
    else seen.delete(target.id);
  }
  const first = [...links.keys()].find((name) => seen.has(name));
  for (const [name, link] of links) {
    link.classList.toggle("here", name === first);
    if (name === first) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-10% 0px -55% 0px" });
for (const name of links.keys()) watcher.observe(document.getElementById(name));

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("lockkeeper-theme", root.dataset.theme);
  } catch {
    // Where a browser keeps nothing for files, the choice lasts as long as the page.
  }
});
