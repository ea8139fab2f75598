// A table of any number of rows that has only those in its document that can be seen, and a few more. It is sorted by its heads; the arrow keys,
// Page Up and Down, Home and End move the active row, Enter opens it. For a screen reader it is a grid, with the rows' true numbers.

const spare = 6; // rows beyond what can be seen, above and below
const printedRows = 60;

// A column is {id, name, width, value, cell, number, tip}: value(row) is what it is sorted by (null and undefined come last), cell(row)
// what is shown, a text or a node; numbers begin with the largest.
class RowTable {
  // open(row) is called with the row that is chosen, and null.
  constructor(host, {label, columns, height, sort, open, none}) {
    Object.assign(this, {label, columns, sort, open, none, all: [], rows: [], active: -1, first: 0, drawn: []});
    this.head = el(
      "tr",
      {role: "row", "aria-rowindex": 1},
      columns.map((c) =>
        el(
          "th",
          {role: "columnheader", scope: "col", class: c.number && "number", "aria-sort": "none"},
          el("button", {type: "button", title: c.tip, onclick: () => this.sortBy(c.id)}, c.name),
        ),
      ),
    );
    this.above = el("tbody", {class: "space", "aria-hidden": "true"}, el("tr", null, el("td", {colspan: columns.length})));
    this.below = this.above.cloneNode(true);
    this.body = el("tbody", {class: "body", role: "rowgroup"});
    this.id = "table-" + RowTable.made++;
    this.table = el(
      "table",
      {role: "grid", "aria-label": label, tabindex: 0, onkeydown: (e) => this.key(e)},
      el(
        "colgroup",
        null,
        columns.map((c) => {
          const col = el("col");
          col.style.width = c.width + "px";
          return col;
        }),
      ),
      el("thead", {role: "rowgroup"}, this.head),
      this.above,
      this.body,
      this.below,
    );
    this.table.style.minWidth = d3.sum(columns, (c) => c.width) + "px";
    this.empty = el("p", {class: "none", hidden: true}, none || "Nothing.");
    this.box = el("div", {class: "rows"}, this.table, this.empty);
    this.most = height;
    this.box.addEventListener(
      "scroll",
      () => {
        this.scrolled = true;
        if (!this.waiting)
          this.waiting = requestAnimationFrame(() => {
            this.waiting = 0;
            this.draw();
          });
      },
      {passive: true},
    );
    this.body.addEventListener("click", (e) => {
      const tr = e.target.closest("tr");
      if (tr && !e.target.closest("a")) this.choose(this.first + this.drawn.indexOf(tr));
    });
    this.cut = el("p", {class: "printed soft"});
    host.append(this.box, this.cut);
    new ResizeObserver(() => this.draw()).observe(this.box);
    whenPrinting(() => this.draw());
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  }

  // show sets the rows, in any order, and keeps the active one if it is there.
  show(rows) {
    const kept = this.rows[this.active];
    this.all = rows;
    this.order();
    this.active = kept ? this.rows.indexOf(kept) : -1;
    this.table.setAttribute("aria-rowcount", rows.length + 1);
    this.empty.hidden = rows.length > 0;
    if (this.scrolled) this.box.scrollTop = 0; // else the browser would lay out all to find that it is
    this.scrolled = false;
    this.draw(true);
  }

  order() {
    const {value, number} = this.columns.find((c) => c.id === this.sort.id),
      up = this.sort.ascending ? 1 : -1;
    const keyed = this.all.map((row, i) => ({row, i, key: value(row)}));
    const words = new Intl.Collator("en", {numeric: true});
    const missing = (k) => k === null || k === undefined || k === "";
    keyed.sort((a, b) => {
      if (missing(a.key) || missing(b.key)) return missing(a.key) - missing(b.key) || a.i - b.i;
      return up * (typeof a.key === "number" ? a.key - b.key : words.compare(a.key, b.key)) || a.i - b.i;
    });
    this.rows = keyed.map((k) => k.row);
    this.columns.forEach((c, i) =>
      this.head.children[i].setAttribute(
        "aria-sort",
        c.id !== this.sort.id ? "none" : this.sort.ascending ? "ascending" : "descending",
      ),
    );
  }

