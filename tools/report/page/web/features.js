// The features of a table: a search, a table of those that it finds, and all that is known of the one that is chosen, whose address is #feature=NAME.

const addressOf = (name) => "#feature=" + encodeURIComponent(name);
const groupAddress = (name) => "#group=" + encodeURIComponent(name);

// causesOf are the causes that saved or cost anything, in the order of the chain.
function causesOf(saved) {
  const order = Object.keys(causeNames),
    place = (cause) => (order.includes(cause) ? order.indexOf(cause) : order.length);
  return d3.sort(
    Object.entries(saved).filter(([, n]) => n),
    ([cause]) => place(cause),
  );
}

// wordsOf are what a search looks at, made by the first one.
const wordsOf = (f) =>
  (f.words ??= (f.feature + " " + f.kind + " " + f.type + " " + (f.role || "") + " " + (f.status || "")).toLowerCase());

class Features {
  constructor(host, table) {
    this.all = table.features;
    this.cost = table.cost;
    // Of two of a name the first counts: the one that readers see stands before a dropped one that is still stored.
    this.byName = new Map(this.all.toReversed().map((f) => [f.feature, f]));
    this.groups = new Map(table.groups.map((g) => [g.group, g]));
    this.adviceOf = (f) => table.advice.filter((a) => a.features.includes(f.feature));
    this.all.forEach((f) => {
      f.read_bytes = f.bytes_needed + f.bytes_unneeded;
    });
    this.filter = {words: "", kind: "", use: "", group: ""};

    const kinds = d3.sort(new Set(this.all.map((f) => f.kind)));
    const select = (label, key, options) =>
      el(
        "label",
        null,
        el("span", {class: "unseen"}, label),
        el(
          "select",
          {
            onchange: (e) => {
              this.filter[key] = e.target.value;
              this.apply();
            },
          },
          options.map(([value, name]) => el("option", {value}, name)),
        ),
      );
    this.search = el("input", {
      type: "search",
      placeholder: "Search names: words, or user_*",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => {
        this.filter.words = this.search.value;
        this.apply();
      },
    });
    this.kind = select("Kind", "kind", [["", "all kinds"], ...kinds.map((k) => [k, k])]);
    this.use = select("Use", "use", [["", "read or not"], ...ages.map((a) => [a.id, a.name])]);
    this.chip = el("button", {
      type: "button",
      class: "chip",
      hidden: true,
      onclick: () => {
        this.filter.group = "";
        this.apply();
        this.search.focus();
      },
    });
    this.found = el("span", {class: "count", role: "status"});
    host.append(
      el(
        "div",
        {class: "bar", role: "search"},
        el("label", null, el("span", {class: "unseen"}, "Search features"), this.search),
        this.kind,
        this.use,
        this.chip,
        this.found,
      ),
    );

    const most = (this.most = {stored: 0, read: 0}); // of the rows found: bars are shares of it
    this.table = new RowTable(host, {
      label: "Features",
      height: 560,
      sort: {id: "read", ascending: false},
      none: "No feature is like that.",
      open: (f) => this.choose(f),
      columns: [
        {id: "name", name: "Feature", width: 196, value: (f) => f.feature, cell: (f) => f.feature, full: (f) => f.feature},
        {id: "kind", name: "Kind", width: 80, value: (f) => f.kind, cell: (f) => f.kind},
        {
          id: "read",
          name: "Read",
          width: 92,
          number: true,
          tip: "Bytes that jobs fetched for it",
          value: (f) => f.read_bytes,
          cell: (f) => within(f.read_bytes ? bytes(f.read_bytes) : dash, f.read_bytes, most.read),
        },
        {id: "jobs", name: "Jobs", width: 54, number: true, value: (f) => f.jobs, cell: (f) => (f.jobs ? count(f.jobs) : dash)},
        {
          id: "last",
          name: "Last read",
          width: 100,
          number: true,
          value: (f) => f.last_read,
          cell: (f) => (f.last_read ? day(f.last_read) : "never"),
          flag: (f) => !f.last_read && "never",
        },
        {
          id: "stored",
          name: "Stored",
          width: 92,
          number: true,
          tip: "Bytes of its feature files",
          value: (f) => f.stored_bytes,
          cell: (f) => within(bytes(f.stored_bytes), f.stored_bytes, most.stored),
        },
        {
          id: "raw",
          name: "Plain",
          width: 80,
          number: true,
          tip: "Bytes of its values as plain numbers",
          value: (f) => f.raw_bytes,
          cell: (f) => bytes(f.raw_bytes),
        },
        {
          id: "dedupe",
          name: "Rows a slot",
          width: 92,
          number: true,
          tip: "Dedupe factor",
          value: (f) => f.dedupe_factor,
          cell: (f) => factor(f.dedupe_factor),
        },
        {
          id: "coverage",
          name: "Coverage",
          width: 82,
          number: true,
          tip: "Share of the rows where it is not null",
          value: (f) => f.coverage,
          cell: (f) => share(f.coverage),
        },
        {
          id: "length",
          name: "Length",
          width: 70,
          number: true,
          tip: "Elements of a row that is not null, on average",
          value: (f) => f.mean_length,
          cell: (f) => three(f.mean_length),
        },
        {
          id: "distinct",
          name: "Distinct ≤",
          width: 90,
          number: true,
          tip: "At most so many different values",
          value: (f) => f.distinct && f.distinct.at_most,
          cell: (f) => (f.distinct ? short(f.distinct.at_most) : dash),
        },
        {
          id: "group",
          name: "Group",
          width: 150,
          value: (f) => f.group,
          cell: (f) => (f.group ? el("a", {href: groupAddress(f.group)}, f.group) : ""),
        },
      ],
    });
    this.table.entered = () => this.heading.focus();
    this.detail = el(
      "div",
      {class: "detail", "aria-live": "off"},
      el(
        "p",
        {class: "soft"},
        "Choose a feature to see where its bytes went, how it is encoded, and which others share its group.",
      ),
    );
    host.append(this.detail);
    this.apply();
  }

