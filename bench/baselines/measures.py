"""What is measured, a function a measure. Each returns a list of rows for the results, one an engine and setting."""

from __future__ import annotations

import functools
import os
import pathlib
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .harness import ROOT, Engines, EngineError, Wrong, log, summary
from .objects import BUCKET, Server
from .tensors import BATCH, Projection
from .workload import Workload

ORDERS = ("clustered", "interleaved")

_TURN = 0.3  # seconds of an engine's turn, in measures of files that lie in the page cache


@dataclass
class Run:
    """What the measures of a run share."""

    engines: Engines
    small: Workload  # most measures
    long: Workload  # of many rows
    directory: pathlib.Path
    rounds: int
    slow_rounds: int  # of what takes long
    widths: list[tuple[str, int]]  # profiles and rows of the tables to open
    taken: int  # rows to take at random
    checked: dict[tuple[str, str, Projection, bool], bool] = field(default_factory=dict)
    groups: dict[tuple[str, Projection], list[list[str]]] = field(default_factory=dict)

    def has(self, *leave: str) -> list[str]:
        """The engines of the run without those that a measure makes no sense of."""
        return [s for s in self.engines.names if s not in ("copy", *leave)]

    def written(self, engine: str, order: str, workload: Workload | None = None) -> str:
        """The engine's file, which is written if it is not there."""
        w = workload or self.small
        path = w.file(order, engine)
        if not os.path.exists(path):
            log(f"{engine} writes {path}")
            self.engines.worker(engine, 1)("write", source=w.arrow(order), path=path, clustered=order == "clustered",
                                        rows=self.rows_of(engine, w))
        return path

    def rows_of(self, engine: str, workload: Workload | None = None) -> int:
        """Rows that an engine is given: MDS, which makes each in Python, few."""
        rows = (workload or self.small).rows
        return min(rows, 5000) if engine == "mds" else rows

    def renew(self, engine: str) -> None:
        """Lets what an engine wrote in an earlier run be written anew."""
        for w in (self.small, self.long, *(Workload(self.directory, profile, rows) for profile, rows in self.widths)):
            for order in ORDERS:
                shutil.rmtree(w.file(order, engine), ignore_errors=True)

    def check(self, engine: str, order: str, p: Projection, hashed: bool = False,
              workload: Workload | None = None) -> None:
        """Fails unless the engine gives the truth's rows: in the truth's order, where it keeps it."""
        w = workload or self.small
        path = self.written(engine, order, w)
        key = (engine, path, p, hashed)
        if key in self.checked:
            return
        want = w.digest(order, p, self.rows_of(engine, w))
        got = self.engines.worker(engine, 1)("digest", path=path, projection=parts(p),
                                             groups=self.groups_of(p, w) if hashed else None)
        compared = ["rows", "ids", "unordered"] + (["ordered"] if got["ordered"] is not None else [])
        same(f"{engine}: {order}, {len(p.columns)} features", got, want, compared + ([] if hashed else ["bytes"]))
        self.checked[key] = True

    def groups_of(self, p: Projection, workload: Workload | None = None) -> list[list[str]]:
        """The features that change together, as dsistore found them: baselines that hash are told."""
        path = self.written("dsistore", "clustered", workload)
        if (path, p) not in self.groups:
            self.groups[path, p] = self.engines.worker("dsistore", 1)("groups", path=path, projection=parts(p))
        return self.groups[path, p]

    def tiny(self, engine: str) -> dict[str, Any]:
        """A read of a small table, after which a library has loaded what it loads late."""
        w = Workload(self.directory, *self.widths[0])
        return {"path": self.written(engine, "clustered", w), "projection": parts(w.projection(0.1))}

    def right(self, measure: str, engines: list[str], check: Callable[[str], None]) -> list[str]:
        """The engines whose output is right."""
        out = []
        for engine in engines:
            try:
                check(engine)
                out.append(engine)
            except (EngineError, Wrong) as e:
                self.engines.failed(measure, engine, e)
        return out


