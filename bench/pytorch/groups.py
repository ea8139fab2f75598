"""What is left of duplicates in a batch where partitions group features differently, and some lack features: ids of kjt
over those of ikjt, the caller's thread a batch, and what stats() claims beside what was counted in the tensors. Two
tables:

three   daily partitions, of which the oldest lacks half of the features
month   30 daily partitions; each week a sixth of the features is added and another sixth dropped, and features change
        in other groups

    PYTHONPATH=python/src python bench/pytorch/groups.py --build old=/path/to/old/src --build new=python/src

A build is a directory with the package dsistore, its engine built in place (CONTRIBUTING.md). Each round runs every
build in a process of its own, in turns. Before that every list of every row is compared with the source, which pyarrow
reads, in both outputs of each build.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SESSION = 16.5  # rows, on average
CHANGED = 0.2  # of a session's rows, the share in which a group of features is another than in the row before
WEEK = 7


def names(n: int) -> list[str]:
    """Of features; every sixth has weights."""
    return [f"{'scored' if i % 6 == 5 else 'list'}_{i:02}" for i in range(n)]


def days_of(case: str, features: list[str], days: int) -> Iterator[tuple[str, list[str]]]:
    """The partitions, and the features that each has."""
    for day in range(3 if case == "three" else days):
        week = day // WEEK
        sixth = len(features) // 6
        lacks = set(features[::2]) if case == "three" and day == 0 else set()
        if case == "month":  # dropped so far, and not added yet
            lacks = set(features[: sixth * min(week, 2)]) | set(features[len(features) - sixth * max(2 - week, 0):])
        yield f"2026-11-{day + 1:02}", [f for f in features if f not in lacks]


def make_day(rows: int, has: list[str], seed: int) -> pa.Table:
    """Rows in sessions; features are in groups, of about five, that a draw of the day makes."""
    rng = np.random.default_rng(seed)
    starts = rng.random(rows) < 1 / SESSION
    starts[0] = True
    columns: dict[str, pa.Array] = {
        "session": pa.array(np.cumsum(starts)), "row": pa.array(seed * 10_000_000 + np.arange(rows)),
        "click": pa.array((rng.random(rows) < 0.1).astype(np.int8)),
    }
    drawn = random.Random(seed).sample(has, len(has))
    for group in (drawn[i: i + 5] for i in range(0, len(drawn), 5)):
        new = starts | (rng.random(rows) < CHANGED)
        of = np.cumsum(new) - 1
        for name in group:
            lengths = rng.integers(0, 40, of[-1] + 1) * (rng.random(of[-1] + 1) < 0.8)
            ids = pa.array(rng.integers(0, 1 << 62, lengths.sum()))
            values = pa.StructArray.from_arrays([ids, pa.array(rng.random(len(ids), np.float32))],
                                                ["id", "score"]) if name.startswith("scored") else ids
            lists = pa.ListArray.from_arrays(
                np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), values,
                mask=pa.array(rng.random(of[-1] + 1) < 0.05))
            columns[name] = lists.take(pa.array(of))
    return pa.table({k: columns[k] for k in ("session", "row", "click", *has)})


def made(a: argparse.Namespace, case: str) -> pathlib.Path:
    """The directory with the store of a case, and the Parquet that it is of."""
    out = pathlib.Path(a.dir) / f"groups-{case}-{a.rows}x{a.features}" / (str(a.days) if case == "month" else "")
    if (out / "done").exists():
        return out
    import dsistore

    features = names(a.features)
    for i, (ds, has) in enumerate(days_of(case, features, a.days)):
        dump = out / "dump" / f"ds={ds}"
        dump.mkdir(parents=True, exist_ok=True)
        pq.write_table(make_day(a.rows, has, i + 1), dump / "part.parquet", compression="zstd")
        dsistore.open(out / "store").ingest("t", [dump / "part.parquet"], session_key="session", time_key="row",
                                            overwrite=True)
        print(f"{case}: {ds}, {len(has)} features", file=sys.stderr)
    (out / "done").touch()
    return out


def dataset(store: str, a: dict[str, Any], output: str) -> Any:
    import dsistore

    return dsistore.open(store).table("t").torch([*names(a["features"]), "row"], labels="click",
                                                 batch_size=a["batch_size"], output=output, workers=a["workers"],
                                                 shuffle=a["shuffle"] or None)


def child(store: str, a: dict[str, Any], output: str) -> dict[str, Any]:
    """One epoch. What a trainer takes off a batch are its KJTs: they are made in the caller's thread."""
    import torch

    torch.set_num_threads(1)
    data = dataset(store, a, output)
    next(iter(data)).sparse_features  # loads the engine and torchrec
    cpu: list[float] = []
    ids = lists = rows = 0
    orders = set()
    begin, batches = time.perf_counter(), iter(data)
    while True:
        start = time.thread_time()
        batch = next(batches, None)
        if batch is None:
            break
        kjts = (batch.sparse_features, batch.weighted_features)
        cpu.append(time.thread_time() - start)
        ids += sum(k.values().numel() for k in kjts)
        lists += sum(k.lengths().numel() for k in kjts)
        rows += batch.rows * sum(len(k.keys()) for k in kjts)
        orders.add(str([k.keys() for k in kjts]))
    wall = time.perf_counter() - begin
    return {
        "ids": ids, "lists": lists, "rows": rows, "batches": len(cpu), "caller_ms": 1e3 * sum(cpu) / len(cpu),
        "wall_ms": 1e3 * wall / len(cpu), "counted_factor": rows / lists, "stats_factor": data.stats().emitted_factor,
        "key_orders": len(orders)
    }


