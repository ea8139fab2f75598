"""What another label costs: bytes written and seconds of an overlay, made from an expression and from a table joined by
key, beside a full copy as Parquet by pyarrow, Lance's add_columns and merge where it is installed, and the entropy of
the label. In alternating rounds, on the cores that are asked for; each engine's label is read back and compared.

    PYTHONPATH=python/src python bench/overlays/labels.py --help
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000], help=
        "rows of the tables: those of the generator's small up to 100,000, of a narrow one above (default: %(default)s)"
    )
    p.add_argument("--rounds", type=int, default=5,
                   help="rounds that count; one more runs before (default: %(default)s)")
    p.add_argument("--cores", type=int, default=1, help="cores that every engine may use (default: %(default)s)")
    p.add_argument("--sides", nargs="*", default=["dsistore", "parquet", "lance"], help="default: all")
    p.add_argument("--share", type=float, nargs="+", default=[0.5, 0.03],
                   help="shares of rows that have the joined label (default: %(default)s)")
    p.add_argument("--dir", default="out/overlay", help="for the data; what is there is removed (default: %(default)s)")
    p.add_argument("--dsi", default="bin/dsi", help="the command that generates small (default: %(default)s)")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    return p.parse_args()


def pin(cores: int) -> None:
    """Before anything is imported that starts threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    for name in ("GOMAXPROCS", "LANCE_CPU_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "TOKIO_WORKER_THREADS"):
        os.environ[name] = str(cores)


def size(path: pathlib.Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def entropy(labels: Any) -> float:
    """Bytes a row that labels of this share take at the least when rows tell nothing of each other."""
    p = float(labels.mean())
    return 0.0 if p in (0.0, 1.0) else -(p * math.log2(p) + (1 - p) * math.log2(1 - p)) / 8


class Dsistore:
    def __init__(self, directory: pathlib.Path, table: Any):
        import dsistore
        self.path = directory / "store"
        self.store = dsistore.open(self.path)
        self.store.ingest("t", table)

    def bytes(self) -> int:
        return size(self.path)

    def expression(self, name: str, condition: str) -> None:
        self.store.table("t").overlay(name, expr=f"{name} = {condition}")

    def join(self, name: str, labels: Any) -> None:
        self.store.table("t").overlay(name, labels.rename_columns(["request_id", name]), key="request_id")

    def read(self, name: str) -> Any:
        return self.store.table("t").scan(["request_id", name], overlay=name).to_arrow()

    def clear(self, name: str) -> None:
        pass


class Parquet:
    """A copy of the table with one column more, as teams make it today."""

    def __init__(self, directory: pathlib.Path, table: Any):
        import pyarrow as pa
        import pyarrow.parquet as pq
        self.pa, self.pq, self.path = pa, pq, directory / "parquet"
        self.path.mkdir()
        pq.write_table(table, self.path / "t.parquet", compression="zstd")

    def bytes(self) -> int:
        return size(self.path)

    def expression(self, name: str, condition: str) -> None:
        import pyarrow.compute as pc
        t = self.pq.read_table(self.path / "t.parquet", use_threads=False)
        label = pc.and_(pc.equal(t["click"], 1), pc.equal(t["conversion"], 0)).cast(self.pa.int8())
        self.pq.write_table(t.append_column(name, label), self.path / f"{name}.parquet", compression="zstd")

    def join(self, name: str, labels: Any) -> None:
        import pyarrow.compute as pc
        t = self.pq.read_table(self.path / "t.parquet", use_threads=False)
        at = pc.index_in(t["request_id"], value_set=labels["request_id"].combine_chunks())
        self.pq.write_table(t.append_column(name, labels["label"].take(at)), self.path / f"{name}.parquet",
                            compression="zstd")

    def read(self, name: str) -> Any:
        return self.pq.read_table(self.path / f"{name}.parquet", columns=["request_id", name])

    def clear(self, name: str) -> None:
        (self.path / f"{name}.parquet").unlink()


class Lance:
    """A column more of the same dataset."""

    def __init__(self, directory: pathlib.Path, table: Any):
        import lance
        self.lance, self.path = lance, directory / "lance"
        lance.write_dataset(table, str(self.path))

    def bytes(self) -> int:
        return size(self.path)

    def expression(self, name: str, condition: str) -> None:
        self.lance.dataset(str(self.path)).add_columns({name: f"CAST({condition} AS TINYINT)"})

    def join(self, name: str, labels: Any) -> None:
        self.lance.dataset(str(self.path)).merge(labels.rename_columns(["request_id", name]), left_on="request_id")

    def read(self, name: str) -> Any:
        return self.lance.dataset(str(self.path)).to_table(columns=["request_id", name])

    def clear(self, name: str) -> None:
        pass


SIDES: dict[str, Callable[[pathlib.Path, Any], Any]] = {"dsistore": Dsistore, "parquet": Parquet, "lance": Lance}
CONDITION = "click = 1 AND conversion = 0"


def rows_of(a: argparse.Namespace, rows: int, directory: pathlib.Path) -> Any:
    """A table with request_id, click and conversion."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    if rows <= 100_000:
        dump = directory / "dump"
        subprocess.run([a.dsi, "generate", str(dump), "--rows",
                        str(rows), "--order", "clustered"], check=True, stdout=subprocess.DEVNULL)
        table = pq.read_table(dump)
        shutil.rmtree(dump)
        return table
    r = np.random.default_rng(1)
    clicks = r.random(rows) < 0.05
    columns = {
        "request_id": r.permutation(np.arange(rows, dtype=np.int64) * 7919),
        "click": clicks.astype(np.int8), "conversion": (clicks & (r.random(rows) < 0.1)).astype(np.int8),
    }
    for i in range(8):
        columns[f"dense_{i}"] = r.standard_normal(rows, dtype=np.float32)
    return pa.table(columns)


def check(side: Any, name: str, want: Any) -> None:
    """The label that was read back, by key, is the one that was asked for."""
    import pyarrow.compute as pc
    got = side.read(name)
    order = pc.sort_indices(got["request_id"])
    if not got[name].take(order).cast(want.type).equals(want):
        raise SystemExit(f"{type(side).__name__}: {name} is not the label that was asked for")


def measure(a: argparse.Namespace, rows: int) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    directory = pathlib.Path(a.dir) / str(rows)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    table = rows_of(a, rows, directory)
    sides = {}
    for name in a.sides:
        try:
            sides[name] = SIDES[name](directory, table)
        except ImportError as e:
            print(f"{name} is left out: {e}", file=sys.stderr)
    by_key = pc.sort_indices(table["request_id"])
    computed = pc.and_(pc.equal(table["click"], 1), pc.equal(table["conversion"], 0)).cast(pa.int8())
    r = np.random.default_rng(2)
    shuffled = table["request_id"].take(pa.array(r.permutation(rows)))
    tasks = [("expression", computed.to_numpy(), computed.take(by_key), None)]
    for share in a.share:
        labels = pa.table({"request_id": shuffled, "label": pa.array((r.random(rows) < share).astype(np.int8))})
        tasks.append((f"join, {share:.0%}", labels["label"].to_numpy(), labels["label"].take(
            pc.sort_indices(labels["request_id"])), labels))
    base = {name: s.bytes() for name, s in sides.items()}
    out: dict[str, Any] = {"rows": rows, "columns": table.num_columns, "bytes": base, "tasks": []}
    del table
    for number, (what, values, want, labels) in enumerate(tasks):
        figures: dict[str,
                      dict[str,
                           list[float]]] = {name: {"seconds": [], "cpu_seconds": [], "bytes": []}
                                            for name in sides}
        for turn in range(a.rounds + 1):
            for name, side in sides.items():
                label = f"label_{number}_{turn}"
                before, cpu, start = side.bytes(), time.process_time(), time.perf_counter()
                if labels is None:
                    side.expression(label, CONDITION)
                else:
                    side.join(label, labels)
                seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
                written = side.bytes() - before
                if turn == 0:
                    check(side, label, want)
                else:
                    for figure, value in (("seconds", seconds), ("cpu_seconds", cpu), ("bytes", written)):
                        figures[name][figure].append(value)
                side.clear(label)
        least = entropy(values)
        task: dict[str, Any] = {"task": what, "entropy_bytes_per_row": least, "sides": {}}
        print(f"\n{rows:,} rows, {what}: entropy {least:.4f} B/row")
        for name, f in figures.items():
            m = {k: statistics.median(v) for k, v in f.items()}
            task["sides"][name] = {
                "bytes_per_row": m["bytes"] / rows, "seconds": m["seconds"], "cpu_seconds": m["cpu_seconds"],
                "seconds_per_100000": m["seconds"] * 100_000 / rows, "all_seconds": f["seconds"],
            }
            print(
                f"  {name:9} {m['bytes'] / rows:10.4f} B/row  {m['seconds'] * 100_000 / rows:8.4f} s for 100,000 rows"
                f"  ({m['cpu_seconds'] * 100_000 / rows:.4f} s of the processor)")
        out["tasks"].append(task)
    del sides
    shutil.rmtree(directory)
    return out


def main() -> None:
    a = arguments()
    pin(a.cores)
    import pyarrow as pa
    pa.set_cpu_count(a.cores)
    result = {
        "machine": {
            "system": platform.platform(), "processor": platform.processor(), "cores": a.cores,
            "python": platform.python_version()
        }, "rounds": a.rounds, "tables": [measure(a, n) for n in a.rows],
    }
    if a.results:
        path = pathlib.Path(a.results) / f"overlay-{'-'.join(map(str, a.rows))}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"results: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
