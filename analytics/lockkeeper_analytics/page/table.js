// Tables over the values of reports: sorted, searched, narrowed to a time, saved, printed whole.

const PAGE_ROWS = 60;
const SEARCHED_FROM = 6;
const SEARCHED = new Set(["text", "code", "cause", "badge", "list", "destination"]);
const WHOLE_TEXTS = new Set(["code", "cause", "list", "destination"]);

function unpacked(values) {
  return Array.isArray(values) ? values : values.at.map((place) => values.of[place]);
}

// Compares values of a column; what is not known comes last in both directions.
function compared(one, other, direction) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "object") return direction * (listOf(one).length - listOf(other).length);
  if (typeof one === "string") return direction * one.localeCompare(other);
  return direction * (one - other);
}

// A text that begins like a formula would be one to a spreadsheet.
function csvText(name, value) {
  if (value === null) return "";
  if (isMoment(name)) return new Date(value).toISOString();
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  let text = typeof value === "object" ? listOf(value).join(", ") : value;
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function button(text, parent, pressed) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", pressed);
  parent.append(made);
  return made;
}

class DataTable {
  constructor(host, name, told) {
    Object.assign(this, { host, name, told });
    const lists = Object.entries(told.values).map(([key, values]) => [key, unpacked(values)]);
    this.values = Object.fromEntries(lists);
    this.rows = Array.from({ length: told.rows }, (_, index) => this.rowOf(index));
    this.highest = told.columns.map((column) => this.scaleOf(column));
    this.sorted = null;
    this.sought = "";
    this.most = PAGE_ROWS;
    this.selected = new Set();
    this.searched = [];
    this.body = host.querySelector("tbody");
    this.addTools();
    this.addHeadings();
    this.addFoot();
    timeRange.listeners.push(() => this.choose());
    this.choose();
  }

  rowOf(index) {
    const row = (name) => (name in this.values ? this.values[name][index] : null);
    row.index = index;
    return row;
  }

  scaleOf(column) {
    const names = column.unit === "range" ? [column.name, ...column.ends] : [column.name];
    if (column.unit !== "range" && !column.bar) return 0;
    const values = names.flatMap((name) => this.values[name]);
    const highest = values.reduce((most, value) => Math.max(most, value || 0), 0);
    return column.unit === "range" ? Math.max(10, highest) : highest || 1;
  }

  addTools() {
    const tools = document.createElement("div");
    tools.className = "tools";
    if (this.told.rows >= SEARCHED_FROM) {
      const input = document.createElement("input");
      input.type = "search";
      input.placeholder = "Search";
      input.setAttribute("aria-label", `Search ${this.told.title}`);
      input.addEventListener("input", () => {
        this.sought = input.value.trim().toLowerCase();
        this.choose();
      });
      tools.append(input);
    }
    this.status = document.createElement("span");
    this.status.setAttribute("role", "status");
    tools.append(this.status);
    const save = button("Save as CSV", tools, () => this.save());
    save.setAttribute("aria-label", `Save as CSV: ${this.told.title}`);
    this.host.prepend(tools);
  }

  addHeadings() {
    const head = this.host.querySelector("thead tr");
    [...head.cells].forEach((cell, place) => {
      const text = cell.textContent;
      cell.textContent = "";
      button(text, cell, () => this.sort(place));
    });
    const first = document.createElement("th");
    first.className = "handle";
    first.scope = "col";
    const heading = this.told.retried ? "Chosen, details" : "Details";
    first.innerHTML = `<span class="unseen">${heading}</span>`;
    head.prepend(first);
    this.head = head;
  }

  addFoot() {
    const note = this.host.querySelector(".note.more");
    if (note) note.remove();
    this.foot = document.createElement("div");
    this.foot.className = "foot";
    this.more = button("", this.foot, () => this.grow());
    if (this.told.left) {
      const left = document.createElement("p");
      left.className = "note";
      const number = this.told.left.toLocaleString("en");
      left.textContent = `${number} more rows are in ${this.name}.parquet and ${this.name}.json.`;
      this.foot.append(left);
    }
    this.commands = document.createElement("div");
    this.host.append(this.foot, this.commands);
  }

  sort(place) {
    const before = this.sorted;
    const turned = before && before.place === place ? -before.direction : 0;
    const isText = typeof this.values[this.told.columns[place].name].find((each) => each !== null)
      === "string";
    // Figures begin with the highest, texts with the first.
    this.sorted = { place, direction: turned || (isText ? 1 : -1) };
    this.choose();
  }

  textOf(row) {
    if (this.searched[row.index] === undefined) {
      const columns = this.told.columns.filter((column) => SEARCHED.has(column.unit));
      const texts = columns.map(({ name }) => {
        const value = row(name);
        return value !== null && typeof value === "object" ? listOf(value).join(" ") : value;
      });
      const others = [row("subscription"), data.labels[row("directory")]];
      this.searched[row.index] = [...texts, ...others].join("\n").toLowerCase();
    }
    return this.searched[row.index];
  }

