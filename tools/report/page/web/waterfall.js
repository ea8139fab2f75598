// The waterfall from the source's bytes to those stored: each cause hangs where the one before it ended, so that the eye adds up what the
// report adds up to the byte.

const causeNames = {
  runs: "Runs of equal rows",
  slots: "Values that come again",
  partial: "Slices of longer lists",
  encodings: "Encodings",
  shape: "Presence and lengths",
  inverses: "Which row has which value",
  groups: "One inverse for a group",
  frames: "Headers and checksums",
};

function waterfall(host, savings) {
  const steps = [];
  let at = savings.raw_bytes;
  for (const c of savings.causes) {
    if (c.bytes === 0) continue;
    steps.push({name: causeNames[c.cause] || c.cause, from: at, to: at - c.bytes, cause: c});
    at -= c.bytes;
  }
  const all = [
    {name: "As plain numbers", from: 0, to: savings.raw_bytes},
    ...steps,
    {name: "Stored", from: 0, to: savings.stored_bytes},
  ];
  const top = Math.max(1, ...all.map((s) => Math.max(s.from, s.to)));
  const ofSource = (n) => share(savings.raw_bytes ? n / savings.raw_bytes : 0);

  function tip(s) {
    if (!s.cause)
      return {
        title: s.name,
        rows: [
          ["bytes", exactly(s.to)],
          ["of the source", ofSource(s.to)],
        ],
      };
    const rows = [
      [s.cause.bytes < 0 ? "costs" : "saves", exactly(Math.abs(s.cause.bytes))],
      ["of the source", ofSource(Math.abs(s.cause.bytes))],
      ["leaves", bytes(s.to)],
    ];
    if (s.cause.estimated_bytes) rows.push(["of it estimated", bytes(s.cause.estimated_bytes)]);
    return {title: s.name, rows, note: s.cause.meaning};
  }

  chart(host, {
    label: "Savings: " + bytes(savings.raw_bytes) + " as plain numbers are stored in " + bytes(savings.stored_bytes),
    draw(width) {
      const step = 27,
        bar = 17,
        left = width < 520 ? 130 : 178,
        right = 132;
      const x = d3.scaleLinear([0, top], [left, width - right]);
      const nodes = [],
        marks = [];
      all.forEach((s, i) => {
        const y = i * step + 4,
          a = x(Math.min(s.from, s.to)),
          b = x(Math.max(s.from, s.to));
        const cost = s.cause && s.cause.bytes < 0;
        const box = {x: a, y, width: Math.max(1, b - a), height: bar};
        nodes.push(text(left - 10, y + 13, "end", s.cause ? "" : "strong", fits(s.name, left - 12)));
        nodes.push(svg("rect", {...box, class: s.cause ? (cost ? "orange" : "blue") : "dark"}));
        if (cost) nodes.push(svg("rect", {...box, class: "hatched"}));
        const amount = s.cause ? (cost ? "+ " : "− ") + bytes(Math.abs(s.cause.bytes)) : bytes(s.to);
        nodes.push(
          text(
            b + 7,
            y + 13,
            "start",
            s.cause ? "" : "strong",
            (s.cause && s.cause.estimated_bytes ? "≈ " : "") +
              amount +
              (i ? " · " + ofSource(s.cause ? Math.abs(s.cause.bytes) : s.to) : ""),
          ),
        );
        if (i + 1 < all.length) nodes.push(svg("line", {class: "join", x1: x(s.to), x2: x(s.to), y1: y + bar, y2: y + step}));
        const mark = svg("rect", {...box, class: "mark"});
        nodes.push(mark);
        marks.push({x: (a + b) / 2, y: y + bar, tip: tip(s), node: mark});
      });
      return {
        height: all.length * step + 2,
        nodes,
        marks,
        pick: (_, y) => (y < 0 ? -1 : Math.min(all.length - 1, Math.floor(y / step))),
      };
    },
    table: () => ({
      head: ["Cause", "#Bytes saved", "#Of it estimated", "#Bytes left", "Meaning"],
      rows: all.map((s) =>
        s.cause
          ? [
              s.name,
              count(s.cause.bytes),
              s.cause.estimated_bytes ? count(s.cause.estimated_bytes) : "",
              count(s.to),
              s.cause.meaning,
            ]
          : [s.name, "", "", count(s.to), ""],
      ),
    }),
  });
}
