// Fields in rows and columns, the stronger the higher their value.

const FIELD = { height: 24, left: 190, bottom: 24 };

class HeatMap {
  constructor(host, options) {
    this.host = host;
    this.options = options;
    host.style.height = `${options.down.length * FIELD.height + FIELD.bottom}px`;
    new ResizeObserver(() => this.draw()).observe(host);
  }

  draw() {
    const { across, down, fields, format } = this.options;
    const width = this.host.clientWidth;
    if (!width) return;
    const bottom = down.length * FIELD.height;
    const svg = element("svg", { viewBox: `0 0 ${width} ${bottom + FIELD.bottom}` });
    const left = Math.min(FIELD.left, width * 0.3);
    const step = (width - left) / across.length;
    const highest = Math.max(...fields.map((field) => field[2] || 0)) || 1;
    for (const [x, y, value] of fields) {
      const place = { x: left + x * step + 1, y: y * FIELD.height + 1 };
      const size = { width: Math.max(1, step - 2), height: FIELD.height - 2, rx: 3 };
      const strength = { class: "field", opacity: (0.06 + 0.94 * ((value || 0) / highest)) };
      const shape = element("rect", { ...place, ...size, ...strength }, svg);
      const told = `${down[y]}, ${across[x]}: ${format(value || 0)}`;
      element("title", {}, shape).textContent = told;
    }
    down.forEach((label, index) => {
      const place = { x: left - 10, y: index * FIELD.height + 16, "text-anchor": "end" };
      element("text", place, svg).textContent = shortened(label, left / 8.2);
    });
    const every = Math.ceil(40 / step);
    across.forEach((label, index) => {
      if (index % every) return;
      const place = { x: left + (index + 0.5) * step, y: bottom + 17, "text-anchor": "middle" };
      element("text", place, svg).textContent = label;
    });
    this.host.replaceChildren(svg);
  }
}
