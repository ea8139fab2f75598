// How the page writes numbers, bytes and dates. What is not known is a dash.

const dash = "–";
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const known = (n) => typeof n === "number" && Number.isFinite(n);

// three returns a number with three digits that mean something.
function three(n) {
  const a = Math.abs(n);
  return a >= 100 || Number.isInteger(n) ? whole.format(n) : n.toFixed(a >= 10 ? 1 : 2);
}

function scaled(n, step, units) {
  let i = 0;
  for (; Math.abs(n) >= step * 0.9995 && i + 1 < units.length; i++) n /= step;
  return {n, unit: units[i], exact: i === 0};
}

function count(n) {
  return known(n) ? whole.format(n) : dash;
}

function short(n) {
  if (!known(n)) return dash;
  if (Number.isInteger(n) && Math.abs(n) < 100000) return whole.format(n);
  const s = scaled(n, 1000, ["", "k", "M", "G", "T"]);
  return three(s.n) + (s.unit && " " + s.unit);
}

function bytes(n) {
  if (!known(n)) return dash;
  const s = scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
  return (s.exact ? whole.format(n) : three(s.n)) + " " + s.unit;
}

// exactly is for tooltips: what is rounded elsewhere.
function exactly(n) {
  return known(n) ? whole.format(n) + " B" : dash;
}

// money writes an amount: with cents, and less than one with two digits that mean something.
function money(x, currency) {
  if (!known(x)) return dash;
  const small = x > 0 && x < 1 ? 1 - Math.floor(Math.log10(x)) : 2;
  return x.toFixed(Math.min(small, 20)) + " " + currency;
}

function share(x) {
  if (!known(x)) return dash;
  const p = Math.round(1000 * x) / 10;
  if (x !== 0 && p === 0) return "< 0.1 %";
  if (x < 1 && p === 100) return "> 99.9 %";
  return (Number.isInteger(p) || (Math.abs(p) >= 10 && p <= 99) ? whole.format(p) : p.toFixed(1)) + " %";
}

function factor(x) {
  return known(x) ? three(x) + "×" : dash;
}

function duration(s) {
  if (!known(s)) return dash;
  if (s < 120) return three(s) + " s";
  if (s < 7200) return three(s / 60) + " min";
  if (s < 172800) return three(s / 3600) + " h";
  return three(s / 86400) + " days";
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// day writes a date (2026-11-01, or the beginning of a time) as 1 Nov 2026. Dates are of UTC and no clock of the reader's has a part in it.
function day(text, year = true) {
  const m = /^(\d{4})-(\d\d)-(\d\d)/.exec(text || "");
  return m ? Number(m[3]) + " " + months[Number(m[2]) - 1] + (year ? " " + m[1] : "") : dash;
}

function minute(text) {
  const m = /^\d{4}-\d\d-\d\dT(\d\d:\d\d)/.exec(text || "");
  return m ? day(text) + ", " + m[1] + " UTC" : day(text);
}

function plural(n, one, many = one + "s") {
  return count(n) + " " + (n === 1 ? one : many);
}
