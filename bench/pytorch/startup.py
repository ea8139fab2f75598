"""Time from a new interpreter to the first batch, step by step, in processes of their own and in turns: dsistore, plain
and shuffled, and pyarrow reading the same columns of Parquet into the same tensors. Files are in the system's cache.

    python bench/pytorch/startup.py --help
"""

from __future__ import annotations

import pathlib
import time
from typing import Any

import children
import measure


class Steps:
    """Milliseconds from one call to the next, by name."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self.ms[name] = 1e3 * (now - self._last)
        self._last = now


def store_first_batch(steps: Steps, data: pathlib.Path, features: list[str], batch_size: int,
                      shuffle: str | None) -> int:
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
    dataset = table.torch(features, labels=measure.LABELS, batch_size=batch_size, shuffle=shuffle)
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
    steps("import the baseline")
    side = ParquetSide(data / "interleaved", features, measure.LABELS, batch_size, 2)
    steps("open")
    rows = next(iter(side)).rows
    steps("first batch")
    return rows


def child(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    steps = Steps()
    steps.ms["interpreter"] = 1e3 * (time.time() - request["begun"])
    args = pathlib.Path(request["data"]), request["features"], request["batch_size"]
    if kind == "parquet":
        rows = parquet_first_batch(steps, *args)
    else:
        rows = store_first_batch(steps, *args, shuffle="session" if kind == "shuffled" else None)
    if rows != request["rows"]:
        raise SystemExit(f"{kind}: a first batch of {rows} rows, not {request['rows']}")
    return steps.ms


def main() -> None:
    p = children.arguments(__doc__, processes=9)
    p.add_argument("--profile", nargs="+", default=["small", "metawide"])
    p.add_argument("--share", type=float, default=0.1, help="share of the features to read")
    a = children.parse(p, child)

    import pyarrow.parquet as pq
    machine = measure.machine()
    kinds = {"dsistore": "store", "dsistore, shuffled": "shuffled", "Parquet (pyarrow)": "parquet"}
    result: dict[str, Any] = {"batch_size": a.batch_size, "tables": []}
    for profile in a.profile:
        data = measure.table(pathlib.Path(a.dir) / profile, profile)
        file = pq.ParquetFile(data / "interleaved" / "part-00000.parquet")
        features = measure.projection(file.schema_arrow.names, a.share)
        request = {"data": str(data), "features": features, "batch_size": a.batch_size,
                   "rows": min(a.batch_size, file.metadata.num_rows)}
        print(f"\n{profile}: {len(file.schema_arrow.names)} columns, {len(features)} features of them; milliseconds")
        table: dict[str, Any] = {
            "profile": profile, "columns": len(file.schema_arrow.names), "features": len(features), "sides": []
        }
        for name, answers in children.rounds(a.processes, kinds, request).items():
            steps = {step: measure.median([x[step] for x in answers]) for step in answers[0]}
            own = [sum(v for k, v in x.items() if k not in ("interpreter", "import torch")) for x in answers]
            table["sides"].append(
                {"side": name, "steps_ms": steps, "own_ms": own, "median_own_ms": measure.median(own)})
            print(f"  {name:20} {measure.median(own):7.0f} without interpreter and torch:",
                  ", ".join(f"{k} {v:.1f}" for k, v in steps.items()))
        result["tables"].append(table)
    measure.write(a.results, "pytorch-startup", result, machine)


if __name__ == "__main__":
    main()
