"""Resident memory that reading adds to a process which has torch, in processes of their own and in turns: the peak of
one epoch, and what is held after each of several. dsistore's batches lie in pooled memory, which must not grow.

    python bench/pytorch/memory.py --help
"""

from __future__ import annotations

import gc
import pathlib
from typing import Any

import children
import measure


def _status(field: str) -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/self/status is wanted: this program runs on Linux")


def child(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    import torch  # noqa: F401
    data, features, size = pathlib.Path(request["data"]), request["features"], request["batch_size"]
    batches: Any
    if kind == "parquet":
        from parquet import ParquetSide
        batches = ParquetSide(data / "clustered", features, measure.LABELS, size, 2)
    else:
        import dsistore
        batches = dsistore.open(data / "store").table("workload").torch(
            features, labels=measure.LABELS, batch_size=size, output=kind.removesuffix("-shuffled"),
            shuffle="session" if kind.endswith("-shuffled") else None)
    gc.collect()
    before = _status("VmRSS")
    rows, after = 0, []
    for _ in range(request["epochs"]):
        for b in batches:
            rows += b.rows
        del b
        gc.collect()
        after.append(_status("VmRSS") - before)
    return {"rows": rows, "peak": _status("VmHWM") - before, "after_epochs": after}


def main() -> None:
    p = children.arguments(__doc__, processes=5)
    p.add_argument("--share", type=float, nargs="+", default=[0.1, 1.0], help="shares of the features to read")
    p.add_argument("--epochs", type=int, default=10, help="epochs a process")
    a = children.parse(p, child)

    import pyarrow.parquet as pq
    machine = measure.machine()
    data = measure.table(pathlib.Path(a.dir) / "small", "small")
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    kinds = {"dsistore kjt": "kjt", "dsistore ikjt": "ikjt", "dsistore ikjt, shuffled": "ikjt-shuffled",
             "Parquet clustered (pyarrow)": "parquet"}
    result: dict[str, Any] = {"batch_size": a.batch_size, "epochs": a.epochs, "scans": []}
    for share in a.share:
        request = {
            "data": str(data), "features": measure.projection(columns, share), "batch_size": a.batch_size,
            "epochs": a.epochs
        }
        print(
            f"\n{share:.0%} of the features ({len(request['features'])}), {a.epochs} epochs; MiB above the process "
            f"with torch"
        )
        scan: dict[str, Any] = {"share": share, "features": len(request["features"]), "sides": []}
        for name, answers in children.rounds(a.processes, kinds, request).items():
            peak = measure.median([x["peak"] for x in answers])
            after = [measure.median([x["after_epochs"][i] for x in answers]) for i in range(a.epochs)]
            scan["sides"].append({"side": name, "peak_bytes": peak, "after_epochs_bytes": after})
            print(f"  {name:30} peak {peak / 2**20:6.1f}, after each epoch", ", ".join(
                f"{x / 2**20:.1f}" for x in after))
        result["scans"].append(scan)
    measure.write(a.results, "pytorch-memory", result, machine)


if __name__ == "__main__":
    main()
