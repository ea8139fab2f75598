// Days as small multiples over one axis of time: what was read, by how many, how much of it was unneeded, how long jobs waited, and how the
// table grew.

function trend(host, days) {
  const panels = [
    {name: "Bytes read a day", value: (d) => d.bytes_needed + d.bytes_unneeded, waste: (d) => d.bytes_unneeded, write: bytes},
    {name: "Jobs a day", value: (d) => d.jobs, write: short},
    {name: "Features read a day", value: (d) => d.features, write: short},
    {name: "Requests a day", value: (d) => d.requests, write: short},
    {name: "Time that jobs waited", value: (d) => d.stall_seconds, write: duration},
  ];
  if (days.some((d) => d.table_bytes))
    panels.push({name: "Table's size at the day's end", value: (d) => d.table_bytes, write: bytes});

  function tip(d) {
    const rows = [
      ["read", bytes(d.bytes_needed + d.bytes_unneeded)],
      ["of it unneeded", bytes(d.bytes_unneeded)],
      ["jobs", count(d.jobs)],
      ["readers", count(d.readers)],
      ["features", count(d.features)],
      ["rows", short(d.rows)],
      ["waited", duration(d.stall_seconds)],
    ];
    if (d.table_bytes) rows.push(["table", bytes(d.table_bytes)]);
    return {title: day(d.day), rows};
  }

  chart(host, {
    label: "Trend over " + plural(days.length, "day"),
    draw(width) {
      const columns = Math.min(panels.length, width > 900 ? 3 : width > 560 ? 2 : 1),
        gap = 34,
        high = 118,
        head = 22,
        foot = 22;
      const wide = (width - gap * (columns - 1)) / columns,
        nodes = [],
        marks = days.map((d) => ({tip: tip(d), node: svg("g", {class: "mark days"})}));
      const tick = days.map((d, i) => i).filter((i) => (days.length <= 14 ? i % 7 === 0 : /-(01|15)$/.test(days[i].day)));
      const origin = panels.map((_, i) => [(i % columns) * (wide + gap), Math.floor(i / columns) * (high + head + foot + 10)]);
      const band = wide / days.length;
      panels.forEach((p, i) => {
        const [left, top] = origin[i],
          y0 = top + head + high;
        const most = d3.max(days, p.value) || 1,
          y = d3.scaleLinear([0, most], [0, high]);
        nodes.push(
          text(left, top + 13, "start", "strong", p.name),
          text(left + wide, top + 13, "end", "soft", "at most " + p.write(most)),
        );
        const thick = Math.max(1, Math.min(band - 1, 26)),
          shapes = {blue: "", orange: ""};
        const bar = (d, from, to) =>
          "M" +
          (left + band * (d + 0.5) - thick / 2).toFixed(1) +
          "," +
          (y0 - from).toFixed(1) +
          "h" +
          thick.toFixed(1) +
          "V" +
          (y0 - to).toFixed(1) +
          "h-" +
          thick.toFixed(1) +
          "Z";
        days.forEach((d, k) => {
          const all = y(p.value(d)),
            waste = p.waste ? y(p.waste(d)) : 0;
          if (all - waste > 0) shapes.blue += bar(k, 0, all - waste);
          if (waste > 0) shapes.orange += bar(k, all - waste, all);
        });
        nodes.push(svg("path", {class: "blue", d: shapes.blue || "M0,0"}));
        if (shapes.orange)
          nodes.push(svg("path", {class: "orange", d: shapes.orange}), svg("path", {class: "hatched", d: shapes.orange}));
        nodes.push(
          svg(
            "g",
            {class: "axis"},
            svg("line", {x1: left, x2: left + wide, y1: y0, y2: y0}),
            tick.map((k) =>
              text(
                Math.min(left + band * (k + 0.5), left + wide - 16),
                y0 + 15,
                k === 0 ? "start" : "middle",
                "",
                day(days[k].day, false),
              ),
            ),
          ),
        );
        marks.forEach((m, k) =>
          m.node.append(svg("rect", {class: "column", x: left + band * k, y: top + head, width: band, height: high})),
        );
      });
      marks.forEach((m, k) => {
        m.x = origin[0][0] + band * (k + 0.5);
        m.y = origin[0][1] + head + high / 2;
        nodes.push(m.node);
      });
      const rows = Math.ceil(panels.length / columns);
      return {
        height: rows * (high + head + foot + 10) - 8,
        nodes,
        marks,
        pick(x, y) {
          const i = panels.findIndex(
            (_, i) => x >= origin[i][0] && x < origin[i][0] + wide && y >= origin[i][1] && y <= origin[i][1] + head + high + foot,
          );
          return i < 0 ? -1 : Math.floor((x - origin[i][0]) / band);
        },
      };
    },
    table: () => ({
      head: ["Day", "#Needed", "#Unneeded", "#Jobs", "#Readers", "#Features", "#Rows", "#Waited"],
      rows: days.map((d) => [
        day(d.day),
        bytes(d.bytes_needed),
        bytes(d.bytes_unneeded),
        count(d.jobs),
        count(d.readers),
        count(d.features),
        count(d.rows),
        duration(d.stall_seconds),
      ]),
    }),
  });
  host.append(
    el(
      "ul",
      {class: "legend"},
      el("li", null, el("span", {class: "swatch blue"}), "what was needed"),
      el("li", null, el("span", {class: "swatch orange"}), "unneeded: fetched between it, and thrown away"),
    ),
  );
}
