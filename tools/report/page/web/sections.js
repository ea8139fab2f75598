// What stands on the page for a table, from the top.

const sections = [
  ["advice", "What to do", adviceSection],
  ["savings", "Where the bytes went", savingsSection],
  ["popularity", "What is read", popularitySection],
  ["map", "What is stored, and when it was last read", mapSection],
  ["trend", "Day by day", trendSection],
  ["features", "Features", featuresSection],
  ["jobs", "Jobs", jobsSection],
  ["health", "Health", healthSection],
];

const tableAddress = (name) => "#table=" + encodeURIComponent(name);

// tablesSection lists the tables where there are several, each with what it is chosen by.
function tablesSection(host, tables, shown) {
  if (tables.length < 2) return;
  host.append(
    el(
      "section",
      {id: "all", "aria-labelledby": "all-title"},
      el("h2", {id: "all-title"}, plural(tables.length, "table")),
      plainTable(
        ["Table", "#Rows", "#Features", "#Stored", "#Smaller than plain", "#Jobs", "#Bytes read", "#Last read"],
        tables.map((t) => {
          const s = t.summary,
            r = s.reads;
          return [
            el("a", {href: tableAddress(t.table), "aria-current": t === shown && "true"}, t.table),
            short(s.rows),
            count(s.features),
            bytes(s.stored_bytes),
            factor(s.ratio),
            count(r.jobs),
            bytes(r.bytes_needed + r.bytes_unneeded),
            s.last_read ? day(s.last_read) : "never",
          ];
        }),
      ),
    ),
  );
}

function summary(host, t, since) {
  const s = t.summary,
    r = s.reads,
    b = (x) => el("b", null, x);
  const eighty = reaches(t.curve, 0.8);
  const lead = el(
    "p",
    {class: "lead"},
    b(bytes(s.raw_bytes)),
    " of plain numbers are stored in ",
    b(bytes(s.stored_bytes)),
    ": " + (s.ratio < 1 ? factor(1 / s.ratio) + " more. " : factor(s.ratio) + " smaller. "),
  );
  if (r.readers) {
    lead.append(
      b(plural(r.jobs, "job")),
      " read ",
      b(count(s.features_read)),
      " of " + plural(s.features, "feature") + (since ? " since " + day(since) : "") + ". ",
    );
    if (eighty)
      lead.append(b(share(eighty.bytes_share)), " of the bytes serve " + share(eighty.traffic_share) + " of what they read. ");
    if (s.features_read < s.features)
      lead.append("Features with ", b(share(1 - s.bytes_read_share)), " of the bytes were not read at all.");
  } else {
    lead.append("Nothing is known of who reads it" + (since ? " since " + day(since) : "") + ".");
  }
  const tile = (name, figure, note, waste) =>
    el(
      "div",
      {class: "tile"},
      el("dt", null, name),
      el("dd", {class: waste ? "figure waste" : "figure"}, figure),
      el("dd", {class: "note"}, note),
    );
  host.append(
    lead,
    el(
      "dl",
      {class: "tiles"},
      tile(
        "Stored",
        bytes(s.stored_bytes),
        bytes(s.bytes_per_row) + " a row" + (s.layer_bytes ? ", and " + bytes(s.layer_bytes) + " of overlays" : ""),
      ),
      tile("Smaller than plain", factor(s.ratio), bytes(s.raw_bytes) + " as plain numbers"),
      tile(
        "Rows a slot, stored",
        factor(s.dedupe_factor),
        r.readers ? factor(r.emitted_factor) + " in batches" : "duplicates are stored once",
      ),
      tile("Rows", short(s.rows), plural(s.segments, "segment") + ", " + plural(s.partitions, "partition")),
      tile("Features", count(s.features), count(s.features_read) + " of them read"),
      r.readers > 0 && tile("Jobs", count(r.jobs), plural(r.readers, "reader")),
      r.readers > 0 &&
        tile(
          "Bytes read",
          bytes(r.bytes_needed + r.bytes_unneeded),
          short(r.rows) + " rows, in " + short(r.requests) + " requests",
        ),
      r.readers > 0 &&
        tile("Read amplification", factor(r.amplification), bytes(r.bytes_unneeded) + " unneeded", r.amplification > 1.25),
      r.readers > 0 && tile("Jobs waited", duration(r.stall_seconds), "decoding took " + duration(r.decode_seconds)),
      t.cost &&
        tile(
          "A month costs",
          money(t.cost.stored_month + t.cost.reads_month, t.cost.currency),
          money(t.cost.stored_month, t.cost.currency) +
            " to store the newest snapshot, " +
            (t.cost.days
              ? money(t.cost.reads_month, t.cost.currency) +
                " to read, if 30 days are like the last " +
                plural(t.cost.days, "day") +
                ", without opening tables and writing usage records"
              : "unknown to read, without usage records") +
            " (" +
            t.cost.prices +
            ")",
        ),
      r.readers > 0 && tile("Not read", share(1 - s.bytes_read_share), "of the features' bytes", s.bytes_read_share < 0.8),
    ),
  );
}