def same(what: str, got: dict[str, Any], want: dict[str, Any], compared: list[str]) -> None:
    """Fails unless two digests are alike in what is compared."""
    for name in compared:
        if got[name] != want[name]:
            raise Wrong(f"{what}: {name} is {got[name]}, the truth's is {want[name]}")


def parts(p: Projection) -> list[list[str]]:
    return [list(p.dense), list(p.sparse), list(p.weighted)]


def write(run: Run) -> list[dict[str, Any]]:
    """Bytes per row, and seconds to write on one thread, of rows in memory: clustered, and as logs arrive."""
    out = []
    for order in ORDERS:
        source = run.small.arrow(order)
        with open(source, "rb") as f:  # into the page cache
            while f.read(1 << 24):
                pass
        engines = run.has()

        def of(engine: str) -> Callable[[], dict[str, Any]]:
            return lambda: run.engines.worker(engine, 1)("write", source=source, path=run.small.file(order, engine),
                                                           clustered=order == "clustered", rows=run.rows_of(engine))

        log(f"write, {order}")
        run.engines.close()
        found = run.engines.rounds("write", run.slow_rounds, {s: of(s) for s in engines}, warm=0)
        p = run.small.projection(0.1)
        for engine in run.right("write", list(found), lambda s: run.check(s, order, p)):
            last = found[engine][-1]
            out.append({
                "engine": engine, "order": order, "threads": 1, **summary(found[engine]), **summary(
                    found[engine], "cpu_seconds"), "sync_seconds": last["sync_seconds"], "bytes": last["bytes"],
                "bytes_per_row": last["bytes"] / last["rows"], "rows": last["rows"]
            })
    run.engines.close()  # who has read an older file may remember it
    return out


def _reads(run: Run, measure: str, share: float, threads: int, hashed: bool, rounds: int, engines: list[str],
           warm: int = 1, workload: Workload | None = None) -> list[dict[str, Any]]:
    w = workload or run.small
    p = w.projection(share)
    truth = w.digest("clustered", p)
    groups = run.groups_of(p, w) if hashed else None
    engines = run.right(measure, engines, lambda s: run.check(s, "clustered", p, hashed, w))

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        path = run.written(engine, "clustered", w)
        return lambda: run.engines.worker(engine, threads)("read", path=path, projection=parts(p), groups=groups)

    todo = {s: of(s) for s in engines}
    if "copy" in run.engines.names and not hashed:
        todo["copy"] = _copy(run, truth, threads)
    log(f"{measure}: {w.profile}, {share:.0%}, {threads} threads")
    out = []
    for engine, answers in run.engines.rounds(measure, rounds, todo, warm, _TURN).items():
        row = {"engine": engine, "share": share, "features": len(p.columns), "threads": threads, **summary(answers)}
        if engine != "copy":
            row |= summary(answers, "cpu_seconds")
        row["samples_per_second"] = answers[0]["rows"] / row["median_seconds"]
        row["tensor_bytes_per_second"] = None if hashed else truth["bytes"] / truth["rows"] * row["samples_per_second"]
        out.append(row)
    return out


