"""What is measured: a tenth of the features, read by a framework from each format."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from baselines.harness import Engines, EngineError, Wrong, log, summary
from baselines.measures import parts, same
from baselines.workload import Workload

from .engines import ENGINES, SHUFFLED, stored

PACKAGE = "frameworks.engines"
SHARE = 0.1  # of the features
ORDER = "clustered"
TURN = 0.3  # seconds of an engine's turn

# The engines of each measure. The first is what the others' ratios are of.
MEASURES = {
    "tensorflow": ["tensorflow-dsistore", "tensorflow-tfrecord", "tensorflow-tfrecord-10", "tensorflow-parquet"],
    "jax": ["jax-dsistore", "numpy-dsistore"],
    "grain": [n for n in ENGINES if n.startswith("grain") and not n.endswith(SHUFFLED)],
    "grain-shuffled": [n for n in ENGINES if n.startswith("grain") and n.endswith(SHUFFLED)],
}


@dataclass
class Run:
    """What the measures of a run share."""

    engines: Engines
    rows: Workload
    grain_rows: Workload  # of what reads row by row
    rounds: int
    order: dict[Workload, str] = field(default_factory=dict)  # digest of dsistore's rows in their order

    def of(self, measure: str) -> Workload:
        return self.grain_rows if measure.startswith("grain") else self.rows

    def renew(self) -> None:
        """Lets what dsistore wrote in an earlier run be written anew."""
        for w in (self.rows, self.grain_rows):
            shutil.rmtree(w.file(ORDER, "dsistore"), ignore_errors=True)

    def written(self, engine: str, w: Workload) -> str:
        """The engine's file, which is written if it is not there."""
        of = stored(engine)
        path = w.file(ORDER, of.name)
        if not os.path.exists(path):
            log(f"{engine} writes {path}")
            self.engines.worker(engine, 1)("write", source=w.arrow(ORDER), path=path, clustered=True,
                                           columns=w.projection(SHARE).columns if of.projected else None)
        return path

    def check(self, engine: str, w: Workload) -> None:
        """Fails unless the engine gives the truth's rows in the truth's order; or in dsistore's, which orders sessions
        by itself: all of its engines must have the same."""
        p = w.projection(SHARE)
        got = self.engines.worker(engine, 1)("digest", path=self.written(engine, w), projection=parts(p))
        want = w.digest(ORDER, p)
        if stored(engine).name == "dsistore":
            want = want | {"ordered": self.order.setdefault(w, got["ordered"])}
        ordered = [] if engine.endswith(SHUFFLED) else ["ordered"]
        same(engine, got, want, ["rows", "ids", "bytes", "unordered", *ordered])

    def measure(self, name: str, threads: int) -> list[dict[str, Any]]:
        """Samples/s of an epoch, opening included, in a process that has read before."""
        w = self.of(name)
        p = w.projection(SHARE)

        def of(engine: str) -> Callable[[], dict[str, Any]]:
            path = self.written(engine, w)
            return lambda: self.engines.worker(engine, threads)("read", path=path, projection=parts(p))

        todo = {}
        for engine in (e for e in MEASURES[name] if e in self.engines.names):
            try:
                self.check(engine, w)
                todo[engine] = of(engine)
            except (EngineError, Wrong) as e:
                self.engines.failed(name, engine, e)
        log(f"{name}: {w.rows} rows, {threads} threads")
        out = []
        for engine, answers in self.engines.rounds(name, self.rounds, todo, turn=TURN).items():
            row = {"engine": engine, "what": ENGINES[engine][2], "rows": answers[0]["rows"], "threads": threads,
                   "features": len(p.columns), "stored_bytes": _size(pathlib.Path(self.written(engine, w))),
                   **summary(answers), **summary(answers, "cpu_seconds"), **summary(answers, "first_seconds")}
            row["samples_per_second"] = row["rows"] / row["median_seconds"]
            row["samples_per_cpu_second"] = row["rows"] / row["median_cpu_seconds"]
            out.append(row)
        for row in out:  # how many times as fast the first is
            if out[0]["engine"] == MEASURES[name][0]:
                row["times"] = row["median_seconds"] / out[0]["median_seconds"]
                row["cpu_times"] = row["median_cpu_seconds"] / out[0]["median_cpu_seconds"]
        self.engines.close()  # their threads would wait in the next measure
        return out


def _size(path: pathlib.Path) -> int:
    return sum(f.stat().st_size for f in ([path] if path.is_file() else path.rglob("*")) if f.is_file())