  sortBy(id) {
    const column = this.columns.find((c) => c.id === id);
    this.sort = {id, ascending: this.sort.id === id ? !this.sort.ascending : !column.number};
    this.show(this.all);
    say(this.label + ", sorted by " + column.name + (this.sort.ascending ? ", ascending" : ", descending"));
  }

  // draw brings the rows that can be seen into the document. again says that they changed, not only moved.
  draw(again = false) {
    const print = printing(),
      h = this.rowHeight,
      n = this.rows.length;
    const full = (n + 1) * h + 2 + (n ? 0 : 48);
    this.box.style.height = Math.min(this.most, full) + "px";
    const seen = Math.ceil(Math.min(this.most, full) / h);
    const top = again ? 0 : Math.max(0, Math.floor(this.box.scrollTop / h)); // again: at the top, and the browser need not lay it out to tell
    const first = print ? 0 : Math.max(0, Math.min(n - seen, top) - spare);
    const last = print ? Math.min(n, printedRows) : Math.min(n, top + seen + spare);
    if (!again && first === this.first && last - first === this.drawn.length && print === this.printed) return;
    const old = new Map(again ? [] : this.drawn.map((tr, i) => [this.first + i, tr]));
    this.drawn = [];
    for (let i = first; i < last; i++) this.drawn.push(old.get(i) || this.row(i));
    this.first = first;
    this.printed = print;
    this.cut.textContent = n > printedRows ? "The first " + printedRows + " of " + plural(n, "row") + ", in this order." : "";
    this.replace();
    this.above.firstChild.firstChild.style.height = first * h + "px";
    this.below.firstChild.firstChild.style.height = (print ? 0 : n - last) * h + "px";
    this.mark();
  }

  // replace makes the body's children those drawn. What stays is left alone, so that it keeps the focus and what is selected.
  replace() {
    const stay = new Set(this.drawn);
    for (const tr of [...this.body.children]) if (!stay.has(tr)) tr.remove();
    this.drawn.forEach((tr, i) => {
      if (this.body.children[i] !== tr) this.body.insertBefore(tr, this.body.children[i] || null);
    });
  }

  row(i) {
    const row = this.rows[i];
    return el(
      "tr",
      {role: "row", id: this.id + "-" + i, "aria-rowindex": i + 2},
      this.columns.map((c) => {
        const content = c.cell(row),
          flag = c.flag && c.flag(row);
        return el(
          "td",
          {
            role: "gridcell",
            class: [c.number && "number", flag].filter(Boolean).join(" ") || null,
            title: c.full ? c.full(row) : null,
          },
          content,
        );
      }),
    );
  }

  mark() {
    for (const [i, tr] of this.drawn.entries()) {
      const on = this.first + i === this.active;
      tr.classList.toggle("active", on);
      if (on) tr.setAttribute("aria-selected", "true");
      else tr.removeAttribute("aria-selected");
    }
    const tr = this.drawn[this.active - this.first];
    if (tr) this.table.setAttribute("aria-activedescendant", tr.id);
    else this.table.removeAttribute("aria-activedescendant");
  }

  // choose makes row i the active one and brings it into sight.
  choose(i) {
    if (i < 0 || i >= this.rows.length) return;
    this.active = i;
    const h = this.rowHeight,
      seen = this.box.clientHeight - h,
      top = i * h;
    this.scrolled = true;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + h > this.box.scrollTop + seen) this.box.scrollTop = top + h - seen;
    this.draw();
    this.mark();
    if (this.open) this.open(this.rows[i]);
  }

  chooseRow(row) {
    this.choose(this.rows.indexOf(row));
  }

  key(e) {
    if (e.target !== this.table) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 2),
      last = this.rows.length - 1;
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    }[e.key];
    if (e.key === "Enter" && this.active >= 0 && this.entered) return this.entered();
    if (to === undefined) return;
    e.preventDefault();
    this.choose(Math.max(0, Math.min(last, to)));
  }
}
RowTable.made = 0;

// within is a number with a bar behind it that is as long as its share of the most.
function within(content, value, most) {
  const bar = el("i");
  bar.style.width = most > 0 ? (100 * value) / most + "%" : "0";
  return el("span", {class: "in"}, bar, el("span", null, content));
}
