"""Resident memory that reading adds to a process which has torch, in processes of their own and in turns: the peak of one
epoch, and what is held after each of several. dsistore's batches lie in pooled memory, which must not grow.

    python bench/pytorch/memory.py --help
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import subprocess
import sys
from typing import Any

LABELS = ["click", "conversion"]


def _status(field: str) -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/self/status is wanted: this program runs on Linux")


def child(what: str, request: dict[str, Any]) -> None:
    import torch  # noqa: F401
    data, features, size = pathlib.Path(request["data"]), request["features"], request["batch_size"]
    batches: Any
    if what == "parquet":
        from parquet import ParquetSide
        batches = ParquetSide(data / "clustered", features, LABELS, size, 2)
    else:
        import dsistore
        batches = dsistore.open(data / "store").table("workload").torch(
            features, labels=LABELS, batch_size=size, output=what.removesuffix("-shuffled"),
            shuffle="session" if what.endswith("-shuffled") else None)
    gc.collect()
    before = _status("VmRSS")
    rows, after = 0, []
    for _ in range(request["epochs"]):
        for b in batches:
            rows += b.rows
        del b
        gc.collect()
        after.append(_status("VmRSS") - before)
    print(json.dumps({"rows": rows, "peak": _status("VmHWM") - before, "after_epochs": after}))


def run(what: str, request: dict[str, Any]) -> dict[str, Any]:
    out = subprocess.run([sys.executable, __file__, "--child", what], input=json.dumps(request), capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    p.add_argument("--share", type=float, nargs="+", default=[0.1, 1.0], help="shares of the features to read")
    p.add_argument("--processes", type=int, default=5, help="processes of each kind that count; one more runs before")
    p.add_argument("--epochs", type=int, default=10, help="epochs a process")
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
    data = measure.table(pathlib.Path(a.dir) / "small", "small")
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    result: dict[str, Any] = {"batch_size": a.batch_size, "epochs": a.epochs, "scans": []}
    for share in a.share:
        request = {"data": str(data), "features": measure.projection(columns, share), "batch_size": a.batch_size, "epochs": a.epochs}
        sides: dict[str, Any] = {
            name: lambda what=what: run(what, request)
            for name, what in (("dsistore kjt", "kjt"), ("dsistore ikjt", "ikjt"), ("dsistore ikjt, shuffled", "ikjt-shuffled"),
                               ("Parquet clustered (pyarrow)", "parquet"))
        }
        print(f"\n{share:.0%} of the features ({len(request['features'])}), {a.epochs} epochs; MiB above the process with torch")
        scan: dict[str, Any] = {"share": share, "features": len(request["features"]), "sides": []}
        for name, runs in measure.rounds(a.processes, sides).items():
            peak = measure.median([r.answer["peak"] for r in runs])
            after = [measure.median([r.answer["after_epochs"][i] for r in runs]) for i in range(a.epochs)]
            scan["sides"].append({"side": name, "peak_bytes": peak, "after_epochs_bytes": after})
            print(f"  {name:30} peak {peak / 2**20:6.1f}, after each epoch", ", ".join(f"{x / 2**20:.1f}" for x in after))
        result["scans"].append(scan)
    measure.write(a.results, "pytorch-memory", result, machine)


if __name__ == "__main__":
    main()
