"""docs/guide/benchmarks.md and bench/SCORECARD.md: the parts that a run fills, and the plots. Parts of measures that
the run left out stay as they are."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import plots

from .harness import ROOT
from .engines import ENGINES, label

PAGE = ROOT / "docs" / "guide" / "benchmarks.md"
SCORECARD = ROOT / "bench" / "SCORECARD.md"
PICTURES = ROOT / "docs" / "img"

Rows = list[dict[str, Any]]


def fill(result: dict[str, Any], machine: dict[str, Any], page: pathlib.Path = PAGE,
         pictures: pathlib.Path = PICTURES, scorecard: pathlib.Path = SCORECARD) -> None:
    """Writes the parts of the page and of the scorecard, and draws the plots."""
    measures, run = result["measures"], setup(result, machine)
    parts = {name: _TABLES[name](rows) for name, rows in measures.items() if name in _TABLES}
    if all(name in measures for name, *_ in _SUMMARY):
        parts["summary"] = _summary(measures)
    replace_parts(page, parts | {"run": run})
    replace_parts(scorecard, {"run": run, "goals": _goals(result["goals"])})
    _draw(measures, pictures)


def replace_parts(page: pathlib.Path, parts: dict[str, str]) -> None:
    """Puts each part between its marks in a page."""
    text = page.read_text()
    for name, part in parts.items():
        begins, ends = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
        before, found, rest = text.partition(begins)
        _, whole, after = rest.partition(ends)
        if not found or not whole:
            raise SystemExit(f"{page} has no part between {begins!r} and {ends!r}")
        text = before + begins + part + ends + after
    page.write_text(text)


def table(header: list[str], lines: list[list[str]]) -> str:
    out = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(out + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def count(v: float) -> str:
    """A number in three digits."""
    for unit, size in ((" M", 1e6), (" k", 1e3)):
        if v >= size:
            return f"{v / size:.3g}{unit}" if v / size < 1000 else f"{v / size:.0f}{unit}"
    return f"{v:.3g}" if v < 100 else f"{v:.0f}"


def seconds(v: float) -> str:
    return f"{v:.2f} s" if v >= 1 else f"{v * 1e3:.3g} ms"


def amount(v: float, unit: str) -> str:
    """A figure with its unit, as a reader wants it."""
    if unit == "s":
        return seconds(v)
    if unit == "B":
        return f"{v / 1e6:.1f} MB" if v >= 1e5 else f"{v:.0f} B"
    return f"{count(v)} {unit}"


def _goals(goals: Rows) -> str:
    return table(["goal", "dsistore", "against", "ratio", "wanted", ""], [[
        g["goal"],
        amount(g["figure"], g["unit"]), f"{g['against']}: {amount(g['theirs'], g['unit'])}", f"{g['ratio']:.3g}",
        g["wanted"], "reached" if g["met"] else "**short**"
    ] for g in goals])


# The short comparison: measure, what it is called, the field, how it is shown, and which of the measure's rows count.
_SUMMARY: list[tuple[str, str, str, Callable[[float], str], dict[str, Any]]] = [
    ("write", "stored, B/row, rows clustered by session", "bytes_per_row", lambda v: f"{v:.0f}",
     {"order": "clustered"}),
    ("write", "stored, B/row, rows interleaved as logged", "bytes_per_row", lambda v: f"{v:.0f}",
     {"order": "interleaved"}),
    ("write", "time to write 100,000 rows, clustered", "median_seconds", seconds, {"order": "clustered"}),
    ("kjt", "read 10 % of the features into a KJT, samples/s", "samples_per_second", count,
     {"threads": 1}),
    ("ikjt", "the same into an IKJT (duplicates once), samples/s", "samples_per_second", count,
     {"threads": 1}),
    ("open", "open a table of 20,000 features, read 10 of them", "median_total_seconds", seconds,
     {"profile": "metawide"}),
    ("first", "open, and the first batch of 4,096 rows", "median_seconds", seconds, {}),
    ("take", "1,000 random rows, in a new process", "median_seconds", seconds,
     {"rows": 1000, "first": True}),
    ("cold", "read from the disk for 10 % of the features, B/row", "disk_bytes_per_row", lambda v: f"{v:.0f}", {}),
    ("latency", "10 % of the features from S3, 10 ms per request, samples/s", "samples_per_second", count,
     {"milliseconds": 10}),
    ("memory", "memory grown by reading 10 % of the features", "median_grown_bytes", lambda v: amount(v, "B"), {}),
]
_COMPARED = ("dsistore", "parquet-pyarrow", "ipc-lz4", "duckdb", "lance", "lance-zstd", "vortex")


def _summary(measures: dict[str, Rows]) -> str:
    """A few measures, one a line, for the engines that users choose among. The best of a line is bold."""
    lines = []
    for measure, title, field, show, where in _SUMMARY:
        of = {r["engine"]: r[field] for r in measures[measure] if all(r.get(k) == v for k, v in where.items())}
        best = (max if field == "samples_per_second" else min)(of[e] for e in _COMPARED if e in of)
        shown = {e: show(of[e]) for e in _COMPARED if e in of}
        lines.append([title, *(f"**{shown[e]}**" if shown.get(e) == show(best) else shown.get(e, "")
                               for e in _COMPARED)])
    return table(["1 thread", *map(label, _COMPARED)], lines)


def setup(result: dict[str, Any], m: dict[str, Any],
          packages: Iterable[str] = ("pyarrow", "duckdb", "polars", "pylance", "vortex-data", "mosaicml-streaming",
                                     "numpy", "torch")) -> str:
    """What the figures of a run depend on, and what it left out."""
    versions = ", ".join(f"{p} {m[p]}" for p in packages if m.get(p))
    cut = [f"{e['engine']} in {e['measure']}: {e['error']}" for e in result["errors"]]
    slow = result.get("slow_rounds", result["rounds"])
    rounds = f"{result['rounds']} rounds" + (f", {slow} of what takes long" if slow < result["rounds"] else "")
    of = (f"{result['rows']:,} rows, {rounds}. {m['cpu']}, {m['cores']} cores, "
          f"{m['memory_bytes'] / 2**30:.0f} GiB; Python {m['python']}, {m['go']}; "
          f"{versions}; commit {m['revision'][:12]}.")
    return (textwrap.fill(of, 120, break_long_words=False, break_on_hyphens=False) + "\n" +
            (f"\n**Rough figures**: the machine did other things (before: on {m['busy_before']:.1f} cores).\n"
             if (m.get("busy_before") or 0) > 0.3 else "") + "".join(f"\nLeft out: {c}.\n" for c in cut))


def _by_engine(rows: Rows, key: str) -> list[tuple[str, dict[Any, dict[str, Any]]]]:
    """The rows of each engine by what else tells them apart, dsistore first and limits last."""
    out: dict[str, dict[Any, dict[str, Any]]] = {}
    for r in rows:
        out.setdefault(r["engine"], {})[r[key]] = r
    return [(s, out[s]) for s in ENGINES if s in out]


def _cells(of: dict[Any, dict[str, Any]], keys: list[Any], show: Callable[[dict[str, Any]], str]) -> list[str]:
    return [show(of[k]) if k in of else "" for k in keys]


def _limits(rows: Rows) -> str:
    return table(["limit", "GB/s"], [[r["what"], f"{r['bytes_per_second'] / 1e9:.2f}"] for r in rows])


def _write(rows: Rows) -> str:
    orders, most = ["clustered", "interleaved"], max(r["rows"] for r in rows)
    return table([
        "", "B/row, clustered in", "interleaved in", "seconds, clustered in", "interleaved in",
        "CPU seconds, clustered in", "interleaved in"
    ], [[
        label(s), *_cells(of, orders, lambda r: f"{r['bytes_per_row']:.0f}"),
        *_cells(of, orders, lambda r: f"{r['median_seconds']:.2f}" +
                ("" if r["rows"] == most else f" ({r['rows']:,} rows)")),
        *_cells(of, orders, lambda r: f"{r['median_cpu_seconds']:.2f}")
    ] for s, of in _by_engine(rows, "order")])


def _reads(rows: Rows) -> str:
    ours = {r["threads"]: r["samples_per_second"] for r in rows if r["engine"] == "dsistore"}
    threads = sorted({r["threads"] for r in rows})
    return table([
        "", *(f"samples/s, {t} thread{'s' if t > 1 else ''}"
              for t in threads), *(f"dsistore's factor, {t} thread{'s' if t > 1 else ''}" for t in threads)
    ], [[
        label(s), *_cells(of, threads, lambda r: count(r["samples_per_second"])),
        *_cells(of, threads, lambda r: f"{ours[r['threads']] / r['samples_per_second']:.2f}x"
                if r["threads"] in ours else "")
    ] for s, of in _by_engine(rows, "threads")])


def _sweep(rows: Rows) -> str:
    shares = sorted({r["share"] for r in rows})
    return table(["samples/s", *(f"{x:.0%}" for x in shares)],
                  [[label(s), *_cells(of, shares, lambda r: count(r["samples_per_second"]))]
                   for s, of in _by_engine(rows, "share")])


def _open(rows: Rows) -> str:
    columns = sorted({r["columns"] for r in rows})
    return table([
        "", *(f"open + plan, {c:,}" for c in columns), *(f"and read, {c:,}"
                                                         for c in columns), f"whole process, {columns[-1]:,}"
    ], [[
        label(s), *_cells(of, columns, lambda r: seconds(r["median_open_seconds"])),
        *_cells(of, columns, lambda r: seconds(r["median_total_seconds"])),
        *_cells(of, columns[-1:], lambda r: seconds(r["median_process_seconds"]))
    ] for s, of in _by_engine(rows, "columns")])


def _select(rows: Rows) -> str:
    shares = sorted({r["share"] for r in rows})
    names = {
        "session_id": "sessions by their id", "event_time": "rows by their time",
        "list": "a list of random rows"
    }
    return "\n".join(f"{names[by].capitalize()}:\n\n" + table(["", *(f"{x:.1%}" for x in shares)], [
        [label(s), *_cells(of, shares, lambda r: seconds(r["median_seconds"]))]
        for s, of in _by_engine([r for r in rows if r["by"] == by], "share")]) for by in names)


def _one(title: str, show: Callable[[dict[str, Any]], str]) -> Callable[[Rows], str]:
    return lambda rows: table(["", title], [[label(s), *_cells(of, [1], show)]
                                             for s, of in _by_engine(rows, "threads")])


def _memory(rows: Rows) -> str:
    return table(["", "resident memory grown", "of which mapped files, at the end"], [
        [label(s), f"{of[1]['median_grown_bytes'] / 1e6:.0f} MB", f"{of[1]['median_mapped_bytes'] / 1e6:.0f} MB"]
        for s, of in _by_engine(rows, "threads")])


def _cold(rows: Rows) -> str:
    return table(["", "from the disk", "asked of the system", "time"], [
        [label(s), f"{of[1]['disk_bytes_per_row']:.0f} B", f"{of[1]['asked_bytes_per_row']:.0f} B",
         seconds(of[1]["median_seconds"])]
        for s, of in _by_engine(rows, "threads")])


def _latency(rows: Rows) -> str:
    delays = sorted({r["milliseconds"] for r in rows})
    return table(["", *(f"samples/s, {d} ms" for d in delays), "requests", "MB"], [[
        label(s), *_cells(of, delays, lambda r: count(r["samples_per_second"])),
        *_cells(of, delays[:1], lambda r: f"{r['median_requests']:.0f}"),
        *_cells(of, delays[:1], lambda r: f"{r['median_bytes'] / 1e6:.1f}")
    ] for s, of in _by_engine(rows, "milliseconds")])


def _take(rows: Rows) -> str:
    """Rows at random positions, by how often they were taken, and how many."""
    for r in rows:
        r["taken"] = (r["first"], r["rows"])
    keys = sorted({r["taken"] for r in rows})
    return table(["", *(f"{n:,} rows, {'first' if first else 'again'}" for first, n in keys)],
                  [[label(s), *_cells(of, keys, lambda r: seconds(r["median_seconds"]))]
                   for s, of in _by_engine(rows, "taken")])


def _long(rows: Rows) -> str:
    """Reading, taking and selecting of many rows."""
    def key(r: dict[str, Any]) -> str:
        if r["what"] == "select":
            return f"{r['share']:.1%} by {r['by']}"
        if r["what"] == "take":
            return f"{r['rows']:,} at random"
        return f"{r['what'].upper()}, {r['threads']} thread{'s' if r['threads'] > 1 else ''}"

    def show(r: dict[str, Any]) -> str:
        if r["what"] in ("kjt", "ikjt"):
            return f"{count(r['samples_per_second'])} samples/s"
        asked = r["median_asked_bytes"] / 1e6
        return seconds(r["median_seconds"]) + (f", {asked:.1f} MB" if asked >= 0.05 else "")

    for r in rows:
        r["key"] = key(r)
    engines = [s for s in ENGINES if any(r["engine"] == s for r in rows)]
    of = {(r["key"], r["engine"]): r for r in rows}
    return table(["", *map(label, engines)], [
        [k, *(show(of[k, s]) if (k, s) in of else "" for s in engines)] for k in dict.fromkeys(r["key"] for r in rows)])


_TABLES: dict[str, Callable[[Rows], str]] = {
    "limits": _limits, "write": _write, "kjt": _reads, "ikjt": _reads, "sweep": _sweep,
    "open": _open, "memory": _memory, "cold": _cold, "latency": _latency, "take": _take, "long": _long, "partial": _one(
        "samples/s", lambda r: count(r["samples_per_second"])), "select": _select, "first": _one(
            "first batch", lambda r: seconds(r["median_seconds"])),
}

_OURS, _THEIRS, _LIMIT = "#c2410c", "#64748b", "#cbd5e1"


def _colour(engine: str) -> str:
    return _OURS if engine == "dsistore" else _LIMIT if engine in ("copy", "raw") else _THEIRS


def _draw(measures: dict[str, Rows], pictures: pathlib.Path) -> None:
    plt = plots.pyplot()

    def save(name: str) -> None:
        plots.save(pictures / f"baselines-{name}.svg")

    def bars(name: str, title: str, rows: Rows, field: str, log: bool = False) -> None:
        rows = sorted(rows, key=lambda r: r[field])
        plt.figure(figsize=(7, 0.32 * len(rows) + 0.9))
        plt.barh([label(r["engine"]) for r in rows], [r[field] for r in rows],
                 color=[_colour(r["engine"]) for r in rows])
        for i, r in enumerate(rows):
            plt.text(r[field], i, " " + count(r[field]), va="center", fontsize=8)
        if log:
            plt.xscale("log")
        plt.margins(x=0.15)
        plt.title(title, fontsize=10)
        plt.gca().spines[["top", "right"]].set_visible(False)
        save(name)

    def lines(name: str, title: str, rows: Rows, x: str, y: str, xlabel: str, ylabel: str) -> None:
        plt.figure(figsize=(7, 4))
        for engine, of in _by_engine(rows, x):
            points = sorted(of.items())
            plt.plot([p for p, _ in points], [r[y] for _, r in points], marker="o", markersize=3, label=label(engine),
                     color=_OURS if engine == "dsistore" else None, linewidth=2.2 if engine == "dsistore" else 1,
                     linestyle="--" if engine in ("copy", "raw") else "-")
        plt.xscale("log")
        plt.yscale("log")
        plt.xlabel(xlabel)
        plt.ylabel(ylabel)
        plt.title(title, fontsize=10)
        plt.legend(fontsize=7, ncols=2)
        plt.gca().spines[["top", "right"]].set_visible(False)
        save(name)

    if rows := measures.get("write"):
        for order in ("clustered", "interleaved"):
            bars(f"bytes-{order}", f"B/row, {order} rows in",
                 [r for r in rows if r["order"] == order and r["engine"] != "raw"], "bytes_per_row", log=True)
    for name, title in (("kjt", "10 % of the features into a KJT, samples/s, 1 thread"),
                        ("ikjt", "10 % of the features into an IKJT, samples/s, 1 thread")):
        if rows := measures.get(name):
            bars(name, title, [r for r in rows if r["threads"] == 1], "samples_per_second", log=True)
    if rows := measures.get("sweep"):
        lines("sweep", "samples/s into a KJT, 1 thread", rows, "share", "samples_per_second", "share of the features",
              "samples/s")
    if rows := measures.get("open"):
        lines("open", "open, plan and read 10 features, 256 rows", rows, "columns", "median_total_seconds",
              "columns of the table", "seconds")
    if rows := measures.get("latency"):
        lines("latency", "10 % of the features from an object store", rows, "milliseconds", "samples_per_second",
              "milliseconds per request", "samples/s")
