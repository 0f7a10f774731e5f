// Fields in rows and columns, the stronger the higher their value.

const FIELD = { height: 24, left: 190, top: 24, bottom: 42 };

class HeatMap {
  constructor(host, options) {
    this.host = host;
    this.options = options;
    const height = FIELD.top + options.down.length * FIELD.height + FIELD.bottom;
    host.style.height = `${height}px`;
    new ResizeObserver(() => this.draw()).observe(host);
  }

  draw() {
    const { across, down, fields, format } = this.options;
    const width = this.host.clientWidth;
    if (!width) return;
    const bottom = FIELD.top + down.length * FIELD.height;
    const box = `0 0 ${width} ${bottom + FIELD.bottom}`;
    const svg = element("svg", { viewBox: box, "aria-hidden": "true" });
    const left = Math.min(FIELD.left, width * 0.3);
    const step = (width - left) / across.length;
    const highest = Math.max(...fields.map((field) => field[2] || 0)) || 1;
    for (const [x, y, value] of fields) {
      const place = { x: left + x * step + 1, y: FIELD.top + y * FIELD.height + 1 };
      const size = { width: Math.max(1, step - 2), height: FIELD.height - 2, rx: 3 };
      const strength = { class: "field", opacity: (0.06 + 0.94 * ((value || 0) / highest)) };
      const shape = element("rect", { ...place, ...size, ...strength }, svg);
      const told = `${down[y]}, ${across[x]}: ${format(value || 0)}`;
      element("title", {}, shape).textContent = told;
    }
    down.forEach((label, index) => {
      const y = FIELD.top + index * FIELD.height + 16;
      const place = { x: left - 10, y, "text-anchor": "end" };
      element("text", place, svg).textContent = shortened(label, left / 8.2);
    });
    const every = Math.ceil(40 / step);
    across.forEach((label, index) => {
      if (index % every) return;
      const place = { x: left + (index + 0.5) * step, y: bottom + 17, "text-anchor": "middle" };
      element("text", place, svg).textContent = label;
    });
    axisTitle(svg, `${this.options.axis}, by ${this.options.downAxis}`, { x: 0, y: 13 });
    const place = { x: width, y: bottom + 36, "text-anchor": "end" };
    axisTitle(svg, this.options.acrossAxis, place);
    this.host.replaceChildren(svg);
  }

  // What is drawn, as a table.
  figures() {
    const { across, down, fields, format, downAxis, acrossAxis, axis } = this.options;
    const rows = fields.map(([x, y, value]) => [down[y], across[x], format(value || 0)]);
    return { headings: [downAxis, acrossAxis, axis], rows };
  }

  // What is drawn, in a sentence.
  summary() {
    const { across, down, fields, format } = this.options;
    const [x, y, value] = fields.reduce((one, other) => (other[2] > one[2] ? other : one));
    const highest = `${format(value || 0)}: ${down[y]}, ${across[x]}`;
    return `The highest of ${fields.length} fields is ${highest}.`;
  }
}