  isInRange(row) {
    if (!this.told.span || timeRange.isWhole) return true;
    const [begin, end] = this.told.span.map(row);
    if (begin === null) return true;
    const lasted = this.told.span[1] === "seconds" ? begin + 1000 * end - 1 : end;
    return timeRange.has(begin, lasted === null ? begin : lasted);
  }

  // Chooses the rows to show, and their order.
  choose() {
    this.shown = this.rows.filter((row) => {
      return this.isInRange(row) && (!this.sought || this.textOf(row).includes(this.sought));
    });
    if (this.sorted) {
      const { place, direction } = this.sorted;
      const values = this.values[this.told.columns[place].name];
      this.shown.sort((one, other) => {
        return compared(values[one.index], values[other.index], direction);
      });
    }
    [...this.head.cells].slice(1).forEach((cell, place) => {
      const isSorted = this.sorted && this.sorted.place === place;
      const order = this.sorted && this.sorted.direction > 0 ? "ascending" : "descending";
      if (isSorted) cell.setAttribute("aria-sort", order);
      else cell.removeAttribute("aria-sort");
    });
    this.draw();
  }

  draw() {
    this.body.replaceChildren(...this.shown.slice(0, this.most).map((row) => this.drawnRow(row)));
    const [shown, all] = [this.shown.length, this.told.rows];
    const number = (value) => value.toLocaleString("en");
    const isPart = shown < all;
    this.status.textContent = isPart ? `${number(shown)} of ${number(all)} rows` :
      `${number(all)} row${all === 1 ? "" : "s"}`;
    const left = shown - this.most;
    this.more.hidden = left <= 0;
    this.more.textContent = `Show ${number(Math.min(left, 4 * this.most))} more`;
  }

  drawnRow(row) {
    const made = document.createElement("tr");
    made.innerHTML = this.told.columns.map((column, place) => {
      return `<td class="${column.style}">${cellOf(column, row, this.highest[place])}</td>`;
    }).join("");
    const handle = document.createElement("td");
    handle.className = "handle";
    const name = `row ${(row.index + 1).toLocaleString("en")}`;
    if (this.told.retried) handle.append(this.checkbox(row, name));
    const open = button("", handle, () => this.open(made, open, row));
    open.className = "open";
    open.setAttribute("aria-expanded", "false");
    open.setAttribute("aria-label", `Details of ${name}`);
    made.prepend(handle);
    return made;
  }

  checkbox(row, name) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = this.selected.has(row.index);
    box.setAttribute("aria-label", `Choose ${name} to be sent back`);
    box.addEventListener("change", () => {
      if (box.checked) this.selected.add(row.index);
      else this.selected.delete(row.index);
      this.tellSelected();
    });
    return box;
  }

  tellSelected() {
    const rows = [...this.selected].map((index) => this.rows[index]);
    const title = "Send them back to where they were meant for, by the broker that has them:";
    this.commands.replaceChildren(...retryCommands(rows).map((each) => commandBox(title, each)));
  }

  open(made, handle, row) {
    const isOpen = handle.getAttribute("aria-expanded") === "true";
    handle.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      made.nextElementSibling.remove();
      return;
    }
    const more = document.createElement("tr");
    more.className = "details";
    const cell = document.createElement("td");
    cell.colSpan = this.told.columns.length + 1;
    cell.append(...this.detailsOf(row));
    more.append(cell);
    made.after(more);
  }

  detailsOf(row) {
    const list = document.createElement("dl");
    for (const { name, heading, unit } of this.told.columns) {
      const value = row(name);
      if (!WHOLE_TEXTS.has(unit) || value === null) continue;
      const term = document.createElement("dt");
      term.textContent = heading;
      const text = document.createElement("dd");
      text.textContent = typeof value === "object" ? listOf(value).join(", ") : value;
      list.append(term, text);
    }
    const ids = [row("message_id"), row("example"), ...(row("message_ids") || []).slice(0, 3)];
    return [
      list,
      ...(this.told.messages
        ? [commandBox("Its messages:", messagesCommand(this.told.messages, row))] : []),
      ...ids.filter((id) => id).map((id) => commandBox(`The life of ${id}:`, traceCommand(id))),
    ];
  }

  grow() {
    this.most *= 5;
    this.draw();
  }

  // Shows all rows while the page is printed.
  print(isBegun) {
    if (isBegun) this.before = this.most;
    this.most = isBegun ? Infinity : this.before;
    this.draw();
  }

  csv() {
    const names = Object.keys(this.values);
    const rows = this.shown.map((row) => names.map((name) => csvText(name, row(name))).join(","));
    return `${[names.join(","), ...rows].join("\r\n")}\r\n`;
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv;charset=utf-8" }));
    link.download = `${this.name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