function adviceSection(host, t) {
  if (!t.advice.length) return host.append(el("p", {class: "why"}, "Nothing worth doing was found."));
  const about = (a, n) => (a.estimate ? "≈ " : "") + bytes(n);
  host.append(
    el(
      "ol",
      {class: "advice"},
      t.advice.map((a) =>
        el(
          "li",
          null,
          el(
            "div",
            {class: "worth"},
            a.saved_bytes
              ? [about(a, a.saved_bytes), el("small", null, "less to store")]
              : a.unneeded_bytes
                ? [about(a, a.unneeded_bytes), el("small", null, "less to read")]
                : dash,
          ),
          el(
            "div",
            null,
            el("p", null, a.text.charAt(0).toUpperCase() + a.text.slice(1)),
            a.command && el("code", null, a.command),
            a.features.length > 0 &&
              el(
                "p",
                {class: "soft"},
                a.features.slice(0, 6).map((n, i) => [i ? ", " : "", el("a", {href: addressOf(n)}, n)]),
                a.feature_count > Math.min(6, a.features.length)
                  ? " and " + count(a.feature_count - Math.min(6, a.features.length)) + " more"
                  : "",
              ),
          ),
        ),
      ),
    ),
  );
}

function savingsSection(host, t) {
  const s = t.savings;
  host.append(
    el(
      "p",
      {class: "why"},
      "From the source's values as plain numbers to what is stored, in the order in which the writer works. Each byte is counted once, at the first step that saves or adds it." +
        (s.duplicates_saved_estimate
          ? " Encodings alone would save much of what the steps before them save: without runs, values that come again and slices, about " +
            bytes(s.duplicates_saved_estimate) +
            " more would be stored."
          : ""),
    ),
  );
  waterfall(host, s);
  const rows = [
    ...s.overlays.map((o) => [
      "Overlay " + o.overlay,
      "a copy of its segments, " + bytes(o.copy_bytes),
      bytes(o.bytes),
      bytes(o.saved_bytes) + " saved",
    ]),
    ...s.sample_lists.map((l) => [
      "Sample list " + l.sample_list,
      "a copy of " + short(l.rows) + " rows",
      "",
      "≈ " + bytes(l.saved_bytes_estimate) + " saved",
    ]),
  ];
  if (s.deleted.count)
    rows.push([
      "Deleted rows",
      short(s.deleted.count) + " rows in " + plural(s.deleted.segments, "segment"),
      "≈ " + bytes(s.deleted.bytes),
      "wait for compaction",
    ]);
  if (s.dropped.count)
    rows.push([
      "Dropped features",
      plural(s.dropped.count, "feature") + " in " + plural(s.dropped.segments, "segment"),
      bytes(s.dropped.bytes),
      "wait for compaction",
    ]);
  if (rows.length)
    host.append(
      el("p", {class: "why"}, "No part of that sum:"),
      plainTable(["What", "Instead of, or where", "#Stored", "#Worth"], rows),
    );
}

