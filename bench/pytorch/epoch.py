"""Where the time of an epoch from Python goes: on one processor or several, the store opened anew for each epoch.

    python bench/pytorch/epoch.py --help

An epoch is what a job does: open, plan, take every batch and look at its tensors as arrays. Every round measures the
steps of one epoch and a copy of as many bytes as its tensors hold, in turns; figures are medians. Seconds of the
processor are told apart by thread: the caller's, which are Python's and what the engine does in calls, and those of the
engine's own threads.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import resource
import sys
import time
from typing import Any

import measure
import numpy as np

_COPIED = 1 << 30  # bytes to copy from: more than caches hold


def pinned(threads: int) -> None:
    """Starts this program anew where the libraries have not been told how many threads there are, on as many
    processors. dsistore goes by the processors alone, as it does where nobody sets GOMAXPROCS."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    if any(os.environ.get(name) != str(threads) for name in names):
        os.environ.update({name: str(threads) for name in names})
        os.execv(sys.executable, [sys.executable, *sys.argv])


class Clock:
    """Milliseconds since it was last asked: by the clock, of the calling thread, and of the process's other threads."""

    def __init__(self) -> None:
        self._was = self._now()

    def _now(self) -> np.ndarray:
        caller = time.thread_time()
        return 1e3 * np.array([time.perf_counter(), caller, time.process_time() - caller])

    def __call__(self) -> np.ndarray:
        was, self._was = self._was, self._now()
        return self._was - was


def look(batch: Any) -> int:
    """What a consumer needs of a batch, as arrays; returns their bytes, without offsets, which follow from lengths."""
    arrays = [batch.dense.numpy()]
    for lists in (batch.sparse, batch.weighted):
        lists.offsets.numpy()
        arrays += [lists.lengths.numpy(), lists.values.numpy()
                   ] + ([] if lists.weights is None else [lists.weights.numpy()])
    arrays += [group.inverse.numpy() for group in batch.groups]
    return sum(a.nbytes for a in arrays)


STEPS = ("open, plan", "first batch", "other batches", "close")


def epoch(store: str, columns: list[str], batch_size: int, output: str, threads: int) -> dict[str, Any]:
    """One epoch: the milliseconds of its steps, its rows and bytes, and what the system counted."""
    import dsistore

    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF)
    clock = Clock()
    rows = size = 0
    dataset = dsistore.open(store).table("workload").torch(columns, batch_size=batch_size, output=output,
                                                           workers=threads)
    batches = iter(dataset)
    steps = [clock()]
    for batch in batches:
        size += look(batch)
        if not rows:
            steps.append(clock())
        rows += batch.rows
    steps.append(clock())
    del batch
    batches.close()
    steps.append(clock())
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rows": rows, "bytes": size, "steps": {name: s.tolist() for name, s in zip(STEPS, steps, strict=True)},
        "page_faults": after.ru_minflt - before.ru_minflt, "waits": after.ru_nvcsw - before.ru_nvcsw,
        "preempted": after.ru_nivcsw - before.ru_nivcsw,
    }


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=100_000)
    p.add_argument("--share", type=float, default=0.1, help="of the features")
    p.add_argument("--output", choices=["kjt", "ikjt"], default="kjt")
    p.add_argument("--threads", type=int, default=1, help="workers, and processors that the process is kept on")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--dir", type=pathlib.Path, default=measure.ROOT / "out" / "pytorch")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    a = p.parse_args()
    pinned(a.threads)
    machine = measure.machine()
    import pyarrow.parquet as pq

    directory = measure.table(a.dir / f"small-{a.rows}", "small", a.rows)
    columns = measure.projection(pq.read_schema(next((directory / "clustered").glob("*.parquet"))).names, a.share)
    store = str(directory / "store")
    size = epoch(store, columns, a.batch_size, a.output, a.threads)["bytes"]
    batches = -(-a.rows // a.batch_size)
    source, to = np.ones(max(_COPIED, size), np.uint8), np.ones(size // batches, np.uint8)
    at = 0

    def copy() -> None:
        nonlocal at
        for _ in range(batches):
            at = 0 if at + len(to) > len(source) else at
            to[:] = source[at: at + len(to)]
            at += len(to)

    found = measure.rounds(a.rounds, {
        "epoch": lambda: epoch(store, columns, a.batch_size, a.output, a.threads), "copy": copy})
    answers = [r.answer for r in found["epoch"]]
    if any(x["rows"] != a.rows or x["bytes"] != size for x in answers):
        raise SystemExit(f"an epoch gave other rows or bytes than {a.rows} and {size}")
    median = measure.median
    # By step: by the clock, of the calling thread, of the engine's threads.
    steps = {name: [median(x["steps"][name][i] for x in answers) for i in range(3)] for name in STEPS}
    whole = [sum(s[i] for s in steps.values()) for i in range(3)]
    # Without the collection of garbage before each.
    seconds = [sum(s[0] for s in x["steps"].values()) / 1e3 for x in answers]
    cpu_seconds = [sum(s[1] + s[2] for s in x["steps"].values()) / 1e3 for x in answers]
    result = {
        "rows": a.rows, "features": len(columns), "output": a.output, "threads": a.threads, "bytes": size,
        "rounds": a.rounds, "milliseconds": steps, **{
            k: median(x[k] for x in answers)
            for k in ("page_faults", "waits", "preempted")
        }, "seconds": seconds, "cpu_seconds": cpu_seconds, "copy_seconds": [r.seconds for r in found["copy"]],
        "samples_per_second": a.rows / median(seconds), "of_a_copy": median(
            c.seconds / e for c, e in zip(found["copy"], seconds)), "of_a_copy_cpu": median(
                c.cpu_seconds / e for c, e in zip(found["copy"], cpu_seconds)),
    }
    cpu = whole[1] + whole[2]
    print(
        f"{len(columns)} features into {a.output}, {a.threads} threads: {result['samples_per_second'] / 1e6:.2f} M "
        f"samples/s, "
        f"{result['of_a_copy']:.2f} of a copy, by the processor's seconds {result['of_a_copy_cpu']:.2f}; "
        f"{result['waits']:.0f} waits, {result['preempted']:.0f} times preempted, {result['page_faults']:.0f} page "
        f"faults"
    )
    print(f"{'':14} {'ms':>7} {'caller':>7} {'engine':>7} {'share':>6}   of the processor")
    for name, (clock, caller, engine) in [*steps.items(), ("all", whole)]:
        print(f"{name:14} {clock:7.1f} {caller:7.1f} {engine:7.1f} {(caller + engine) / cpu:6.0%}")
    measure.write(a.results, f"pytorch-epoch-{a.output}-{a.threads}", result, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
