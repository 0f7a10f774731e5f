// Bars of stacked values: one below the other for names, upright for the steps of a scale.

const BAR = { height: 22, gap: 8, label: 0.3, figure: 84, bottom: 42, title: 24 };

class BarChart {
  constructor(host, options) {
    this.host = host;
    this.options = options;
    const count = options.labels.length;
    if (!options.upright) host.style.height = `${BAR.title + count * (BAR.height + BAR.gap)}px`;
    new ResizeObserver(() => this.draw()).observe(host);
  }

  sum(index) {
    return this.options.values.reduce((sum, values) => sum + (values[index] || 0), 0);
  }

  draw() {
    this.width = this.host.clientWidth;
    this.height = this.host.clientHeight;
    if (!this.width) return;
    const box = `0 0 ${this.width} ${this.height}`;
    this.svg = element("svg", { viewBox: box, "aria-hidden": "true" });
    const sums = this.options.labels.map((_, index) => this.sum(index));
    if (this.options.upright) this.drawUpright(sums);
    else this.drawLying(sums);
    this.host.replaceChildren(this.svg);
  }

  hint(shape, index, line) {
    const { labels, values, lines, format } = this.options;
    const value = format(values[line][index] || 0);
    element("title", {}, shape).textContent = `${labels[index]}: ${value} ${lines[line].name}`;
  }

  drawLying(sums) {
    const { labels, values, lines, format } = this.options;
    const left = Math.min(260, this.width * BAR.label);
    const room = this.width - left - BAR.figure;
    const highest = Math.max(...sums) || 1;
    axisTitle(this.svg, this.options.axis, { x: left, y: 13 });
    labels.forEach((label, index) => {
      const y = BAR.title + index * (BAR.height + BAR.gap);
      const middle = y + BAR.height / 2 + 4;
      const name = { x: left - 10, y: middle, "text-anchor": "end", class: "bar-name" };
      const written = element("text", name, this.svg);
      written.textContent = shortened(label, left / 8.8);
      element("title", {}, written).textContent = label;
      let x = left;
      values.forEach((each, line) => {
        const width = (room * (each[index] || 0)) / highest;
        const shape = { x, y: y + 3, width, height: BAR.height - 6, rx: 3 };
        const color = { fill: `var(--${lines[line].tone})` };
        if (width > 0) this.hint(element("rect", { ...shape, ...color }, this.svg), index, line);
        x += width;
      });
      element("text", { x: x + 8, y: middle }, this.svg).textContent = format(sums[index]);
    });
  }

  drawUpright(sums) {
    const { labels, values, lines, format } = this.options;
    const scale = linearScale(sums);
    const bottom = this.height - BAR.bottom;
    const top = MARGIN.top;
    const y = (value) => top + (bottom - top) * (1 - scale.place(value));
    const right = this.width - MARGIN.right;
    for (const tick of scale.ticks) {
      const line = { class: "grid", x1: MARGIN.left, x2: right, y1: y(tick), y2: y(tick) };
      element("line", line, this.svg);
      const place = { x: MARGIN.left - 9, y: y(tick) + 4, "text-anchor": "end" };
      element("text", place, this.svg).textContent = format(tick);
    }
    axisTitle(this.svg, this.options.axis, { x: 0, y: 13 });
    const under = { x: right, y: this.height - 4, "text-anchor": "end" };
    axisTitle(this.svg, this.options.steps, under);
    const step = (right - MARGIN.left) / labels.length;
    const every = Math.ceil(64 / step);
    labels.forEach((label, index) => {
      const x = MARGIN.left + index * step;
      let below = 0;
      values.forEach((each, line) => {
        const value = each[index] || 0;
        const height = y(below) - y(below + value);
        const shape = { x: x + step * 0.12, y: y(below + value), width: step * 0.76, height };
        const color = { rx: 2, fill: `var(--${lines[line].tone})` };
        if (value > 0) this.hint(element("rect", { ...shape, ...color }, this.svg), index, line);
        below += value;
      });
      if (index % every) return;
      const place = { x: x + step / 2, y: bottom + 18, "text-anchor": "middle" };
      element("text", place, this.svg).textContent = label;
    });
  }

  // What is drawn, as a table.
  figures() {
    const { labels, values, lines, format } = this.options;
    const rows = labels.map((label, index) => {
      return [label, ...values.map((each) => format(each[index] || 0))];
    });
    return { headings: [this.options.steps || "name", ...lines.map((line) => line.name)], rows };
  }

  // What is drawn, in a sentence.
  summary() {
    const { labels, format } = this.options;
    const sums = labels.map((_, index) => this.sum(index));
    const highest = sums.indexOf(Math.max(...sums));
    const longest = `${labels[highest]} with ${format(sums[highest])}`;
    return `${labels.length} bars; the longest is ${longest}.`;
  }
}
