// The popularity curve: the share of the stored bytes that serves a share of the bytes read, most read for their size first.

// reaches is the first point of a curve that serves so much of the traffic. Its own share is a little more: a feature is not divided.
function reaches(data, traffic) {
  return [...data.marks, ...data.points].find((p) => p.traffic_share >= traffic - 1e-9);
}

function curve(host, data) {
  const eighty = reaches(data, 0.8);
  chart(host, {
    label: "Popularity: " + share(eighty.bytes_share) + " of the bytes serve " + share(eighty.traffic_share) + " of the traffic",
    draw(width) {
      const height = Math.max(240, Math.min(340, width * 0.62)),
        m = {left: 46, right: 14, top: 24, bottom: 38};
      const x = d3.scaleLinear([0, 1], [m.left, width - m.right]),
        y = d3.scaleLinear([0, 1], [height - m.bottom, m.top]);
      const px = (p) => x(p.bytes_share),
        py = (p) => y(p.traffic_share);
      const nodes = [
        svg(
          "g",
          {class: "axis"},
          [0, 0.25, 0.5, 0.75, 1]
            .map((v) => [
              svg("line", {class: "grid", x1: m.left, x2: width - m.right, y1: y(v), y2: y(v)}),
              text(m.left - 8, y(v) + 4, "end", "", share(v)),
              text(x(v), height - m.bottom + 17, v === 1 ? "end" : "middle", "", share(v)),
            ])
            .flat(),
        ),
      ];
      nodes.push(
        text((m.left + width - m.right) / 2, height - 4, "middle", "soft", "share of the stored bytes, most read first"),
      );
      nodes.push(text(0, 12, "start", "soft", "share of the bytes read"));
      nodes.push(svg("path", {class: "area", d: d3.area(px, y(0), py)(data.points)}));
      nodes.push(svg("line", {class: "guide", x1: x(0), y1: y(0), x2: x(1), y2: y(1)}));
      nodes.push(svg("path", {class: "curve", d: d3.line(px, py)(data.points)}));
      nodes.push(svg("path", {class: "guide", d: "M" + x(0) + "," + py(eighty) + "H" + px(eighty) + "V" + y(0)}));
      nodes.push(svg("circle", {class: "dot own", cx: px(eighty), cy: py(eighty), r: 5}));
      // To the right of the point the curve is above; to the left, where it is not, the words stand at the foot.
      const right = px(eighty) < width - 170,
        at = px(eighty) + (right ? 10 : -10),
        anchor = right ? "start" : "end";
      const top = right ? py(eighty) + 18 : y(0) - 24;
      nodes.push(text(at, top, anchor, "strong", share(eighty.bytes_share) + " of the bytes"));
      nodes.push(text(at, top + 15, anchor, "", "serve " + share(eighty.traffic_share) + " of the traffic"));
      const marks = data.points.map((p) => {
        const node = svg("circle", {class: "mark", cx: px(p), cy: py(p), r: 4});
        nodes.push(node);
        return {
          x: px(p),
          y: py(p),
          node,
          tip: {
            title: plural(p.features, "feature"),
            rows: [
              ["of the stored bytes", share(p.bytes_share)],
              ["of the bytes read", share(p.traffic_share)],
            ],
          },
        };
      });
      const near = d3.bisector((k) => k.x).center;
      return {height, nodes, marks, pick: (px) => near(marks, px)};
    },
  });
}
