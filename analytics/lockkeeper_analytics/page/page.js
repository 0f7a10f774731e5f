// The page's life: which destination is shown, what the pointer reads, where one is.

const data = JSON.parse(document.getElementById("data").textContent);
const charts = [];
const tip = document.getElementById("tip");

function shortened(text, characters) {
  return text.length <= characters ? text : `${text.slice(0, Math.max(1, characters - 1))}…`;
}

function countText(value) {
  if (value >= 1e9) return `${+(value / 1e9).toFixed(2)} G`;
  if (value >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toFixed(2));
}

function sizeText(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${+(value / 1024 ** power).toPrecision(3)} ${units[power]}`;
}

function durationText(value) {
  if (value < 1000) return `${+value.toFixed(value < 10 ? 1 : 0)} ms`;
  if (value < 60000) return `${+(value / 1000).toFixed(2)} s`;
  const minutes = value / 60000;
  if (minutes < 60) return `${+minutes.toFixed(1)} min`;
  return minutes < 2880 ? `${+(minutes / 60).toFixed(1)} h` : `${+(minutes / 1440).toFixed(1)} d`;
}

const FORMATS = {
  ms: durationText,
  bytes: sizeText,
  share: (value) => `${+(value * 100).toFixed(1)} %`,
};

function colored(lines) {
  return lines.map((line) => ({ ...line, color: `var(--${line.tone})` }));
}

function legend(host, lines) {
  const list = host.previousElementSibling;
  const keys = lines.map((line) => {
    const key = document.createElement("li");
    key.style.setProperty("--tone", line.color);
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
  const written = plot.rate ? (value) => `${format(value)} /s` : format;
  const chart = new TimeChart(host, { ...plot, marks: data.marks, format });
  chart.written = written;
  chart.listeners.push(read);
  charts.push(chart);
  const show = (index) => {
    const lines = linesOf(plot, plot.series[index]);
    chart.show(lines);
    legend(host, lines);
  };
  show(0);
  if (!choice) return;
  plot.series.forEach((series, index) => choice.append(new Option(series.label, index)));
  choice.addEventListener("change", () => show(Number(choice.value)));
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
  const { start, step } = chart.options;
  const head = document.createElement("b");
  const time = new Date(start + where.cell * step).toISOString();
  head.textContent = time.slice(step >= 3600000 ? 0 : 11, 19).replace("T", " ");
  const lines = chart.lines.filter((line) => line.values[where.cell] !== null);
  tip.replaceChildren(
    head, ...lines.map((line) => tipLine(line, line.values[where.cell], chart.written)),
  );
  const left = where.event.clientX + 16;
  const fits = left + tip.offsetWidth < window.innerWidth - 8;
  tip.style.left = `${fits ? left : where.event.clientX - tip.offsetWidth - 16}px`;
  tip.style.top = `${Math.min(where.event.clientY, window.innerHeight - tip.offsetHeight - 8)}px`;
}

for (const host of document.querySelectorAll("[data-plot]")) {
  const plot = data.plots[host.dataset.plot];
  const format = FORMATS[plot.unit] || countText;
  if (plot.kind === "lines") {
    drawLines(host, plot, format);
  } else {
    const Chart = plot.kind === "bars" ? BarChart : HeatMap;
    new Chart(host, { ...plot, format });
    if (plot.kind === "bars" && plot.lines.length > 1) legend(host, colored(plot.lines));
  }
}

function copied(button) {
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// Pages of files may not reach the clipboard everywhere: then the text is selected and copied.
async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  copied(button);
}

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", () => copy(button));
}

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
  for (const [name, link] of links) link.classList.toggle("here", name === first);
}, { rootMargin: "-10% 0px -55% 0px" });
for (const name of links.keys()) watcher.observe(document.getElementById(name));

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});
