// The range of time that is looked at: plots show it, and tables the rows of it.

class TimeRange {
  constructor(bar) {
    this.bar = bar;
    this.from = null;
    this.to = null;
    this.listeners = [];
    if (!bar) return;
    [this.first, this.last] = bar.querySelectorAll("input");
    bar.querySelector(".whole").addEventListener("click", () => this.set(null, null));
    for (const input of [this.first, this.last]) {
      input.addEventListener("change", () => this.take());
    }
  }

  get isWhole() {
    return this.from === null;
  }

  // `start` and `end` are what there is; the bar shows all of it at first.
  offer(start, end) {
    this.start = start;
    this.end = end;
    if (!this.bar) return;
    this.bar.hidden = false;
    this.tell();
  }

  take() {
    const moments = [this.first, this.last].map((input) => Date.parse(`${input.value}Z`));
    if (moments.some(Number.isNaN) || moments[0] >= moments[1]) return this.tell();
    return this.set(...moments);
  }

  set(from, to) {
    const isAll = from === null || (from <= this.start && to >= this.end);
    this.from = isAll ? null : Math.max(from, this.start);
    this.to = isAll ? null : Math.min(to, this.end);
    if (!isAll && this.from >= this.to) [this.from, this.to] = [null, null];
    this.tell();
    for (const listener of this.listeners) listener(this);
  }

  tell() {
    if (!this.bar) return;
    const shown = this.isWhole ? [this.start, this.end] : [this.from, this.to];
    [this.first, this.last].forEach((input, place) => {
      input.value = new Date(shown[place]).toISOString().slice(0, 19);
    });
    this.bar.classList.toggle("narrowed", !this.isWhole);
    const said = this.isWhole
      ? "Plots and tables show the whole time."
      : "Plots show this time, and tables with times the rows of it; other figures tell of all.";
    this.bar.querySelector("[role=status]").textContent = said;
  }

  // Tells whether something that lasted from one moment to another was in the range.
  has(begins, ends) {
    return this.isWhole || begins === null || (begins < this.to && ends >= this.from);
  }
}

const timeRange = new TimeRange(document.getElementById("range"));
