"""Opening, planning, a first read and rows at random positions by several builds of the package, in turns: each round
runs every build in a process of its own, on one core. Seconds of the processor are told beside those of the clock: they
mislead less on a busy machine.

    python bench/pytorch/builds.py STORE TABLE --features a,b --build old=/path/to/old/src --build new=python/src

A build is a directory with the package dsistore, its engine built in place (CONTRIBUTING.md). All must give the same
rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from typing import Any

import measure

STEPS = ("open and plan", "read", "first take", "take again")


def child(store: str, name: str, features: list[str], taken: int, turns: int) -> dict[str, Any]:
    """The steps' (seconds, seconds of the processor), and a digest of the rows."""
    import numpy  # noqa: F401
    import pyarrow

    import dsistore
    from dsistore import _engine

    _engine.call("version")  # loads the engine
    marks = [(time.perf_counter(), time.process_time())]

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time()))

    table = dsistore.open(store).table(name)
    scan = table.scan(features, workers=1)
    mark()
    read = scan.to_arrow()
    mark()
    rows = sorted(random.Random(7).sample(range(len(table)), min(taken, len(table))))
    start = len(marks)
    for _ in range(1 + turns):
        got = table.take(rows, features, workers=1)
        mark()
    took = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]
    again = sorted(took[start:])[turns // 2]
    sink = pyarrow.BufferOutputStream()
    for whole in (read, got):
        with pyarrow.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole.combine_chunks())
    return {
        "steps": dict(zip(STEPS, [took[0], took[1], took[2], again])), "digest": hashlib.sha256(
            sink.getvalue()).hexdigest()
    }


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("table")
    p.add_argument("--features", required=True, help="names, separated by commas")
    p.add_argument("--build", action="append", default=[], metavar="NAME=DIR")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--rows", type=int, default=1000, help="rows to take")
    p.add_argument("--results", default=str(measure.ROOT / "bench" / "results"),
                   help="directory for the results; empty: none")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.child:
        print(json.dumps(child(a.store, a.table, a.features.split(","), a.rows, 5)))
        return
    builds = dict(b.split("=", 1) for b in a.build or [f"here={measure.ROOT / 'python' / 'src'}"])
    machine = measure.machine()
    core = sorted(os.sched_getaffinity(0))[-1]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in builds}
    for turn in range(a.rounds + 1):  # the first does not count
        for name in list(builds) if turn % 2 else list(builds)[::-1]:
            done = subprocess.run([
                sys.executable, __file__, a.store, a.table, "--features", a.features, "--rows",
                str(a.rows), "--child"
            ], env={**os.environ, "PYTHONPATH": builds[name], "GOMAXPROCS": "1"}, check=True, capture_output=True,
                                  text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
            found[name].append(json.loads(done.stdout))
    digests = {x["digest"] for all_ in found.values() for x in all_}
    if len(digests) != 1:
        raise SystemExit("the builds give different rows")
    result = []
    for step in STEPS:
        for name, all_ in found.items():
            clock, cpu = ([x["steps"][step][i] * 1e3 for x in all_[1:]] for i in (0, 1))
            result.append({
                "build": name, "step": step, "median_ms": statistics.median(clock), "least_ms": min(clock),
                "median_cpu_ms": statistics.median(cpu), "least_cpu_ms": min(cpu), "ms": clock, "cpu_ms": cpu
            })
            print(
                f"{step:14} {name:10} median {statistics.median(clock):8.3f} ms, least {min(clock):8.3f}; of the "
                f"processor "
                f"{statistics.median(cpu):8.3f}, least {min(cpu):8.3f}")
    measure.write(a.results, "builds", result, machine)


if __name__ == "__main__":
    main()
