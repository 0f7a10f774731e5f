"use strict";

// What all plots share, and the chart of values over cells of time: SVG, drawn by this page alone.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 18, right: 10, bottom: 24, left: 58 };
const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  172800, 604800, 1209600, 2592000,
];

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

function niceStep(span, parts) {
  const rough = Math.max(span / parts, Number.EPSILON);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

function linearScale(values) {
  const step = niceStep(Math.max(1, ...values), 4);
  const top = Math.ceil(Math.max(1, ...values) / step) * step;
  const ticks = [];
  for (let tick = 0; tick <= top + step / 2; tick += step) ticks.push(tick);
  return { ticks, place: (value) => value / top };
}

function logarithmicScale(values) {
  const known = values.filter((value) => value !== null).map((value) => Math.max(value, 0.5));
  const low = Math.floor(Math.log10(Math.min(...known, 1000)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...known, 1))));
  const ticks = [];
  for (let power = low; power <= high; power += 1) ticks.push(10 ** power);
  const place = (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  return { ticks, place };
}

function timeTicks(start, end, parts) {
  const wanted = (end - start) / 1000 / parts;
  const step = 1000 * (TIME_STEPS.find((each) => each >= wanted) || TIME_STEPS.at(-1));
  const ticks = [];
  for (let at = Math.ceil(start / step) * step; at <= end; at += step) ticks.push(at);
  return { ticks, step };
}

function timeText(at, step) {
  const text = new Date(at).toISOString();
  if (step >= 86400000) return text.slice(5, 10);
  return step >= 60000 ? text.slice(11, 16) : text.slice(11, 19);
}

// Returns the cells of `values` that hang together, as lists: null breaks them.
function runsOf(values) {
  const runs = [];
  values.forEach((value, cell) => {
    if (value === null) return;
    if (!cell || values[cell - 1] === null) runs.push([]);
    runs.at(-1).push(cell);
  });
  return runs;
}

// Draws `lines` ({ name, color, values, floor: cell => value under the shaded area }) into `host`;
// `options`: start, step, cells, marks, logarithmic, format.
class TimeChart {
  constructor(host, options) {
    this.host = host;
    this.options = options;
    this.lines = [];
    this.listeners = [];
    new ResizeObserver(() => this.draw()).observe(host);
    host.addEventListener("pointermove", (event) => this.point(event));
    host.addEventListener("pointerleave", () => this.tell(null));
  }

  show(lines) {
    this.lines = lines;
    this.draw();
  }

  x(at) {
    const { start, step, cells } = this.options;
    const width = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((at - start) / (step * cells)) * width;
  }

  middle(cell) {
    return this.x(this.options.start + (cell + 0.5) * this.options.step);
  }

  y(value) {
    const height = this.height - MARGIN.top - MARGIN.bottom;
    return MARGIN.top + height * (1 - this.scale.place(value));
  }

  draw() {
    this.width = this.host.clientWidth;
    this.height = this.host.clientHeight;
    if (!this.width || !this.lines.length) return;
    const values = this.lines.flatMap((line) => line.values);
    this.scale = this.options.logarithmic ? logarithmicScale(values) : linearScale(values);
    const box = `0 0 ${this.width} ${this.height}`;
    this.svg = element("svg", { viewBox: box });
    this.drawGrid();
    for (const line of this.lines) this.drawLine(line);
    this.drawMarks();
    this.cursor = element("line", { class: "cursor", visibility: "hidden" }, this.svg);
    this.host.replaceChildren(this.svg);
  }

  drawGrid() {
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    for (const tick of this.scale.ticks) {
      const y = this.y(tick);
      element("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }, this.svg);
      const place = { x: MARGIN.left - 9, y: y + 4, "text-anchor": "end" };
      element("text", place, this.svg).textContent = this.options.format(tick);
    }
    const { start, step, cells } = this.options;
    const times = timeTicks(start, start + step * cells, this.width / 110);
    for (const at of times.ticks) {
      const place = { x: this.x(at), y: bottom + 18, "text-anchor": "middle" };
      element("text", place, this.svg).textContent = timeText(at, times.step);
    }
  }

  drawLine(line) {
    const place = (cell, value) => {
      return `${this.middle(cell).toFixed(1)} ${this.y(value).toFixed(1)}`;
    };
    for (const run of runsOf(line.values)) {
      const upper = run.map((cell) => place(cell, line.values[cell]));
      if (line.floor) {
        const lower = run.map((cell) => place(cell, line.floor(cell))).reverse();
        const shape = `M${upper.join("L")}L${lower.join("L")}Z`;
        element("path", { d: shape, fill: line.color, opacity: 0.15 }, this.svg);
      }
      // A run of one cell is a dot: a line of no length with round ends.
      const stroke = { fill: "none", stroke: line.color, "stroke-width": upper[1] ? 1.9 : 5 };
      const round = { "stroke-linejoin": "round", "stroke-linecap": "round" };
      const path = { d: `M${upper.join("L")}${upper[1] ? "" : "h.01"}` };
      element("path", { ...path, ...stroke, ...round }, this.svg);
    }
  }

  drawMarks() {
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    const inside = (at) => Math.min(Math.max(this.x(at), MARGIN.left), right);
    for (const mark of this.options.marks) {
      const x = inside(mark.at);
      const from = inside(mark.since);
      const y = MARGIN.top - 4;
      if (mark.event !== "stop") {
        const silent = { x: from, width: x - from, y, height: bottom - y };
        element("rect", { class: "silent", ...silent }, this.svg);
      }
      element("line", { class: "mark-line", x1: x, x2: x, y1: y, y2: bottom }, this.svg);
      if (mark.event === "takeover") this.label(x, "take-over");
    }
  }

  label(x, text) {
    const late = x > this.width - 120;
    const place = { x: x + (late ? -6 : 6), y: MARGIN.top + 6 };
    const side = { class: "mark-label", "text-anchor": late ? "end" : "start" };
    element("text", { ...place, ...side }, this.svg).textContent = text;
  }

  point(event) {
    const { start, step, cells } = this.options;
    const box = this.host.getBoundingClientRect();
    const width = this.width - MARGIN.left - MARGIN.right;
    const share = (event.clientX - box.left - MARGIN.left) / width;
    const cell = Math.floor(share * cells);
    this.tell(cell >= 0 && cell < cells ? { cell, event, at: start + (cell + 0.5) * step } : null);
  }

  tell(where) {
    for (const listener of this.listeners) listener(where, this);
  }

  // Shows the cursor at a time, which may come from another chart.
  pointAt(at) {
    if (!this.cursor) return;
    const { start, step, cells } = this.options;
    const cell = at === null ? -1 : Math.floor((at - start) / step);
    const isInside = cell >= 0 && cell < cells;
    this.cursor.setAttribute("visibility", isInside ? "visible" : "hidden");
    if (!isInside) return;
    const x = this.middle(cell);
    const bottom = this.height - MARGIN.bottom;
    const place = { x1: x, x2: x, y1: MARGIN.top, y2: bottom };
    for (const [key, value] of Object.entries(place)) this.cursor.setAttribute(key, value);
  }
}