  apply() {
    const {words, kind, use, group} = this.filter;
    const tests = words
      .toLowerCase()
      .split(/\s+/)
      .filter(Boolean)
      .map((w) => {
        if (!w.includes("*")) return (f) => wordsOf(f).includes(w);
        const glob = new RegExp(
          "^" +
            w
              .split("*")
              .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
              .join(".*") +
            "$",
        );
        return (f) => glob.test(f.feature.toLowerCase());
      });
    const members = group ? new Set(this.membersOf(group)) : null;
    const rows = this.all.filter(
      (f) =>
        (!kind || f.kind === kind) &&
        (!use || ages[ageOf(f)].id === use) &&
        (!members || members.has(f.feature)) &&
        tests.every((t) => t(f)),
    );
    this.most.stored = d3.max(rows, (f) => f.stored_bytes);
    this.most.read = d3.max(rows, (f) => f.read_bytes);
    this.chip.hidden = !group;
    this.chip.textContent = "group of " + group + "  ×";
    this.chip.setAttribute("aria-label", "Show features of all groups again, not only of " + group);
    this.table.show(rows);
    this.found.textContent =
      (rows.length < this.all.length ? count(rows.length) + " of " : "") +
      plural(this.all.length, "feature") +
      ": " +
      bytes(d3.sum(rows, (f) => f.stored_bytes)) +
      " stored, " +
      bytes(d3.sum(rows, (f) => f.read_bytes)) +
      " read";
  }

  membersOf(group) {
    const g = this.groups.get(group);
    return g ? g.features : this.all.filter((f) => f.group === group).map((f) => f.feature);
  }

  reset() {
    Object.assign(this.filter, {words: "", kind: "", use: "", group: ""});
    this.search.value = "";
    for (const label of [this.kind, this.use]) label.querySelector("select").value = "";
  }

  // resume takes over from the Features of an older report what is searched, how it is sorted, and which one is chosen. typed says that the search had
  // the focus.
  resume(old, typed) {
    this.filter = old.filter;
    this.search.value = old.search.value;
    for (const key of ["kind", "use"]) this[key].querySelector("select").value = this.filter[key];
    this.table.sort = old.table.sort;
    this.apply();
    const chosen = old.table.rows[old.table.active],
      same = chosen && this.byName.get(chosen.feature);
    if (same && this.table.rows.includes(same)) this.table.chooseRow(same);
    if (!typed) return;
    this.search.focus({preventScroll: true});
    this.search.setSelectionRange(old.search.selectionStart, old.search.selectionEnd);
  }

