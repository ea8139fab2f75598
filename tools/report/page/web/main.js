// The page: reads the report that lies in it, and draws its tables, one at a time.

let report = JSON.parse(byId("report").textContent);

// Features come as columns (columns.go), and stay so: a feature is its place in them, and looks up what it is asked for. "outer.inner" is a key of an object
// within a feature, which is made when it is asked for.
function unpack({rows, columns}) {
  class Feature {
    constructor(at) {
      this.at = at;
    }
  }
  const within = new Map();
  for (const [key, column] of Object.entries(columns)) {
    const value = Array.isArray(column)
      ? (i) => column[i] ?? undefined
      : column.at
        ? (i) => column.of[column.at[i]] ?? undefined
        : () => column.all ?? undefined;
    const [outer, inner] = key.split(".");
    if (inner !== undefined) within.set(outer, [...(within.get(outer) || []), [inner, value]]);
    else
      Object.defineProperty(Feature.prototype, key, {
        get() {
          return value(this.at);
        },
      });
  }
  for (const [outer, inners] of within)
    Object.defineProperty(Feature.prototype, outer, {
      get() {
        const found = inners.map(([inner, value]) => [inner, value(this.at)]).filter(([, v]) => v !== undefined);
        return found.length ? Object.fromEntries(found) : undefined;
      },
    });
  return Array.from({length: rows}, (_, at) => new Feature(at));
}

let shown = null;

// follow goes to a table, a feature or a group, and back again with the browser's button.
function follow(address) {
  history.pushState(null, "", address);
  showAddress(address);
}

function show(t) {
  if (!Array.isArray(t.features)) t.features = unpack(t.features);
  shown = t;
  const main = byId("main"),
    contents = byId("contents");
  main.replaceChildren();
  contents.replaceChildren();
  byId("title").textContent = t.table;
  byId("about").textContent =
    "snapshot " +
    count(t.summary.snapshot) +
    " of " +
    minute(t.summary.snapshot_time) +
    (t.summary.last_read ? ", last read " + minute(t.summary.last_read) : "");
  t.since = report.since;
  tablesSection(main, report.tables, t);
  summary(main, t, report.since);
  for (const [id, title, make] of sections) {
    const section = el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title));
    main.append(section); // first, so that charts know their width
    if (make(section, t) === false) section.remove();
    else contents.append(el("li", null, el("a", {href: "#" + id}, title)));
  }
  drawCharts();
}

// about says what the report is of, and lists its tables to choose from.
function about() {
  byId("store").textContent = report.store;
  byId("foot").textContent =
    "Made by dsistat on " +
    minute(report.made) +
    (report.since ? " from access records since " + day(report.since) : " from all access records") +
    ". Days are of UTC.";
  byId("tables").hidden = report.tables.length < 2;
  byId("tables")
    .querySelector("select")
    .replaceChildren(...report.tables.map((t, i) => el("option", {value: i}, t.table)));
}

// choose shows a table.
function choose(t) {
  byId("tables").querySelector("select").value = report.tables.indexOf(t);
  show(t);
}

// showAddress shows what an address of this page names: #table=NAME, nothing for the first, or a feature or a group of the table that is shown.
function showAddress(hash) {
  const t = hash ? report.tables.find((t) => tableAddress(t.table) === hash) : report.tables[0];
  if (t && t !== shown) choose(t);
  else if (shown && !t) shown.finder.go(hash);
}

// update shows another report of the same store in the place of this one: the same table, search, order and place.
function update(fresh) {
  const old = shown,
    at = scrollY,
    typed = old && document.activeElement === old.finder.search;
  report = fresh;
  about();
  const t = (old && report.tables.find((t) => t.table === old.table)) || report.tables[0];
  if (!t) return nothing();
  choose(t);
  if (old && old.table === t.table) shown.finder.resume(old.finder, typed);
  scrollTo(0, at);
}

function nothing() {
  shown = null;
  byId("title").textContent = "No tables";
  for (const id of ["about", "main", "contents"]) byId(id).replaceChildren();
}

function start() {
  about();
  document.body.prepend(hatch());
  byId("tables")
    .querySelector("select")
    .addEventListener("change", (e) => {
      follow(tableAddress(report.tables[e.target.value].table));
    });
  byId("theme").addEventListener("change", (e) => {
    if (e.target.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = e.target.value;
  });
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") hideTip();
  });
  addEventListener("scroll", hideTip, {passive: true});
  addEventListener("click", (e) => {
    const a = e.target.closest("a[href^='#feature='], a[href^='#group='], a[href^='#table=']");
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    follow(a.getAttribute("href"));
  });
  addEventListener("hashchange", (e) => showAddress(new URL(e.newURL).hash)); // location may have been replaced since
  if (!report.tables.length) nothing();
  else {
    show(report.tables[0]);
    if (location.hash) showAddress(location.hash);
  }
  keepUp();
  performance.mark("dsistat-ready");
}

start();
