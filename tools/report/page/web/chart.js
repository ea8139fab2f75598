// What all charts have in common. A chart is one stop of the Tab key: arrows go from mark to mark, and what a pointer is told of a mark, a
// screen reader is told too. Its figures stand below it as a table for whoever wants them so.

const printedWidth = 700; // of A4 and Letter, in pixels, without their margins

// chart puts a figure into host.
//   label     what the chart is, for those who do not see it
//   draw      (width) => {height, nodes, marks, pick}: SVG nodes, marks {x, y, tip, node, enter, open} in the order of the arrows, and
//             pick(x, y), the index of the mark at a point, -1 for none. The node of the current mark has the class current.
//   table     () => {head: [texts], rows: [[texts]]}, or nothing
function chart(host, {label, draw, table}) {
  const picture = svg("svg", {role: "img", tabindex: 0, "aria-label": label + ". Arrow keys go through it."});
  let drawn = null,
    width = 0,
    current = -1;

  const measure = () => (printing() ? printedWidth : Math.floor(picture.parentNode.clientWidth));

  function redraw(w) {
    if (w < 50 || w === width) return;
    width = w;
    current = -1;
    drawn = draw(w);
    picture.setAttribute("viewBox", "0 0 " + w + " " + drawn.height);
    picture.replaceChildren(...drawn.nodes);
  }

  function choose(i, x, y) {
    const old = drawn.marks[current],
      mark = drawn.marks[i];
    if (old && old.node) old.node.classList.remove("current");
    current = mark ? i : -1;
    if (!mark) return hideTip();
    if (mark.enter) mark.enter();
    if (mark.node) mark.node.classList.add("current");
    showTip(mark.tip, x, y);
  }

  function toWindow(mark) {
    const box = picture.getBoundingClientRect(),
      scale = box.width / width;
    return [box.left + mark.x * scale, box.top + mark.y * scale];
  }

  picture.addEventListener("pointermove", (e) => {
    const box = picture.getBoundingClientRect(),
      scale = width / box.width;
    choose(drawn.pick((e.clientX - box.left) * scale, (e.clientY - box.top) * scale), e.clientX, e.clientY);
  });
  picture.addEventListener("pointerleave", () => choose(-1));
  picture.addEventListener("blur", () => choose(-1));
  picture.addEventListener("click", () => {
    const m = drawn.marks[current];
    if (m && m.open) m.open();
  });
  picture.addEventListener("keydown", (e) => {
    const last = drawn.marks.length - 1;
    const to = {
      ArrowRight: current + 1,
      ArrowDown: current + 1,
      ArrowLeft: current - 1,
      ArrowUp: current - 1,
      Home: 0,
      End: last,
    }[e.key];
    if (e.key === "Escape") return choose(-1);
    if (e.key === "Enter" && drawn.marks[current] && drawn.marks[current].open) return drawn.marks[current].open();
    if (to === undefined || last < 0) return;
    e.preventDefault();
    const i = Math.max(0, Math.min(last, to));
    choose(i, ...toWindow(drawn.marks[i]));
    say(tipText(drawn.marks[i].tip));
  });

  const figure = el("figure", null, el("div", null, picture), table && figures(table));
  host.append(figure);
  undrawn.push(() => {
    const w = measure();
    return () => redraw(w);
  });
  new ResizeObserver(() => redraw(measure())).observe(picture.parentNode);
  whenPrinting(() => redraw(measure()));
  return figure;
}

// drawCharts draws those that were made: first all are measured, then all are drawn, so that the browser lays the page out once and not once for each.
const undrawn = [];

function drawCharts() {
  for (const draw of undrawn.splice(0).map((measure) => measure())) draw();
}

// figures is the table below a chart, made when it is opened.
function figures(table) {
  const details = el(
    "details",
    {
      class: "data",
      ontoggle: () => {
        if (!details.open || details.childElementCount > 1) return;
        const {head, rows} = table();
        details.append(plainTable(head, rows));
      },
    },
    el("summary", null, "Figures as a table"),
  );
  return details;
}

// plainTable is a small table; columns but the first are numbers when the heads after "#" say so.
function plainTable(head, rows) {
  const number = head.map((h) => h.startsWith("#"));
  const cell = (tag, i, content) =>
    el(tag, {class: number[i] && "number", scope: tag === "th" ? (i === -1 ? "row" : "col") : null}, content);
  return el(
    "table",
    {class: "plain"},
    el(
      "thead",
      null,
      el(
        "tr",
        null,
        head.map((h, i) => cell("th", i, h.replace(/^#/, ""))),
      ),
    ),
    el(
      "tbody",
      null,
      rows.map((r) =>
        el(
          "tr",
          null,
          r.map((c, i) => cell("td", i, c)),
        ),
      ),
    ),
  );
}

// hatch is the pattern that marks what is wasted or estimated. One is enough for the page.
function hatch() {
  return svg(
    "svg",
    {width: 0, height: 0, "aria-hidden": "true", class: "unseen"},
    svg(
      "defs",
      null,
      svg(
        "pattern",
        {id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
        svg("line", {class: "hatchline", x1: 0, y1: 0, x2: 0, y2: 6}),
      ),
    ),
  );
}

function text(x, y, anchor, cls, content) {
  return svg("text", {x, y, "text-anchor": anchor, class: cls}, content);
}

// fits cuts a text to a width, by the mean width of a letter.
function fits(content, width, letter = 6.6) {
  const n = Math.floor(width / letter);
  return content.length <= n ? content : n < 4 ? "" : content.slice(0, n - 1) + "…";
}

// fitsBoth cuts a name in its middle: what tells names of a family apart is at their end.
function fitsBoth(name, width, letter) {
  const n = Math.floor(width / letter);
  if (name.length <= n) return name;
  const end = Math.ceil((n - 1) / 2);
  return n < 5 ? "" : name.slice(0, n - 1 - end) + "…" + name.slice(-end);
}
