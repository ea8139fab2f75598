// Elements. Text is always text: nothing of a report is ever parsed as HTML.

// el makes an element. An attribute that is a function listens, one that is undefined, null or false is left out; children are
// nodes, texts, or lists of them.
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const byId = (id) => document.getElementById(id);

// say tells a screen reader.
function say(text) {
  byId("said").textContent = text;
}

// A tip is {title, rows: [[label, value]], note}. showTip shows it beside a point of the window.
function showTip(tip, x, y) {
  const box = byId("tip");
  box.replaceChildren(
    el("b", null, tip.title),
    el(
      "dl",
      null,
      (tip.rows || []).map(([label, value]) => [el("dt", null, label), el("dd", null, value)]),
    ),
    tip.note ? el("p", null, tip.note) : "",
  );
  box.hidden = false;
  const {width, height} = box.getBoundingClientRect();
  const left = x + 14 + width > innerWidth - 8 ? x - 14 - width : x + 14;
  const top = y + 14 + height > innerHeight - 8 ? y - 14 - height : y + 14;
  box.style.left = Math.max(8, left) + "px";
  box.style.top = Math.max(8, top) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

function tipText(tip) {
  return (
    tip.title +
    ": " +
    (tip.rows || []).map(([label, value]) => label + " " + value).join(", ") +
    (tip.note ? ". " + tip.note : "")
  );
}

// printing says whether the page is being drawn for paper, and whenPrinting calls redraw when that changes. Browsers say so before they lay the paper out, and,
// not all and not always, by the medium.
const paper = matchMedia("print");
let betweenEvents = false;
const printing = () => betweenEvents || paper.matches;

function whenPrinting(redraw) {
  paper.addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    betweenEvents = true;
    redraw();
  });
  addEventListener("afterprint", () => {
    betweenEvents = false;
    redraw();
  });
}
