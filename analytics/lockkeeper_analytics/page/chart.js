// What all plots share, and the chart of values over cells of time: SVG, drawn by this page alone.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 34, right: 10, bottom: 42, left: 62 };
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

function daysText(start, end) {
  const [first, last] = [start, end].map((at) => longMoment(at).split(",")[0]);
  return first === last ? first : `${first} – ${last}`;
}

function timeText(at, step) {
  const text = new Date(at).toISOString();
  if (step >= 86400000) return text.slice(5, 10);
  return step >= 60000 ? text.slice(11, 16) : text.slice(11, 19);
}

// Returns the cells of `values` from `first` to before `end` that hang together: null breaks them.
function runsOf(values, first, end) {
  const runs = [];
  for (let cell = first; cell < end; cell += 1) {
    if (values[cell] === null) continue;
    if (cell === first || values[cell - 1] === null) runs.push([]);
    runs.at(-1).push(cell);
  }
  return runs;
}

// What stands beside an axis: `up` for values, or below the plot.
function axisTitle(svg, text, place) {
  element("text", { class: "axis", ...place }, svg).textContent = text;
}

// How the lines of a plot are told apart by those who do not see colours.
const DASHES = ["", "7 4", "2 4"];

// Draws `lines` ({ name, color, values, floor: cell => value under the shaded area }) into `host`;
// `options`: start, step, cells, marks, logarithmic, format, axis. The pointer reads values and
// chooses a range of time; so do the arrow keys, with Shift and Enter.
class TimeChart {
  constructor(host, options) {
    this.host = host;
    this.options = options;
    this.lines = [];
    this.listeners = [];
    this.view = { first: 0, end: options.cells };
    this.cell = null;
    this.chosen = null;
    new ResizeObserver(() => this.draw()).observe(host);
    host.addEventListener("pointermove", (event) => this.move(event));
    host.addEventListener("pointerleave", () => this.tell(null));
    host.addEventListener("pointerdown", (event) => this.begin(event));
    host.addEventListener("pointerup", () => this.take());
    host.addEventListener("dblclick", () => timeRange.set(null, null));
    host.addEventListener("keydown", (event) => this.press(event));
    host.addEventListener("blur", () => this.tell(null));
  }

  show(lines) {
    this.lines = lines;
    this.draw();
  }

  // Shows the cells of a range of time, all of them without one.
  narrow(range) {
    const { start, step, cells } = this.options;
    this.view = { first: 0, end: cells };
    if (!range.isWhole) {
      const first = Math.floor((range.from - start) / step);
      this.view.first = Math.min(Math.max(0, first), cells - 1);
      const end = Math.ceil((range.to - start) / step);
      this.view.end = Math.max(this.view.first + 1, Math.min(cells, end));
    }
    this.cell = null;
    this.chosen = null;
    this.draw();
  }

  at(cell) {
    return this.options.start + cell * this.options.step;
  }

  x(at) {
    const { first, end } = this.view;
    const width = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((at - this.at(first)) / (this.options.step * (end - first))) * width;
  }

  middle(cell) {
    return this.x(this.at(cell + 0.5));
  }

  y(value) {
    const height = this.height - MARGIN.top - MARGIN.bottom;
    return MARGIN.top + height * (1 - this.scale.place(value));
  }

  draw() {
    this.width = this.host.clientWidth;
    this.height = this.host.clientHeight;
    if (!this.width || !this.lines.length) return;
    const { first, end } = this.view;
    const values = this.lines.flatMap((line) => line.values.slice(first, end));
    this.scale = this.options.logarithmic ? logarithmicScale(values) : linearScale(values);
    const box = `0 0 ${this.width} ${this.height}`;
    this.svg = element("svg", { viewBox: box, "aria-hidden": "true" });
    this.drawGrid();
    this.lines.forEach((line, place) => this.drawLine(line, DASHES[place] || ""));
    this.drawMarks();
    this.choice = element("rect", { class: "chosen", visibility: "hidden" }, this.svg);
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
    const [start, end] = [this.at(this.view.first), this.at(this.view.end)];
    const times = timeTicks(start, end, this.width / 110);
    for (const at of times.ticks) {
      const place = { x: this.x(at), y: bottom + 18, "text-anchor": "middle" };
      element("text", place, this.svg).textContent = timeText(at, times.step);
    }
    axisTitle(this.svg, this.options.axis, { x: 0, y: 13 });
    const place = { x: right, y: bottom + 37, "text-anchor": "end" };
    axisTitle(this.svg, `time (UTC), ${daysText(start, end)}`, place);
  }

  drawLine(line, dashes) {
    const place = (cell, value) => {
      return `${this.middle(cell).toFixed(1)} ${this.y(value).toFixed(1)}`;
    };
    for (const run of runsOf(line.values, this.view.first, this.view.end)) {
      const upper = run.map((cell) => place(cell, line.values[cell]));
      if (line.floor) {
        const lower = run.map((cell) => place(cell, line.floor(cell))).reverse();
        const shape = `M${upper.join("L")}L${lower.join("L")}Z`;
        element("path", { d: shape, fill: line.color, opacity: 0.15 }, this.svg);
      }
      // A run of one cell is a dot: a line of no length with round ends.
      const stroke = { fill: "none", stroke: line.color, "stroke-width": upper[1] ? 1.9 : 5 };
      if (upper[1] && dashes) stroke["stroke-dasharray"] = dashes;
      const round = { "stroke-linejoin": "round", "stroke-linecap": "round" };
      const path = { d: `M${upper.join("L")}${upper[1] ? "" : "h.01"}` };
      element("path", { ...path, ...stroke, ...round }, this.svg);
    }
  }