  // go shows what an address of this page names. It says whether it was one of a feature or a group.
  go(hash) {
    const m = /^#(feature|group)=(.*)$/.exec(hash);
    if (!m) return false;
    let name;
    try {
      name = decodeURIComponent(m[2]);
    } catch {
      return false;
    }
    if (m[1] === "group") {
      this.reset();
      this.filter.group = name;
      this.apply();
    } else {
      const f = this.byName.get(name);
      if (!f) return false;
      if (!this.table.rows.includes(f)) {
        this.reset();
        this.apply();
      }
      this.table.chooseRow(f);
    }
    byId("features").scrollIntoView({block: "start"});
    return true;
  }

  choose(f) {
    clearTimeout(this.addressed);
    const address = addressOf(f.feature);
    if (location.hash !== address) {
      // Later, because browsers refuse a new address for each row that a held key passes.
      this.addressed = setTimeout(() => history.replaceState(null, "", address), 120);
    }
    const facts = (title, rows) =>
      el(
        "div",
        null,
        el("h4", null, title),
        el(
          "dl",
          null,
          rows.filter((r) => r[1] !== undefined && r[1] !== "").map(([k, v]) => [el("dt", null, k), el("dd", null, v)]),
        ),
      );
    const links = (title, names, more) =>
      el(
        "div",
        null,
        el("h4", null, title),
        el(
          "ul",
          null,
          names.map((n) => el("li", null, n === f.feature ? el("span", {class: "soft"}, n) : el("a", {href: addressOf(n)}, n))),
          more && el("li", null, more),
        ),
      );
    const members = f.group ? this.membersOf(f.group) : [];
    const advice = this.adviceOf(f);
    this.heading = el("h3", {tabindex: -1}, f.feature);
    this.detail.replaceChildren(
      this.heading,
      el(
        "p",
        {class: "soft"},
        [f.kind, f.type, f.role, f.status, f.origin_column && "from " + f.origin_column, "id " + f.id]
          .filter(Boolean)
          .join(" · "),
      ),
      ...advice.map((a) => el("p", null, el("b", null, "Advice: "), a.text)),
      el(
        "div",
        {class: "parts"},
        facts("Bytes", [
          ["as plain numbers", bytes(f.raw_bytes)],
          ...causesOf(f.saved || {}).map(([cause, n]) => [
            (causeNames[cause] || cause).toLowerCase(),
            (n > 0 ? "− " : "+ ") + bytes(Math.abs(n)),
          ]),
          ["stored", bytes(f.stored_bytes)],
        ]),
        facts("Values", [
          ["coverage", share(f.coverage)],
          ["mean length", three(f.mean_length)],
          ["elements", short(f.elements)],
          ["of them stored", short(f.stored_elements)],
          ["slots", short(f.slots)],
          ["partial duplicates", f.partial ? short(f.partial) : ""],
          ["rows/slot", factor(f.dedupe_factor)],
          [
            "distinct",
            f.distinct
              ? short(f.distinct.at_least) + " to " + (f.distinct.at_most === undefined ? "?" : short(f.distinct.at_most))
              : "",
          ],
          ["segments", count(f.segments)],
        ]),
        facts("Use", [
          ["jobs", count(f.jobs)],
          ["readers", count(f.readers)],
          ["days", count(f.days)],
          ["rows", short(f.rows_read)],
          ["bytes needed", bytes(f.bytes_needed)],
          ["unneeded", bytes(f.bytes_unneeded)],
          ["first read", f.first_read ? day(f.first_read) : ""],
          ["last read", f.last_read ? day(f.last_read) : "never"],
        ]),
        this.cost &&
          facts("A month costs", [
            ["to store", money(f.stored_month || 0, this.cost.currency)],
            ["to read", money(f.reads_month || 0, this.cost.currency)],
          ]),
        members.length > 0 &&
          links(
            "Group of " + plural(members.length, "feature"),
            members.slice(0, 50),
            members.length > 1 && el("a", {href: groupAddress(f.group)}, "all of them in the table"),
          ),
        f.encodings &&
          f.encodings.length &&
          el(
            "div",
            {class: "wide"},
            el("h4", null, "Encodings, in its newest segment"),
            el(
              "ul",
              null,
              f.encodings.map((e) => el("li", null, e.stream + ", " + bytes(e.bytes) + ": ", el("code", null, e.encoding))),
            ),
          ),
      ),
    );
  }
}
