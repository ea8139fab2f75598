"""Time from a new interpreter to the first batch, step by step, in processes of their own and in turns: dsistore, plain and
shuffled, and pyarrow reading the same columns of Parquet into the same tensors. Files are in the system's cache.

    python bench/pytorch/startup.py --help
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

LABELS = ["click", "conversion"]


class Steps:
    """Milliseconds from one call to the next, by name."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self.ms[name] = 1e3 * (now - self._last)
        self._last = now


def store_first_batch(steps: Steps, data: pathlib.Path, features: list[str], batch_size: int, shuffle: str | None) -> int:
    import torch  # noqa: F401
    steps("import torch")
    import dsistore
    steps("import dsistore")
    from dsistore import _engine
    _engine.library()
    steps("load library")
    table = dsistore.open(data / "store").table("workload")
    steps("open")
    import dsistore.torch  # noqa: F401
    steps("import dsistore.torch")
    dataset = table.torch(features, labels=LABELS, batch_size=batch_size, shuffle=shuffle)
    steps("plan")
    batches = iter(dataset)
    rows = next(batches).rows
    steps("first batch")
    batches.close()
    return rows


def parquet_first_batch(steps: Steps, data: pathlib.Path, features: list[str], batch_size: int) -> int:
    import torch  # noqa: F401
    steps("import torch")
    import pyarrow.compute  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    steps("import pyarrow")
    from parquet import ParquetSide
    steps("import this program's side")
    side = ParquetSide(data / "interleaved", features, LABELS, batch_size, 2)
    steps("open")
    rows = next(iter(side)).rows
    steps("first batch")
    return rows


def child(what: str, request: dict[str, Any]) -> None:
    started = time.time()
    steps = Steps()
    args = pathlib.Path(request["data"]), request["features"], request["batch_size"]
    if what == "parquet":
        rows = parquet_first_batch(steps, *args)
    else:
        rows = store_first_batch(steps, *args, shuffle="session" if what == "shuffled" else None)
    print(json.dumps({"started": started, "rows": rows, "steps": steps.ms}))


def run(what: str, request: dict[str, Any]) -> dict[str, float]:
    begin = time.time()
    out = subprocess.run([sys.executable, __file__, "--child", what], input=json.dumps(request), capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    answer = json.loads(out.stdout)
    if answer["rows"] != request["rows"]:
        raise SystemExit(f"{what}: a first batch of {answer['rows']} rows, not {request['rows']}")
    return {"interpreter": 1e3 * (answer["started"] - begin), **answer["steps"]}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    p.add_argument("--profile", nargs="+", default=["small", "metawide"])
    p.add_argument("--share", type=float, default=0.1, help="share of the features to read")
    p.add_argument("--processes", type=int, default=9, help="processes of each kind that count; one more runs before")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--dir", default="out/pytorch", help="where the data lies; what is there already is used")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    p.add_argument("--child", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.child:
        child(a.child, json.load(sys.stdin))
        return

    import measure
    import pyarrow.parquet as pq
    machine = measure.machine()
    result: dict[str, Any] = {"batch_size": a.batch_size, "tables": []}
    for profile in a.profile:
        data = measure.table(pathlib.Path(a.dir) / profile, profile)
        file = pq.ParquetFile(data / "interleaved" / "part-00000.parquet")
        features = measure.projection(file.schema_arrow.names, a.share)
        request = {"data": str(data), "features": features, "batch_size": a.batch_size,
                   "rows": min(a.batch_size, file.metadata.num_rows)}
        sides: dict[str, Any] = {
            name: lambda what=what: run(what, request)
            for name, what in (("dsistore", "store"), ("dsistore, shuffled", "shuffled"), ("Parquet (pyarrow)", "parquet"))
        }
        print(f"\n{profile}: {len(file.schema_arrow.names)} columns, {len(features)} features of them; milliseconds")
        table: dict[str, Any] = {"profile": profile, "columns": len(file.schema_arrow.names), "features": len(features), "sides": []}
        for name, runs in measure.rounds(a.processes, sides).items():
            steps = {step: measure.median([r.answer[step] for r in runs]) for step in runs[0].answer}
            own = [sum(v for k, v in r.answer.items() if k not in ("interpreter", "import torch")) for r in runs]
            table["sides"].append({"side": name, "steps_ms": steps, "own_ms": own, "median_own_ms": measure.median(own)})
            print(f"  {name:20} {measure.median(own):7.0f} without interpreter and torch:",
                  ", ".join(f"{k} {v:.1f}" for k, v in steps.items()))
        result["tables"].append(table)
    measure.write(a.results, "pytorch-startup", result, machine)


if __name__ == "__main__":
    main()