function popularitySection(host, t) {
  if (!t.curve.points.length) return false;
  const steps = t.curve.marks.filter((m, i, all) => i === 0 || m.features !== all[i - 1].features);
  const marks = steps.map((m) => [share(m.traffic_share), share(m.bytes_share), count(m.features)]);
  const top = d3
    .sort(
      t.features.filter((f) => f.last_read),
      (f) => -(f.bytes_needed + f.bytes_unneeded),
    )
    .slice(0, 14);
  const left = el("div"),
    right = el("div");
  host.append(el("div", {class: "two"}, left, right));
  left.append(el("p", {class: "soft"}, "When features are taken in the order of bytes read for each byte stored."));
  curve(left, t.curve);
  left.append(plainTable(["#Of the bytes read", "#come from … of those stored", "#in … features"], marks));
  right.append(
    el("h3", null, "Most read"),
    plainTable(
      ["Feature", "#Read", "#Jobs", "#Stored"],
      top.map((f) => [
        el("a", {href: addressOf(f.feature)}, f.feature),
        bytes(f.bytes_needed + f.bytes_unneeded),
        count(f.jobs),
        bytes(f.stored_bytes),
      ]),
    ),
  );
}

function mapSection(host, t) {
  if (!t.features.some((f) => f.stored_bytes > 0)) return false;
  host.append(
    el(
      "p",
      {class: "why"},
      "Each area is the stored bytes of a feature. Orange and hatched: nobody read it" +
        (t.since ? " since " + day(t.since) : "") +
        ".",
    ),
  );
  treemap(host, t.features, (f) => follow(addressOf(f.feature)));
}

function trendSection(host, t) {
  if (t.days.length < 2) return false;
  trend(host, t.days);
}

function featuresSection(host, t) {
  t.finder = new Features(host, t);
}

function jobsSection(host, t) {
  if (!t.jobs.length) return false;
  const fetched = (j) => j.bytes_needed + j.bytes_unneeded,
    most = d3.max(t.jobs, fetched);
  new RowTable(host, {
    label: "Jobs",
    height: 420,
    sort: {id: "read", ascending: false},
    columns: [
      {id: "job", name: "Job", width: 190, value: (j) => j.job, cell: (j) => j.job, full: (j) => j.job},
      {id: "user", name: "User", width: 110, value: (j) => j.user, cell: (j) => j.user},
      {id: "programs", name: "By", width: 84, value: (j) => j.programs.join(", "), cell: (j) => j.programs.join(", ")},
      {
        id: "read",
        name: "Read",
        width: 92,
        number: true,
        tip: "Bytes that it fetched",
        value: fetched,
        cell: (j) => within(bytes(fetched(j)), fetched(j), most),
      },
      {
        id: "amplification",
        name: "Amplified",
        width: 80,
        number: true,
        tip: "Bytes fetched for each byte needed",
        value: (j) => j.amplification,
        cell: (j) => factor(j.amplification),
      },
      {id: "rows", name: "Rows", width: 72, number: true, value: (j) => j.rows, cell: (j) => short(j.rows)},
      {id: "features", name: "Features", width: 74, number: true, value: (j) => j.features, cell: (j) => count(j.features)},
      {
        id: "share",
        name: "Of bytes",
        width: 92,
        number: true,
        tip: "Share of the stored bytes that its features have",
        value: (j) => j.bytes_share,
        cell: (j) => share(j.bytes_share),
      },
      {
        id: "factor",
        name: "Rows a slot",
        width: 92,
        number: true,
        tip: "Dedupe factor of its batches",
        value: (j) => j.emitted_factor,
        cell: (j) => factor(j.emitted_factor),
      },
      {
        id: "stall",
        name: "Waited",
        width: 76,
        number: true,
        value: (j) => j.stall_seconds,
        cell: (j) => duration(j.stall_seconds),
      },
      {
        id: "decode",
        name: "Decoding",
        width: 80,
        number: true,
        value: (j) => j.decode_seconds,
        cell: (j) => duration(j.decode_seconds),
      },
      {id: "readers", name: "Readers", width: 72, number: true, value: (j) => j.readers, cell: (j) => count(j.readers)},
      {id: "last", name: "Last read", width: 100, number: true, value: (j) => j.last, cell: (j) => day(j.last)},
    ],
  }).show(t.jobs);
}

