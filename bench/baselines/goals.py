"""The goals of the design, each beside what a run measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .engines import label

# What is no choice of users': it bounds what can be reached.
LIMITS = ("copy", "raw")


@dataclass
class Outcome:
    """A figure beside a baseline's or a limit's. ratio is ours over theirs; it is to be at least or at most wanted."""

    goal: str
    figure: float
    unit: str
    against: str
    theirs: float
    ratio: float
    wanted: str
    met: bool


def _value(measured: list[dict[str, Any]], engine: str, field: str, **where: Any) -> float | None:
    for r in measured:
        if r["engine"] == engine and all(r.get(k) == v for k, v in where.items()):
            return r[field]
    return None


def _best(measured: list[dict[str, Any]], field: str, best: Callable[..., Any], limits: bool = False, **where: Any
          ) -> tuple[str, float] | None:
    found = [(r["engine"], r[field]) for r in measured
             if r["engine"] != "dsistore" and (limits or r["engine"] not in LIMITS) and all(
                 r.get(k) == v for k, v in where.items())]
    return best(found, key=lambda f: f[1]) if found else None


def outcomes(measures: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Every goal that a run's measures tell about."""
    out: list[Outcome] = []

    def at_most(goal: str, share: float, unit: str, ours: float | None, theirs: tuple[str, float] | None) -> None:
        if ours is not None and theirs is not None:
            out.append(Outcome(goal, ours, unit, label(theirs[0]), theirs[1], ours / theirs[1], f"at most {share:.3g}",
                               ours <= share * theirs[1]))

    def at_least(goal: str, times: float, unit: str, ours: float | None, theirs: tuple[str, float] | None) -> None:
        if ours is not None and theirs is not None:
            out.append(Outcome(goal, ours, unit, label(theirs[0]), theirs[1], ours / theirs[1], f"at least {times:.3g}",
                               ours >= times * theirs[1]))

    def named(measured: list[dict[str, Any]], engine: str, field: str, **where: Any) -> tuple[str, float] | None:
        v = _value(measured, engine, field, **where)
        return None if v is None else (engine, v)

    w = measures.get("write", [])
    for order, share in (("clustered", 0.6), ("interleaved", 1 / 6)):
        at_most(f"B/row, {order} rows in", share, "B", _value(w, "dsistore", "bytes_per_row", order=order),
                _best(w, "bytes_per_row", min, order=order))
    for order in ("clustered", "interleaved"):
        at_most(f"seconds to write, {order} rows in", 0.5, "s", _value(w, "dsistore", "median_seconds", order=order),
                named(w, "parquet-pyarrow", "median_seconds", order=order))
    for name, what in (("kjt", "KJT"), ("ikjt", "IKJT")):
        rows = measures.get(name, [])
        ours = _value(rows, "dsistore", "samples_per_second", threads=1)
        if name == "kjt":
            at_least("10 % into a KJT, of a memory copy", 0.6, "samples/s", ours,
                     named(rows, "copy", "samples_per_second", threads=1))
            at_least("10 % into a KJT, times the best baseline", 3, "samples/s", ours,
                     _best(rows, "samples_per_second", max, threads=1))
            at_least("10 % into a KJT, times Parquet", 10, "samples/s", ours,
                     named(rows, "parquet-pyarrow", "samples_per_second", threads=1))
        else:
            at_least("10 % into an IKJT, times the best that hashes", 15, "samples/s", ours,
                     _best(rows, "samples_per_second", max, limits=True, threads=1))
        two = _value(rows, "dsistore", "samples_per_second", threads=2)
        if ours is not None and two is not None:
            out.append(Outcome(f"10 % into a{'n' if name == 'ikjt' else ''} {what}, 1 to 2 threads", two, "samples/s",
                               "1 thread", ours, two / ours,
                               "at least 1.8", two >= 1.8 * ours))
    rows = measures.get("partial", [])
    at_least("10 % with partial duplicates, of a copy of its bytes", 0.3, "samples/s",
             _value(rows, "dsistore", "samples_per_second"), named(rows, "copy", "samples_per_second"))
    rows = measures.get("first", [])
    at_most("opening, and the first batch", 0.5, "s", _value(rows, "dsistore", "median_seconds"),
            _best(rows, "median_seconds", min))
    rows = measures.get("sweep", [])
    at_least("100 % into a KJT, of a memory copy", 0.6, "samples/s",
             _value(rows, "dsistore", "samples_per_second", share=1.0),
             named(rows, "copy", "samples_per_second", share=1.0))
    rows = measures.get("cold", [])
    at_most("B/row from disk, 10 %, cold", 0.5, "B", _value(rows, "dsistore", "disk_bytes_per_row"),
            _best(rows, "disk_bytes_per_row", min))
    rows = measures.get("take", [])
    takes = sorted({(r["first"], r["rows"]) for r in rows})
    for (first, n), wanted in zip(takes, (0.05, 0.1, 0.3, 0.4)):
        at_most(f"{n:,} random rows, {'first' if first else 'again'}", wanted, "s",
                _value(rows, "dsistore", "median_seconds", rows=n, first=first),
                _best(rows, "median_seconds", min, rows=n, first=first))
    rows = measures.get("select", [])
    for share, of_sessions, of_others in ((0.01, 0.2, 0.3), (0.1, 0.15, 0.25), (0.5, 0.15, 0.2)):
        for by, what in (("session_id", "by session"), ("event_time", "by time"), ("list", "by a list")):
            wanted = of_sessions if by == "session_id" else of_others
            at_most(f"{share:.0%} of the rows, {what}", wanted, "s",
                    _value(rows, "dsistore", "median_seconds", share=share, by=by),
                    _best(rows, "median_seconds", min, share=share, by=by))
    rows = measures.get("open", [])
    for field, what, wanted in (("median_open_seconds", "open + plan 10 features of 20,000", 0.04),
                                ("median_total_seconds", "the same, and read 256 rows", 0.06)):
        at_most(what, wanted, "s", _value(rows, "dsistore", field, profile="metawide"),
                _best(rows, field, min, profile="metawide"))
    narrow, wide = (_value(rows, "dsistore", "median_total_seconds", profile=p) for p in ("narrow", "metawide"))
    if narrow is not None and wide is not None:
        out.append(
            Outcome("open, plan, read: 20,000 features against 200", wide, "s", "200 features", narrow, wide / narrow,
                    "at most 1.2", wide <= 1.2 * narrow))
    rows = measures.get("latency", [])
    for ms, wanted in ((10, 1), (50, 5)):
        at_least(f"10 % from S3, {ms} ms a request, times the best baseline", wanted, "samples/s",
                 _value(rows, "dsistore", "samples_per_second", milliseconds=ms),
                 _best(rows, "samples_per_second", max, milliseconds=ms))
    rows = measures.get("memory", [])
    at_most("memory grown by a 10 % read", 0.5, "B", _value(rows, "dsistore", "median_grown_bytes"),
            _best(rows, "median_grown_bytes", min))
    rows = measures.get("long", [])
    ours = _value(rows, "dsistore", "samples_per_second", what="kjt", threads=1)
    at_least("many rows: 10 % into a KJT, of a memory copy", 0.7, "samples/s", ours,
             named(rows, "copy", "samples_per_second", what="kjt", threads=1))
    for form in ("kjt", "ikjt"):
        one, two = (_value(rows, "dsistore", "samples_per_second", what=form, threads=t) for t in (1, 2))
        if one is not None and two is not None:
            out.append(Outcome(f"many rows: {form.upper()}, 1 to 2 threads", two, "samples/s", "1 thread", one,
                               two / one, "at least 1.85", two >= 1.85 * one))
    at_most("many rows: 1,000 at random", 1, "s", _value(rows, "dsistore", "median_seconds", what="take"),
            _best(rows, "median_seconds", min, what="take"))
    exactly = _value(rows, "dsistore", "median_seconds", what="select", by="list of event_time")
    if exactly is not None:
        at_most("many rows: a filter by time that keeps 0.1 %, of a list of its rows", 2, "s",
                _value(rows, "dsistore", "median_seconds", what="select", by="event_time", share=0.001),
                ("dsistore", exactly))
    return [asdict(o) for o in out]
