// The stored bytes by feature, one area for each, together by kind and within it by when they were last read. What would be too small to
// see is drawn together with others of its kind and age, so that areas and colours stay true at 20,000 features.

const ages = [
  {id: "recent", name: "read in the last 7 days", holds: (f) => f.last_read && f.unread_days <= 7},
  {id: "month", name: "8 to 30 days ago", holds: (f) => f.last_read && f.unread_days <= 30},
  {id: "older", name: "more than 30 days ago", holds: (f) => f.last_read},
  {id: "unread", name: "not read", holds: () => true},
];
const ageOf = (f) => (f.age ??= ages.findIndex((a) => a.holds(f)));

const leastArea = 60; // square pixels that a feature must have to be drawn alone

function treemap(host, features, open) {
  const total = d3.sum(features, (f) => f.stored_bytes);
  const kinds = d3.groups(
    features.filter((f) => f.stored_bytes > 0),
    (f) => f.kind,
    ageOf,
  );

  function hierarchy(least) {
    return {
      children: kinds.map(([kind, byAge]) => ({
        kind,
        children: byAge.map(([age, list]) => {
          const large = list.filter((f) => f.stored_bytes >= least),
            rest = list.filter((f) => f.stored_bytes < least);
          const children = large.map((f) => ({feature: f, age, size: f.stored_bytes}));
          if (rest.length) children.push({rest: rest.length, age, kind, size: d3.sum(rest, (f) => f.stored_bytes)});
          return {children};
        }),
      })),
    };
  }

  function tip(c) {
    if (c.rest) {
      return {
        title: plural(c.rest, "smaller " + c.kind + " feature"),
        rows: [
          ["stored", bytes(c.size)],
          ["of the features' bytes", share(c.size / total)],
        ],
        note: ages[c.age].name,
      };
    }
    const f = c.feature;
    return {
      title: f.feature,
      rows: [
        ["stored", bytes(f.stored_bytes)],
        ["of the features' bytes", share(f.stored_bytes / total)],
        ["jobs", count(f.jobs)],
        ["last read", f.last_read ? day(f.last_read) : "never"],
      ],
      note: "Enter or a click shows it in the table.",
    };
  }

  chart(host, {
    label: "Stored bytes by feature, coloured by when they were last read",
    draw(width) {
      const height = Math.round(Math.max(260, Math.min(440, width * 0.36))),
        head = 18;
      const root = d3
        .hierarchy(hierarchy((leastArea * total) / (width * height)))
        .sum((n) => n.size || 0)
        .sort((a, b) => (a.depth === 2 && b.depth === 2 ? firstAge(a) - firstAge(b) : b.value - a.value));
      d3
        .treemap()
        .size([width, height])
        .paddingTop((n) => (n.depth === 1 && n.y1 - n.y0 > 2 * head ? head : 0))
        .paddingInner((n) => (n.depth === 0 ? 4 : 0))
        .round(true)(root);
      const nodes = [],
        marks = [],
        labels = [],
        cells = svg("g", {class: "cells"}),
        mark = svg("rect", {class: "mark"});
      let unread = "";
      for (const kind of root.children) {
        if (kind.y1 - kind.y0 > 2 * head) {
          nodes.push(
            text(kind.x0, kind.y0 + 13, "start", "strong", fits(kind.data.kind + "  " + bytes(kind.value), kind.x1 - kind.x0)),
          );
        }
      }
      for (const leaf of root.leaves().sort((a, b) => b.value - a.value)) {
        const c = leaf.data,
          age = ages[c.age].id,
          box = {x: leaf.x0, y: leaf.y0, width: leaf.x1 - leaf.x0, height: leaf.y1 - leaf.y0};
        cells.append(svg("rect", {...box, class: "cell " + age}));
        if (age === "unread") unread += "M" + leaf.x0 + "," + leaf.y0 + "H" + leaf.x1 + "V" + leaf.y1 + "H" + leaf.x0 + "Z";
        const label =
          box.width > 46 && box.height > 16
            ? c.feature
              ? fitsBoth(c.feature.feature, box.width - 8, 7.7) // digits are wide
              : fits(plural(c.rest, "smaller one"), box.width - 8, 6.4)
            : "";
        if (label) labels.push(text(leaf.x0 + 4, leaf.y0 + 13, "start", age, label));
        const enter = () => {
          for (const [name, value] of Object.entries(box)) mark.setAttribute(name, value);
        };
        marks.push({
          x: (leaf.x0 + leaf.x1) / 2,
          y: (leaf.y0 + leaf.y1) / 2,
          box: leaf,
          tip: tip(c),
          node: mark,
          enter,
          open: c.feature && (() => open(c.feature)),
        });
      }
      cells.append(svg("path", {class: "hatched", d: unread || "M0,0"}), ...labels);
      nodes.push(cells, mark);
      return {
        height,
        nodes,
        marks,
        pick: (x, y) => marks.findIndex(({box}) => x >= box.x0 && x < box.x1 && y >= box.y0 && y < box.y1),
      };
    },
    table: () => ({
      head: ["Kind", "Last read", "#Features", "#Stored", "#Of the features' bytes"],
      rows: kinds.flatMap(([kind, byAge]) =>
        d3
          .sort(byAge, ([age]) => age)
          .map(([age, list]) => {
            const size = d3.sum(list, (f) => f.stored_bytes);
            return [kind, ages[age].name, count(list.length), bytes(size), share(size / total)];
          }),
      ),
    }),
  });
  const byAge = d3.group(features, ageOf);
  host.append(
    el(
      "ul",
      {class: "legend"},
      ages.map((a, i) => {
        const list = byAge.get(i) || [],
          size = d3.sum(list, (f) => f.stored_bytes);
        return el(
          "li",
          null,
          el("span", {class: "swatch " + a.id}),
          el("span", null, a.name + ": "),
          el("span", {class: "soft"}, plural(list.length, "feature") + ", " + bytes(size) + ", " + share(size / total)),
        );
      }),
    ),
  );
}

const firstAge = (n) => n.leaves()[0].data.age;