def compare(store: str, a: dict[str, Any]) -> dict[str, Any]:
    """Every list of every row, in both outputs, with the source."""
    source = {}
    for path in sorted((pathlib.Path(store).parent / "dump").glob("*/part.parquet")):
        day = pq.read_table(path, partitioning=None)
        source[day["row"][0].as_py() // 10_000_000] = day
    for output in ("kjt", "ikjt"):
        seen = 0
        for batch in dataset(store, a, output):
            number = batch.keys["row"].numpy()
            seen += len(number)
            for kjt in (batch.sparse_features, batch.weighted_features):
                _compare(kjt, number, source, output)
        if seen != sum(map(len, source.values())):
            raise SystemExit(f"{output}: {seen} rows")
    return {}


def _compare(kjt: Any, number: np.ndarray, source: dict[int, pa.Table], output: str) -> None:
    lengths, values = kjt.lengths().numpy(), kjt.values().numpy()
    weights = None if kjt.weights_or_none() is None else kjt.weights().numpy()
    inverses = None if kjt.inverse_indices_or_none() is None else kjt.inverse_indices()[1].numpy()
    ends = np.cumsum(lengths)
    first = 0
    for k, (key, stride) in enumerate(zip(kjt.keys(), kjt.stride_per_key(), strict=True)):
        of = first + (np.arange(len(number)) if inverses is None else inverses[k])
        first += stride
        for day in np.unique(number // 10_000_000):
            here = number // 10_000_000 == day
            table = source[int(day)]
            if key not in table.column_names:
                if lengths[of[here]].any():
                    raise SystemExit(f"{output}: {key} has ids on day {day}, which lacks it")
                continue
            want = table[key].combine_chunks().take(pa.array(number[here] - day * 10_000_000)).fill_null([])
            sizes = lengths[of[here]]
            positions = np.repeat(ends[of[here]] - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
            flat = want.flatten()
            got = [(values, flat.field("id") if weights is not None else flat)
                   ] + ([(weights, flat.field("score"))] if weights is not None else [])
            if not np.array_equal(sizes, want.value_lengths()) or any(not np.array_equal(x[positions], y)
                                                                      for x, y in got):
                raise SystemExit(f"{output}: lists of {key} on day {day} are not the source's")


def run(build: str, request: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(request)], env={**os.environ, "PYTHONPATH": build},
        capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", action="append", default=[], metavar="NAME=DIR", help="default: the one of PYTHONPATH")
    p.add_argument("--case", action="append", choices=["three", "month"], help="default: both")
    p.add_argument("--rows", type=int, default=10_000, help="of a partition")
    p.add_argument("--days", type=int, default=30, help="of month")
    p.add_argument("--features", type=int, default=48, help="id lists, every sixth with weights")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--shuffle", default="", choices=["", "session", "row"])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--dir", default=str(measure.ROOT / "out" / "pytorch"),
                   help="where the data lies; what is there already is used")
    p.add_argument("--results", default=str(measure.ROOT / "bench" / "results"),
                   help="directory for the results; empty: none")
    p.add_argument("--child", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.child:
        request = json.loads(a.child)
        print(
            json.dumps(
                compare(request["store"], request) if request["output"] ==
                "compare" else child(request["store"], request, request["output"])))
        return
    builds = dict(b.split("=", 1) for b in a.build) or {"here": os.environ.get("PYTHONPATH", "")}
    machine = measure.machine()
    result: dict[str, Any] = {
        "rows": a.rows, "features": a.features, "batch_size": a.batch_size, "workers": a.workers, "shuffle": a.shuffle,
        "rounds": a.rounds, "cases": {}
    }
    for case in a.case or ["three", "month"]:
        store = str(made(a, case) / "store")
        request = {
            "store": store, "features": a.features, "batch_size": a.batch_size, "workers": a.workers,
            "shuffle": a.shuffle
        }
        for name, build in builds.items():
            run(build, {**request, "output": "compare"})
            print(f"{case}: all lists of {name} are the source's", file=sys.stderr)
        sides = [(name, output) for name in builds for output in ("kjt", "ikjt")]
        found: dict[tuple[str, str], list[dict[str, Any]]] = {side: [] for side in sides}
        for turn in range(a.rounds):
            for name, output in sides if turn % 2 else sides[::-1]:
                found[name, output].append(run(builds[name], {**request, "output": output}))
        print(
            f"\n{case}: load {os.getloadavg()[0]:.1f}\n{'':8} {'output':6} {'ids kjt/ikjt':>12} "
            f"{'caller, ms/batch':>19} {'wall, ms/batch':>17} "
            f"{'rows/list':>12} {'stats()':>8} {'key orders':>11}")
        out = result["cases"][case] = []
        for (name, output), runs in found.items():
            x = {"build": name, "output": output, **runs[0], "ratio": found[name, "kjt"][0]["ids"] / runs[0]["ids"]}
            for k in ("caller_ms", "wall_ms"):
                x[f"{k}_all"], x[k] = [r[k] for r in runs], statistics.median(r[k] for r in runs)
            out.append(x)
            print(
                f"{name:8} {output:6} {x['ratio']:12.2f} {x['caller_ms']:19.2f} {x['wall_ms']:17.2f} "
                f"{x['counted_factor']:12.3f} "
                f"{x['stats_factor']:8.3f} {x['key_orders']:11}")
    measure.write(a.results, "pytorch-groups", result, machine)


if __name__ == "__main__":
    main()