def _copy(run: Run, truth: dict[str, Any], threads: int) -> Callable[[], dict[str, Any]]:
    """A copy of as many bytes as the tensors of some rows have."""
    return lambda: run.engines.worker("copy", threads)(
        "copy", bytes=truth["bytes"], batches=-(-truth["rows"] // BATCH)) | {"rows": truth["rows"]}


def kjt(run: Run) -> list[dict[str, Any]]:
    """Samples/s of 10 % of the features into a KJT, 1 and 2 threads."""
    return [
        row for t in (1, 2) for row in _reads(run, "kjt", 0.1, t, False, run.rounds,
                                              run.has() if t == 1 else run.has("mds"))
    ]


def ikjt(run: Run) -> list[dict[str, Any]]:
    """The same into an IKJT: baselines read, and hash in numpy."""
    if "dsistore" not in run.engines.names:
        raise SystemExit("ikjt: dsistore says which features change together: it must be one of the engines")
    return [row for t in (1, 2) for row in _reads(run, "ikjt", 0.1, t, True, run.rounds, run.has("mds"))]


def partial(run: Run) -> list[dict[str, Any]]:
    """10 % of the features with partial duplicates, which no baseline has, beside a copy of as many bytes as that
    takes."""
    p = run.small.projection(0.1)
    truth = run.small.digest("clustered", p)

    def read(engine: str, **more: Any) -> dict[str, Any]:
        return run.engines.worker(engine, 1)(
            "partial", path=run.written(engine, "clustered"), projection=parts(p), **more)

    def check(engine: str) -> None:
        run.check(engine, "clustered", p)
        got = read(engine, digest=True)
        if any(got[name] != truth[name] for name in ("rows", "ids", "unordered")):
            raise Wrong(f"{engine}: partial duplicates: other rows than the truth's")

    if not run.right("partial", [s for s in run.has() if s == "dsistore"], check):
        return []
    got = read("dsistore")
    todo = {"dsistore": lambda: read("dsistore")}
    if "copy" in run.engines.names:
        todo["copy"] = _copy(run, got, 1)
    return [{"engine": s, "threads": 1, "bytes": got["bytes"], **summary(a),
             "samples_per_second": got["rows"] / summary(a)["median_seconds"]}
            for s, a in run.engines.rounds("partial", run.rounds, todo, turn=_TURN).items()]


_SWEPT = ("dsistore", "raw", "ipc-lz4", "parquet-pyarrow", "duckdb", "lance", "vortex")


def sweep(run: Run) -> list[dict[str, Any]]:
    """Samples a second into a KJT of 1, 10, 50 and 100 % of the features, one thread."""
    engines = [s for s in run.has() if s in _SWEPT]
    return [row for share in (0.01, 0.1, 0.5, 1.0) for row in _reads(
        run, "sweep", share, 1, False, run.rounds if share < 0.5 else run.slow_rounds, engines)]


def first(run: Run) -> list[dict[str, Any]]:
    """From opening to the first batch of 10 % of the features, in a process that has done it before."""
    p = run.small.projection(0.1)
    engines = run.right("first", run.has("mds"), lambda s: run.check(s, "clustered", p))

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        path = run.written(engine, "clustered")
        return lambda: run.engines.worker(engine, 1)("first", path=path, projection=parts(p))

    log("first batch")
    return [{"engine": s, "threads": 1, **summary(a)}
            for s, a in run.engines.rounds("first", run.rounds, {s: of(s) for s in engines}, turn=_TURN).items()]


def take(run: Run) -> list[dict[str, Any]]:
    """Rows at random positions, 10 % of the features, as Arrow: again and again in a process that has taken the same
    ones, and for the first time in a new one."""
    out = _takes(run, "take", run.small, run.taken, False, run.has("raw", "mds"))
    for share in (0.01, 0.1, 0.5):
        rows = max(round(share * run.small.rows), 1)
        out += _takes(run, "take", run.small, rows, True, [s for s in run.has() if s in _TAKERS])
    return out


_TAKERS = ("dsistore", "parquet-pyarrow", "lance-zstd", "vortex")  # what is measured where it takes long


def _takes(run: Run, measure: str, w: Workload, n: int, fresh: bool, engines: list[str]) -> list[dict[str, Any]]:
    """n rows of a table, each time in a new process or not."""
    p = w.projection(0.1)
    rows = sorted(random.Random(7).sample(range(w.rows), min(n, w.rows)))
    import pyarrow as pa

    from .worker import table_digest

    truth = table_digest(
        pa.ipc.open_file(pa.memory_map(w.arrow("clustered"))).read_all().select(p.columns).take(rows))

    def check(engine: str) -> None:
        run.check(engine, "clustered", p, False, w)
        got = run.engines.worker(engine, 1)("take_digest", path=run.written(engine, "clustered", w), rows=rows,
                                            columns=p.columns)
        if got["got"] != got.get("want", truth):
            raise Wrong(f"{engine}: other rows than those asked for")

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        given = {"path": run.written(engine, "clustered", w), "rows": rows, "columns": p.columns}
        if fresh:
            return lambda: run.engines.fresh(engine, 1, "take", **given)
        return lambda: run.engines.worker(engine, 1)("take", **given)

    engines = run.right(measure, engines, check)
    log(f"{measure}: {len(rows)} rows of {w.profile}{', in new processes' if fresh else ''}")
    found = run.engines.rounds(measure, run.rounds, {s: of(s) for s in engines}, turn=0 if fresh else _TURN)
    return [{"engine": s, "threads": 1, "rows": len(rows), "first": fresh, **summary(a), **summary(a, "asked_bytes")}
            for s, a in found.items()]


_SELECTED = (0.001, 0.01, 0.1, 0.5, 1.0)


def select(run: Run) -> list[dict[str, Any]]:
    """10 % of the features, into a KJT, of a share of the rows: by a filter on what dsistore clusters by, on what
    baselines' files happen to be in the order of, and by a list of rows that lie here and there. dsistore has the list
    as a sample list, baselines are given row positions."""
    return [row for by in ("session_id", "event_time", "list") for share in _SELECTED
            for row in _selects(run, "select", run.small, by, share, run.has("raw", "mds"))]


def _selects(run: Run, measure: str, w: Workload, by: str, share: float, engines: list[str]) -> list[dict[str, Any]]:
    """A share of the rows: those with the least values of a column, or those of a list; "list of" a column: a list of
    the rows with its least values."""
    import numpy as np
    import pyarrow as pa

    from .worker import table_digest

    p = w.projection(0.1)
    source = pa.ipc.open_file(pa.memory_map(w.arrow("clustered"))).read_all()
    engines = run.right(measure, engines, lambda s: run.check(s, "clustered", p, False, w))
    n = max(round(share * w.rows), 1)
    column = by.removeprefix("list of ")
    if by == "list":
        rows = np.sort(np.random.default_rng(7).permutation(w.rows)[:n])
    else:
        values = source[column].to_numpy()
        most = values[np.argpartition(values, n - 1)[n - 1]].item()
        rows = np.flatnonzero(values <= most)
    if by.startswith("list"):
        how: dict[str, Any] = {"name": f"share-{share}", "rows": rows.tolist()}
        keys = source["request_id"].take(rows).to_pylist()
    else:
        how, keys = {"column": column, "most": most}, []
    truth = table_digest(source.select(p.columns).take(rows))

    def check(engine: str) -> None:
        path = run.written(engine, "clustered", w)
        if keys:
            run.engines.worker(engine, 1)("keep_rows", path=path, keys=keys, **how)
        got = run.engines.worker(engine, 1)("select", path=path, projection=parts(p), how=how, digest=True)
        if any(got[name] != truth[name] for name in ("rows", "ids", "unordered")):
            raise Wrong(f"{engine}: {by}, {share:.1%}: other rows than those selected")

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        path = run.written(engine, "clustered", w)
        return lambda: run.engines.worker(engine, 1)("select", path=path, projection=parts(p), how=how)

    right = run.right(measure, engines, check)
    log(f"{measure}: {w.profile}, {by}, {share:.1%}")
    out = []
    for engine, answers in run.engines.rounds(measure, run.rounds, {s: of(s) for s in right}, turn=_TURN).items():
        row = {"engine": engine, "by": by, "share": share, "rows": len(rows), "threads": 1, **summary(answers),
               **summary(answers, "cpu_seconds"), **summary(answers, "asked_bytes")}
        row["samples_per_second"] = len(rows) / row["median_seconds"]
        out.append(row)
    return out


def long(run: Run) -> list[dict[str, Any]]:
    """A table of many rows, where opening is nothing: 10 % of the features into a KJT and an IKJT; 1,000 rows at random
    positions, for the first time in a process; and what filters keep."""
    w, out = run.long, []

    def add(what: str, rows: list[dict[str, Any]]) -> None:
        out.extend({"what": what, **row} for row in rows)

    engines = [s for s in run.has() if s in _TAKERS]
    for threads in (1, 2):
        add("kjt", _reads(run, "long", 0.1, threads, False, run.slow_rounds, engines, workload=w))
        if "dsistore" in engines:
            add("ikjt", _reads(run, "long", 0.1, threads, True, run.slow_rounds, ["dsistore"], workload=w))
    add("take", _takes(run, "long", w, run.taken, True, engines))
    for by, share in (("session_id", 0.001), ("event_time", 0.001), ("list of event_time", 0.001),
                      ("event_time", 0.1), (_VALUE, 0.001)):
        add("select", _selects(run, "long", w, by, share, engines))
    return out


_VALUE = "request_id"  # a filter by a value that says nothing of where rows lie


def memory(run: Run) -> list[dict[str, Any]]:
    """How far resident memory rises over a read of 10 %, in a new process."""
    p = run.small.projection(0.1)
    engines = run.right("memory", run.has("mds"), lambda s: run.check(s, "clustered", p))

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        path = run.written(engine, "clustered")
        return lambda: run.engines.fresh(engine, 1, "memory", warm=run.tiny(engine), path=path, projection=parts(p))

    run.engines.close()
    log("memory")
    found = run.engines.rounds("memory", run.slow_rounds, {s: of(s) for s in engines}, warm=0)
    return [{"engine": s, "threads": 1, **summary(a, "grown_bytes"), **summary(a, "mapped_bytes")}
            for s, a in found.items()]


def cold(run: Run) -> list[dict[str, Any]]:
    """Bytes read for 10 % of the features when the page cache holds nothing of the files, in a new process."""
    p = run.small.projection(0.1)
    engines = run.right("cold", run.has(), lambda s: run.check(s, "clustered", p))

    def of(engine: str) -> Callable[[], dict[str, Any]]:
        path = run.written(engine, "clustered")
        return lambda: run.engines.fresh(engine, 1, "cold", warm=run.tiny(engine), path=path, projection=parts(p))

    run.engines.close()  # pages that another process has mapped would stay
    log("cold")
    found = run.engines.rounds("cold", run.slow_rounds, {s: of(s) for s in engines}, warm=0)
    return [{
        "engine": s, "threads": 1, **summary(a), **summary(a, "rchar"),
        **summary(a, "read_bytes"), "rows": run.rows_of(s),
        "disk_bytes_per_row": summary(a, "read_bytes")["median_read_bytes"] / run.rows_of(s),
        "asked_bytes_per_row": summary(a, "rchar")["median_rchar"] / run.rows_of(s)
    } for s, a in found.items()]


def opening(run: Run) -> list[dict[str, Any]]:
    """Open and plan ten features of tables of 200, 4,000 and 20,000, and read them, each time in a new process."""
    import pyarrow as pa

    from .worker import table_digest

    out = []
    for profile, rows in run.widths:
        w = Workload(run.directory, profile, rows)
        p = w.projection(1.0)
        names = p.columns
        columns = [names[i * len(names) // 10] for i in range(10)]
        truth = table_digest(pa.ipc.open_file(pa.memory_map(w.arrow("clustered"))).read_all().select(columns))
        engines = run.has("raw", "mds")

        def prepared(engine: str) -> None:
            run.written(engine, "clustered", w)

        engines = run.right(f"open {profile}", engines, prepared)

        def of(engine: str) -> Callable[[], dict[str, Any]]:
            return lambda: run.engines.fresh(engine, 1, "open", path=w.file("clustered", engine), columns=columns)

        log(f"open: {len(w.schema)} columns, {rows} rows")
        for s, a in run.engines.rounds("open", run.slow_rounds, {s: of(s) for s in engines}).items():
            # dsistore has an order of its own.
            compared = "unordered" if s == "dsistore" else "ordered"
            if any(x["digest"][compared] != truth[compared] for x in a):
                run.engines.failed("open", s, Wrong(f"{s}: {profile}: other rows than the truth's"))
                continue
            for x in a:
                x["total_seconds"] = x["open_seconds"] + x["read_seconds"]
            out.append({
                "engine": s, "profile": profile, "columns": len(w.schema), "rows": rows, **summary(a, "import_seconds"),
                **summary(a, "open_seconds"), **summary(a, "read_seconds"), **summary(a, "total_seconds"), **summary(
                    a, "process_seconds")
            })
    return out


DELAYS = (1, 10, 50)  # ms

_REMOTE = ("dsistore", "ipc-lz4", "parquet-pyarrow", "parquet-polars", "parquet-duckdb", "lance-zstd", "vortex", "mds")

PACKAGES = ROOT / "out" / "baselines-s3"  # of requirements-s3.txt, which only readers of object stores have


def latency(run: Run) -> list[dict[str, Any]]:
    """Samples/s of 10 % of the features from a server of S3 whose every request takes some milliseconds longer, each
    time in a new process, by the library's own client without a cache on the disk."""
    p = run.small.projection(0.1)
    server = Server(run.directory)

    def read(engine: str, digest: bool = False) -> dict[str, Any]:
        return run.engines.fresh(engine, 1, "remote", str(PACKAGES), server=server.environment, bucket=BUCKET,
                                 key=engine, projection=parts(p), tiny=run.tiny(engine), digest=digest)

    def timed(engine: str, ms: int) -> dict[str, Any]:
        server.slow(ms)
        return read(engine) | server.slow(0)

    def check(engine: str) -> None:
        run.check(engine, "clustered", p)
        server.put(run.written(engine, "clustered"), engine)
        want, got = run.small.digest("clustered", p, run.rows_of(engine)), read(engine, True)
        compared = ["rows", "ids", "unordered", "bytes"] + (["ordered"] if got["ordered"] is not None else [])
        same(f"{engine}: from the object store", got, want, compared)

    out = []
    try:
        engines = run.right("latency", [s for s in run.has() if s in _REMOTE], check)
        for ms in DELAYS:
            log(f"latency: {ms} ms")
            todo = {s: functools.partial(timed, s, ms) for s in engines}
            for engine, answers in run.engines.rounds("latency", run.slow_rounds, todo, warm=0).items():
                row = {
                    "engine": engine, "milliseconds": ms, "threads": 1, **summary(answers), **summary(
                        answers, "requests"), **summary(answers, "bytes")
                }
                row["samples_per_second"] = answers[0]["rows"] / row["median_seconds"]
                out.append(row)
    finally:
        server.close()
    return out


def limits(run: Run) -> list[dict[str, Any]]:
    """What this machine can do at all: copy memory, read a file from the page cache, and from the disk."""
    rounds = [[x for t in (1, 2) for x in run.engines.worker("copy", t)("limits", path=run.small.arrow("clustered"))]
              for _ in range(run.rounds)]
    out = []
    for answers in zip(*rounds):
        row = {"engine": "copy", "what": answers[0]["what"], "bytes": answers[0]["bytes"], **summary(list(answers))}
        out.append(row | {"bytes_per_second": row["bytes"] / row["median_seconds"]})
    return out


MEASURES: dict[str, Callable[[Run], list[dict[str, Any]]]] = {
    "limits": limits, "write": write, "kjt": kjt, "ikjt": ikjt, "partial": partial, "sweep": sweep, "open": opening,
    "take": take, "select": select, "first": first, "memory": memory, "cold": cold, "latency": latency, "long": long,
}
