// The page: reads the report that lies in it, and draws its tables, one at a time.

const report = JSON.parse(byId("report").textContent);

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

// follow goes to a feature or a group, and back again with the browser's button.
function follow(address) {
  history.pushState(null, "", address);
  shown.finder.go(address);
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
  summary(main, t, report.since);
  for (const [id, title, make] of sections) {
    const section = el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title));
    main.append(section); // first, so that charts know their width
    if (make(section, t) === false) section.remove();
    else contents.append(el("li", null, el("a", {href: "#" + id}, title)));
  }
  drawCharts();
}

function start() {
  byId("store").textContent = report.store;
  byId("foot").textContent =
    "Made by dsistat on " +
    minute(report.made) +
    (report.since ? " from access records since " + day(report.since) : " from all access records") +
    ". Days are of UTC.";
  document.body.prepend(hatch());
  const picker = byId("tables").querySelector("select");
  if (report.tables.length > 1) {
    byId("tables").hidden = false;
    picker.append(...report.tables.map((t, i) => el("option", {value: i}, t.table)));
    picker.addEventListener("change", () => {
      history.replaceState(null, "", "#");
      show(report.tables[picker.value]);
    });
  }
  byId("theme").addEventListener("change", (e) => {
    if (e.target.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = e.target.value;
  });
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") hideTip();
  });
  addEventListener("scroll", hideTip, {passive: true});
  addEventListener("click", (e) => {
    const a = e.target.closest("a[href^='#feature='], a[href^='#group=']");
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    follow(a.getAttribute("href"));
  });
  addEventListener("hashchange", (e) => {
    if (shown) shown.finder.go(new URL(e.newURL).hash); // location may have been replaced since
  });
  if (!report.tables.length) {
    byId("title").textContent = "No tables";
    return;
  }
  show(report.tables[0]);
  if (location.hash) shown.finder.go(location.hash);
  performance.mark("dsistat-ready");
}

start();
