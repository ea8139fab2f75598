// The page: reads the report that lies in it, and draws its tables, one at a time.

const report = JSON.parse(byId("report").textContent);

// Features come as columns (columns.go): their keys would be most of the page. "outer.inner" is a key of an object within a feature. What was saved of each
// is looked up when one is chosen: savedOf(f).
function unpack({rows, columns}) {
  const features = Array.from({length: rows}, (_, i) => ({at: i}));
  const saved = [];
  for (const [key, column] of Object.entries(columns)) {
    const [outer, inner] = key.split(".");
    const value = Array.isArray(column)
      ? (i) => column[i]
      : column.at
        ? (i) => column.of[column.at[i]]
        : () => column.all;
    if (outer === "saved") {
      saved.push([inner, value]);
      continue;
    }
    for (let i = 0; i < rows; i++) {
      const v = value(i);
      if (v === null) continue;
      if (inner === undefined) features[i][outer] = v;
      else (features[i][outer] ||= {})[inner] = v;
    }
  }
  const savedOf = (f) => Object.fromEntries(saved.map(([cause, value]) => [cause, value(f.at)]));
  return {features, savedOf};
}

let shown = null;

// follow goes to a feature or a group, and back again with the browser's button.
function follow(address) {
  history.pushState(null, "", address);
  shown.finder.go(address);
}

function show(t) {
  if (!Array.isArray(t.features)) Object.assign(t, unpack(t.features));
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
  addEventListener("hashchange", () => {
    if (shown) shown.finder.go(location.hash);
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