  drawMarks() {
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    const [start, end] = [this.at(this.view.first), this.at(this.view.end)];
    const inside = (at) => Math.min(Math.max(this.x(at), MARGIN.left), right);
    for (const mark of this.options.marks) {
      // A start before the first cell, or a stop behind the last one, stands at the edge.
      const isSeen = timeRange.isWhole || (mark.at >= start && mark.since <= end);
      if (!isSeen) continue;
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

  cellAt(event) {
    const box = this.host.getBoundingClientRect();
    const width = this.width - MARGIN.left - MARGIN.right;
    const share = (event.clientX - box.left - MARGIN.left) / width;
    return this.view.first + Math.floor(share * (this.view.end - this.view.first));
  }

  within(cell) {
    return Math.min(Math.max(cell, this.view.first), this.view.end - 1);
  }

  begin(event) {
    if (event.button || !this.svg) return;
    this.chosen = { from: this.within(this.cellAt(event)), to: null };
    if (event.pointerId !== undefined) this.host.setPointerCapture(event.pointerId);
  }

  move(event) {
    const cell = this.cellAt(event);
    if (this.chosen && event.buttons) this.choose(this.within(cell));
    const isInside = cell >= this.view.first && cell < this.view.end;
    this.tell(isInside ? { cell, x: event.clientX, y: event.clientY, at: this.at(cell) } : null);
  }

  // Lets the chosen range reach to a cell.
  choose(cell) {
    this.chosen.to = cell;
    const [first, last] = [this.chosen.from, cell].sort((one, other) => one - other);
    const [left, right] = [this.x(this.at(first)), this.x(this.at(last + 1))];
    const place = { x: left, width: right - left, y: MARGIN.top };
    const height = this.height - MARGIN.top - MARGIN.bottom;
    for (const [key, value] of Object.entries({ ...place, height, visibility: "visible" })) {
      this.choice.setAttribute(key, value);
    }
  }

  take() {
    const chosen = this.chosen;
    this.chosen = null;
    if (this.choice) this.choice.setAttribute("visibility", "hidden");
    if (!chosen || chosen.to === null || chosen.to === chosen.from) return;
    const [first, last] = [chosen.from, chosen.to].sort((one, other) => one - other);
    timeRange.set(this.at(first), this.at(last + 1));
  }

  press(event) {
    const { first, end } = this.view;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    const places = { Home: first, End: end - 1 };
    if (event.key === "Enter") this.take();
    else if (event.key === "Escape") timeRange.set(null, null);
    else if (event.key in steps || event.key in places) {
      const before = this.cell === null ? this.within(first) : this.cell;
      const next = event.key in places ? places[event.key] : before + steps[event.key];
      this.cell = this.within(this.cell === null && event.key in steps ? before : next);
      if (event.shiftKey && !this.chosen) this.chosen = { from: before, to: null };
      if (event.shiftKey) this.choose(this.cell);
      const box = this.host.getBoundingClientRect();
      const x = box.left + this.middle(this.cell);
      const where = { cell: this.cell, x, y: box.top + MARGIN.top, at: this.at(this.cell) };
      this.tell({ ...where, isSaid: true });
    } else return;
    event.preventDefault();
  }

  tell(where) {
    for (const listener of this.listeners) listener(where, this);
  }

  // Shows the cursor at a time, which may come from another chart.
  pointAt(at) {
    if (!this.cursor) return;
    const { start, step } = this.options;
    const cell = at === null ? -1 : Math.floor((at - start) / step);
    const isInside = cell >= this.view.first && cell < this.view.end;
    this.cursor.setAttribute("visibility", isInside ? "visible" : "hidden");
    if (!isInside) return;
    const x = this.middle(cell);
    const bottom = this.height - MARGIN.bottom;
    const place = { x1: x, x2: x, y1: MARGIN.top, y2: bottom };
    for (const [key, value] of Object.entries(place)) this.cursor.setAttribute(key, value);
  }

  // What is drawn, as a table: headings, and a row for each cell.
  figures() {
    const headings = ["time (UTC)", ...this.lines.map((line) => line.name)];
    const rows = [];
    for (let cell = this.view.first; cell < this.view.end; cell += 1) {
      const values = this.lines.map((line) => line.values[cell]);
      if (values.every((value) => value === null)) continue;
      const written = values.map((value) => (value === null ? UNKNOWN : this.written(value)));
      rows.push([new Date(this.at(cell)).toISOString().slice(0, 19).replace("T", " "), ...written]);
    }
    return { headings, rows };
  }

  // What is drawn, in a sentence.
  summary() {
    const { first, end } = this.view;
    const told = this.lines.map((line) => {
      const values = line.values.slice(first, end);
      const highest = Math.max(...values.map((value) => (value === null ? -1 : value)));
      if (highest < 0) return `${line.name}: nothing`;
      const when = shortMoment(this.at(first + values.indexOf(highest)));
      return `${line.name}: at the most ${this.written(highest)}, ${when}`;
    });
    return `${told.join("; ")}.`;
  }
}
