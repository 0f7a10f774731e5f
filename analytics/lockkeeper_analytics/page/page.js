// The page's life: which destination is shown, what the pointer reads, light or dark.

const data = JSON.parse(document.getElementById("data").textContent);

function countText(value) {
  if (value >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toFixed(1));
}

function durationText(value) {
  if (value < 1000) return `${+value.toFixed(value < 10 ? 1 : 0)} ms`;
  if (value < 60000) return `${+(value / 1000).toFixed(2)} s`;
  const minutes = value / 60000;
  return minutes < 60 ? `${+minutes.toFixed(1)} min` : `${+(minutes / 60).toFixed(1)} h`;
}

const common = { start: data.start, step: data.step, cells: data.cells, marks: data.marks };
const flow = new TimeChart(document.getElementById("flow"), { ...common, format: countText });
const delay = new TimeChart(document.getElementById("delay"), {
  ...common, format: durationText, logarithmic: true,
});

function linesOf(series) {
  const rates = [
    { name: "came in", color: "var(--in)", values: series.in, floor: () => 0 },
    { name: "left", color: "var(--out)", values: series.out },
    { name: "dead letters", color: "var(--bad)", values: series.dead },
  ];
  const late = [
    {
      name: "99 % within", color: "var(--p99)", values: series.p99 || [],
      floor: (cell) => series.p50[cell],
    },
    { name: "half within", color: "var(--p50)", values: series.p50 || [] },
  ];
  const used = (line) => line.values.some((value) => value);
  return { rates: rates.filter((line, at) => at < 2 || used(line)), late: late.filter(used) };
}

function legend(host, lines) {
  const keys = lines.map((line) => {
    const key = document.createElement("li");
    key.style.setProperty("--tone", line.color);
    key.textContent = line.name;
    return key;
  });
  document.getElementById(host).replaceChildren(...keys);
}

function show(index) {
  const series = data.series[index];
  const { rates, late } = linesOf(series);
  flow.show(rates);
  delay.host.hidden = !late.length;
  delay.show(late);
  legend("flow-legend", rates);
  legend("delay-legend", late);
  const what = index ? "Half and 99 % of the messages acknowledged then took no longer"
    : "Half and 99 % took no longer, at the slowest destination of each moment";
  document.getElementById("latency-note").textContent = late.length ? `${what}.`
    : "Nothing was acknowledged here.";
}

const tip = document.getElementById("tip");

function tipLine(line, value, format) {
  const row = document.createElement("div");
  const dot = document.createElement("i");
  dot.style.background = line.color;
  row.append(dot, `${line.name} ${format(value)}`);
  return row;
}

function read(where) {
  flow.pointAt(where);
  delay.pointAt(where);
  tip.hidden = !where;
  if (!where) return;
  const at = data.start + where.cell * data.step;
  const head = document.createElement("b");
  head.textContent = new Date(at).toISOString().slice(data.step >= 86400000 ? 0 : 11, 19);
  const rows = [head];
  for (const line of flow.lines) {
    rows.push(tipLine(line, line.values[where.cell], (value) => `${countText(value)} /s`));
  }
  for (const line of delay.lines) {
    const value = line.values[where.cell];
    if (value !== null) rows.push(tipLine(line, value, durationText));
  }
  tip.replaceChildren(...rows);
  const left = where.event.clientX + 16;
  const fits = left + tip.offsetWidth < window.innerWidth - 8;
  tip.style.left = `${fits ? left : where.event.clientX - tip.offsetWidth - 16}px`;
  tip.style.top = `${Math.min(where.event.clientY, window.innerHeight - tip.offsetHeight - 8)}px`;
}

flow.listeners.push(read);
delay.listeners.push(read);

const choice = document.getElementById("series");
data.series.forEach((series, index) => choice.append(new Option(series.label, index)));
choice.addEventListener("change", () => show(Number(choice.value)));
if (data.series.length) show(0);

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
});