function healthSection(host, t) {
  const h = t.health,
    rows = [];
  const fact = (what, figure, detail) => rows.push([what, figure, detail]);
  const g = h.segments;
  fact(
    "Segments",
    count(g.count),
    short(Math.round(g.mean_rows)) + " rows and " + bytes(g.mean_bytes) + " on average, " + bytes(g.index_bytes) + " of indexes",
  );
  fact(
    "Small segments",
    count(g.small),
    g.small
      ? "with " + bytes(g.small_bytes) + "; " + count(g.mergeable) + " have another in their partition to be merged with"
      : "none has less than half of what compaction makes",
  );
  fact(
    "Packs",
    count(h.packs.packs),
    bytes(h.packs.pack_bytes) +
      ", " +
      count(h.packs.small) +
      " smaller than " +
      bytes(h.packs.small_below_bytes) +
      "; " +
      plural(h.packs.files, "feature file") +
      " alone, " +
      bytes(h.packs.file_bytes),
  );
  fact(
    "Snapshots",
    count(h.snapshots.count),
    count(h.snapshots.first) +
      " to " +
      count(h.snapshots.newest) +
      "; " +
      bytes(h.snapshots.alone_bytes) +
      " are held by old ones alone" +
      (h.snapshots.skipped ? "; " + count(h.snapshots.skipped) + " old ones were not looked at" : ""),
  );
  const a = h.usage_records;
  fact(
    "Access records",
    count(a.records + a.rollups),
    a.first
      ? day(a.first) + " to " + day(a.last) + ": " + plural(a.records, "record") + " and " + plural(a.rollups, "rollup")
      : "there are none",
  );
  if (a.damaged) fact("Damaged records", count(a.damaged), a.damaged_names.join("; "));
  host.append(plainTable(["What", "#How many", "Figures"], rows));
  const more = (title, head, list) => {
    if (list.length) host.append(el("h3", {class: "later"}, title), plainTable(head, list));
  };
  more(
    "Overlays",
    ["Overlay", "State", "Features", "#Layers", "#Rows covered", "#Coverage", "#Stored"],
    h.overlays.map((o) => [
      o.overlay,
      o.state || "open",
      fits(o.features.join(", "), 400),
      count(o.layers),
      short(o.covered),
      share(o.coverage),
      bytes(o.bytes),
    ]),
  );
  more(
    "Sample lists",
    ["Sample list", "Definition", "#Rows", "#Of the table"],
    h.sample_lists.map((l) => [l.sample_list, fits(l.definition, 500), short(l.rows), share(l.share)]),
  );
  more(
    "Branches",
    ["Branch", "Owner", "Created", "Snapshots", "#Held by it alone"],
    h.branches.map((b) => [b.branch, b.owner, day(b.created), b.snapshots.join(", "), bytes(b.alone_bytes)]),
  );
  more(
    "Leases",
    ["Owner", "Snapshot", "Until", "#Held by it alone"],
    h.leases.map((l) => [l.owner, String(l.snapshot), minute(l.until), bytes(l.alone_bytes)]),
  );
  more(
    "Snapshots that hold what newer ones do not have",
    ["Snapshot", "Made", "By", "What took it away", "#Held"],
    h.snapshots.holding.map((s) => [String(s.snapshot), minute(s.time), s.operation, s.next_operation, bytes(s.bytes)]),
  );
  more(
    "Smallest segments",
    ["Segment", "Partition", "#Rows", "#Deleted", "#Stored"],
    h.smallest_segments.map((s) => [s.segment, s.partition, count(s.rows), count(s.rows_deleted), bytes(s.bytes)]),
  );
}
