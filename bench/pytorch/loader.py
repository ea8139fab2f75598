"""Samples a second from a dsistore table into torch tensors and KeyedJaggedTensors, beside pyarrow reading the same
rows of Parquet into the same ones: in turns in one process, every engine's rows checked equal first. Then what a batch
costs in Python, what a consumer waits, and TorchRec's EmbeddingBagCollection on the CPU fed by each.

    python bench/pytorch/loader.py --help
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import measure
import numpy as np
import pyarrow.parquet as pq
import torch
import torchrec
from parquet import C1, C2, Lists, ParquetBatch, ParquetSide, hash_lists
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

import dsistore
from dsistore import _engine

# Rows as hashes, so that engines that differ in order or slots can be compared.

def _name(name: str) -> np.uint64:
    return np.uint64(
        hash_lists(np.array([0, len(name)]),
                   np.frombuffer(name.encode(), np.uint8).astype(np.int64), None)[0])


def _lists_hash(x: Any, inverse: torch.Tensor | None, out: np.ndarray) -> None:
    """Adds the hashes of features' lists to those of the rows; all have one inverse."""
    if not x.keys:
        return
    offsets = np.zeros(len(x.lengths) + 1, np.int64)
    np.cumsum(x.lengths.numpy(), out=offsets[1:])
    hashes = hash_lists(offsets, x.values.numpy(), None if x.weights is None else x.weights.numpy()).reshape(
        len(x.keys), -1)
    for key, h in zip(x.keys, hashes):
        out += _name(key) * (h if inverse is None else h[inverse.numpy()])


def _matrix_hash(names: list[str], matrix: torch.Tensor, out: np.ndarray) -> None:
    for i, name in enumerate(names):
        bits = matrix[:, i].numpy().copy().view(np.uint32).astype(np.uint64)
        out += (bits * C1 ^ bits >> np.uint64(7)) * C2 * _name(name)


def _rows(n: int, plain: tuple[Any, ...], groups: Iterable[tuple[torch.Tensor | None, tuple[Any, ...]]],
          matrices: tuple[tuple[list[str], torch.Tensor], ...]) -> np.ndarray:
    """A hash of each of a batch's n rows: of the lists that come a row each, of those with an inverse, and of
    matrices."""
    out = np.zeros(n, np.uint64)
    for inverse, parts in ((None, plain), *groups):
        for x in parts:
            _lists_hash(x, inverse, out)
    for names, matrix in matrices:
        _matrix_hash(names, matrix, out)
    return out


def store_rows(dataset: Any) -> np.ndarray:
    """A hash of each row, in order."""
    def lists(b: Any) -> Iterator[tuple[torch.Tensor | None, tuple[Any, ...]]]:
        inverses = [*b.inverses, None]
        for j in (b.sparse, b.weighted):
            groups = [-1] * len(j.keys) if j.groups is None else j.groups.tolist()
            for key, group in zip(j.keys, groups):
                yield inverses[group], (j.feature(key),)

    return np.concatenate([
        _rows(b.rows, (), lists(b), ((b.dense_names, b.dense), (b.label_names, b.labels))) for b in dataset])


def parquet_rows(side: ParquetSide) -> np.ndarray:
    """The same of the baseline."""
    return np.concatenate([
        _rows(b.rows, (b.ids, b.weighted), [(inverse, tuple(parts)) for inverse, _, *parts in b.groups],
              ((side.dense, b.dense), (measure.LABELS, b.labels))) for b in side])


# What a trainer takes off a batch: KeyedJaggedTensors.

def _kjt(x: Lists, rows: int) -> KeyedJaggedTensor:
    return KeyedJaggedTensor(keys=x.keys, values=x.values, lengths=x.lengths, weights=x.weights, stride=rows)


def _variable(groups: list[tuple[torch.Tensor, int, Lists]]) -> KeyedJaggedTensor:
    keys = [k for _, _, x in groups for k in x.keys]
    inverses = torch.stack([inverse for inverse, _, _ in groups]).long()
    return KeyedJaggedTensor(
        keys=keys, values=torch.cat([x.values for _, _, x in groups]), lengths=torch.cat([
            x.lengths for _, _, x in groups
        ]), weights=torch.cat([x.weights for _, _, x in groups]) if groups[0][2].weights is not None else None,
        stride_per_key_per_rank=[[slots] for _, slots, x in groups for _ in x.keys],
        inverse_indices=(keys, inverses[[i for i, (_, _, x) in enumerate(groups) for _ in x.keys]]))


def parquet_kjts(b: ParquetBatch) -> list[KeyedJaggedTensor]:
    """Deduplicated ids, ids, and the same of weighted lists: where there are any."""
    out = []
    for i, plain in ((2, b.ids), (3, b.weighted)):
        if groups := [(g[0], g[1], g[i]) for g in b.groups if g[i].keys]:
            out.append(_variable(groups))
        if plain.keys:
            out.append(_kjt(plain, b.rows))
    return out


def store_kjts(b: Any) -> list[KeyedJaggedTensor]:
    made = (b.sparse_features, b.weighted_features)
    return [kjt for kjt in made if kjt.keys()]


def drained(batches: Any, kjts: Callable[[Any], Any], epochs: int) -> Callable[[], int]:
    """Reads all batches and what a trainer takes off them; returns the rows."""
    def run() -> int:
        rows = 0
        for _ in range(epochs):
            for b in batches:
                kjts(b)
                rows += b.rows
        return rows
    return run


class InEngine:
    """Counts the seconds in calls of the engine for batches, which wait without the GIL: the rest of a loop is
    Python."""

    def __enter__(self) -> InEngine:
        self.seconds, self.calls = 0.0, 0
        lib = _engine.library()
        self._was = {name: getattr(lib, name) for name in ("dsi_next", "dsi_release")}
        for name, f in self._was.items():
            setattr(lib, name, self._counted(f))
        return self

    def __exit__(self, *_: object) -> None:
        for name, f in self._was.items():
            setattr(_engine.library(), name, f)

    def _counted(self, f: Any) -> Any:
        def call(*args: Any) -> Any:
            begin = time.perf_counter()
            try:
                return f(*args)
            finally:
                self.seconds += time.perf_counter() - begin
                self.calls += 1
        return call


def python_cost(dataset: Any, rounds: int) -> dict[str, float]:
    """Milliseconds a batch outside the engine, and the share of an epoch's time that they are."""
    outside, share = [], []
    for _ in range(rounds):
        with InEngine() as engine:
            begin = time.perf_counter()
            batches = 0
            for b in dataset:
                store_kjts(b)
                batches += 1
            took = time.perf_counter() - begin
        outside.append((took - engine.seconds) / batches)
        share.append((took - engine.seconds) / took)
    return {"python_ms_a_batch": 1e3 * measure.median(outside), "python_share": measure.median(share)}


def stalls(dataset: Any, consumer_ms: float, rounds: int) -> dict[str, float]:
    """How long an epoch of a consumer that takes consumer_ms a batch waits for the loader, and how much of that for the
    first batch, before which nothing can be made ahead: an epoch of 25 batches is short beside it."""
    took, waited, first = [], [], []
    batches = 0
    for _ in range(rounds):
        with InEngine() as engine:
            begin, batches = time.perf_counter(), 0
            for b in dataset:
                if batches == 0:
                    first.append(engine.seconds)
                store_kjts(b)
                batches += 1
                time.sleep(consumer_ms / 1e3)
            took.append(time.perf_counter() - begin)
        waited.append(engine.seconds)
    return {"consumer_ms": consumer_ms, "batches": batches, "seconds": measure.median(took),
            "waited_seconds": measure.median(waited), "waited_for_first_seconds": measure.median(first)}


# EmbeddingBagCollection on the CPU.

def forward_sides(a: argparse.Namespace, data: pathlib.Path, features: list[str], table: dsistore.Table
                  ) -> dict[str, Callable[[], Any]]:
    names = [f.name for f in table.features(features) if f.kind == "sparse"]
    torch.manual_seed(0)
    model = torchrec.EmbeddingBagCollection(
        device=torch.device("cpu"), tables=[
            torchrec.EmbeddingBagConfig(name=n, embedding_dim=a.dim, num_embeddings=a.embeddings, feature_names=[n])
            for n in names
        ])
    modulo = {n: f"mod({a.embeddings})" for n in names}
    datasets = {
        out: table.torch(names, labels=measure.LABELS, batch_size=a.batch_size, output=out, transforms=modulo,
                         workers=1)
        for out in ("kjt", "ikjt")
    }

    def store(out: str) -> Callable[[], Any]:
        def run() -> dict[str, float]:
            forward, total = 0.0, 0.0
            with torch.no_grad():
                for b in datasets[out]:
                    kjt = b.sparse_features
                    begin = time.perf_counter()
                    pooled = model(kjt)
                    forward += time.perf_counter() - begin
                    total += float(sum(pooled[n].sum() for n in names))
            return {"forward": forward, "sum": total}
        return run

    def parquet() -> dict[str, float]:
        forward, total = 0.0, 0.0
        side = ParquetSide(data / "clustered", names, measure.LABELS, a.batch_size, 1, modulus=a.embeddings)
        with torch.no_grad():
            for b in side:
                kjt = _kjt(b.ids, b.rows)
                begin = time.perf_counter()
                pooled = model(kjt)
                forward += time.perf_counter() - begin
                total += float(sum(pooled[n].sum() for n in names))
        return {"forward": forward, "sum": total}

    return {"dsistore kjt": store("kjt"), "dsistore ikjt": store("ikjt"), "Parquet clustered (pyarrow)": parquet}


def scans(a: argparse.Namespace, data: pathlib.Path, table: dsistore.Table, share: float) -> Iterator[dict[str, Any]]:
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    features = measure.projection(columns, share)

    def dataset(output: str, threads: int) -> Any:
        return table.torch(features, labels=measure.LABELS, batch_size=a.batch_size, output=output, workers=threads)

    ikjt = dataset("ikjt", 1)
    groups = [g.keys for g in next(iter(ikjt)).groups]

    def parquet(order: str, threads: int, grouped: bool = False) -> ParquetSide:
        return ParquetSide(data / order, features, measure.LABELS, a.batch_size, threads, groups if grouped else [])

    print(f"{share:.0%}: {len(features)} features, {len(groups)} groups: comparing", file=sys.stderr)
    # The store has the sessions in another order than either Parquet.
    want = store_rows(dataset("kjt", 1))
    if not np.array_equal(store_rows(ikjt), want):
        raise SystemExit("dsistore kjt and ikjt: rows differ")
    for name, order, hashed in (("clustered", "clustered", False), ("hashed", "clustered", True),
                                ("interleaved", "interleaved", False)):
        if not np.array_equal(np.sort(parquet_rows(parquet(order, 1, hashed))), np.sort(want)):
            raise SystemExit(f"dsistore and Parquet, {name}: rows differ")

    for threads in a.threads:
        torch.set_num_threads(1)
        sides = {
            "dsistore kjt": drained(dataset("kjt", threads), store_kjts, a.epochs),
            "Parquet clustered (pyarrow)": drained(parquet("clustered", threads), parquet_kjts, a.epochs),
            "Parquet interleaved (pyarrow)": drained(parquet("interleaved", threads), parquet_kjts, a.epochs),
            "dsistore ikjt": drained(dataset("ikjt", threads), store_kjts, a.epochs),
            "Parquet clustered, hashed into ikjt": drained(parquet("clustered", threads, True), parquet_kjts, a.epochs),
        }
        found = measure.rounds(a.rounds, sides)
        measures = []
        for name, runs in found.items():
            seconds, cpu = [r.seconds for r in runs], [r.cpu_seconds for r in runs]
            rows = runs[0].answer
            measures.append({
                "side": name, "threads": threads, "seconds": seconds, "median_seconds": measure.median(seconds),
                "samples_per_second": rows / measure.median(seconds), "cpu_seconds": cpu,
                "samples_per_cpu_second": rows / measure.median(cpu)
            })
        out: dict[str, Any] = {
            "share": share, "features": features, "groups": len(groups), "rows": len(want), "threads": threads,
            "measures": measures, "costs": []
        }
        for output in ("kjt", "ikjt"):
            out["costs"].append({"output": output, **python_cost(dataset(output, threads), a.rounds),
                                 "stall": stalls(dataset(output, threads), a.consumer_ms, a.rounds)})
        yield out


def forward(a: argparse.Namespace, data: pathlib.Path, table: dsistore.Table) -> dict[str, Any]:
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    features = measure.projection(columns, 0.1)
    torch.set_num_threads(a.torch_threads)
    found = measure.rounds(a.rounds, forward_sides(a, data, features, table))
    sums = {name: runs[0].answer["sum"] for name, runs in found.items()}
    want = sums["dsistore kjt"]
    if any(abs(s - want) > 1e-3 * max(abs(want), 1) for s in sums.values()):
        raise SystemExit(f"sums of what the tables give differ: {sums}")
    return {
        "dim": a.dim, "embeddings": a.embeddings, "torch_threads": a.torch_threads, "sums": sums, "measures": [{
            "side": name, "samples_per_second": len(table) / measure.median([r.seconds for r in runs]),
            "forward_samples_per_second": len(table) / measure.median([r.answer["forward"] for r in runs]),
            "seconds": [r.seconds for r in runs], "forward_seconds": [r.answer["forward"] for r in runs]
        } for name, runs in found.items()]
    }


def show(result: dict[str, Any]) -> None:
    for s in result["scans"]:
        print(f"\n{s['share']:.0%} of the features ({len(s['features'])}), {s['threads']} threads")
        for m in s["measures"]:
            print(
                f"  {m['side']:38} {m['samples_per_second']:12,.0f} samples/s {m['samples_per_cpu_second']:12,.0f} a "
                f"CPU second"
            )
        for c in s["costs"]:
            stall = c["stall"]
            print(
                f"  {c['output']:5} {c['python_ms_a_batch']:.3f} ms of Python a batch, {c['python_share']:.0%} of an "
                f"epoch; a consumer of "
                f"{stall['consumer_ms']:g} ms waits {stall['waited_seconds']:.3f} s of {stall['seconds']:.3f} s, "
                f"{stall['waited_for_first_seconds']:.3f} s of it for the first batch")
    if f := result["forward"]:
        print(f"\nEmbeddingBagCollection, dim {f['dim']}, {f['torch_threads']} threads of torch")
        for m in f["measures"]:
            print(
                f"  {m['side']:38} {m['samples_per_second']:12,.0f} samples/s, forward alone "
                f"{m['forward_samples_per_second']:,.0f}"
            )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    p.add_argument("--rows", type=int, help="rows of the table; default: the profile's 100,000")
    p.add_argument("--share", type=float, nargs="+", default=[0.1, 1.0], help="shares of the features to read")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads that read, of each engine")
    p.add_argument("--rounds", type=int, default=7, help="rounds that count; one more runs before")
    p.add_argument("--epochs", type=int, default=3, help="epochs a round")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--consumer-ms", type=float, default=1.0,
                   help="what the consumer whose waiting is measured takes a batch")
    p.add_argument("--dim", type=int, default=64, help="of the embeddings; 0: no forward pass")
    p.add_argument("--embeddings", type=int, default=100_000, help="rows of each embedding table")
    p.add_argument("--torch-threads", type=int, default=1, help="of the forward pass; one more thread reads")
    p.add_argument("--dir", default="out/pytorch", help="where the data lies; what is there already is used")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    a = p.parse_args()
    machine = measure.machine()
    data = measure.table(pathlib.Path(a.dir) / (f"small-{a.rows}" if a.rows else "small"), "small", a.rows)
    table = dsistore.open(data / "store").table("workload")
    result: dict[str, Any] = {
        "profile": "small", "batch_size": a.batch_size, "epochs_a_round": a.epochs, "scans": [], "forward": None
    }
    for share in a.share:
        result["scans"] += scans(a, data, table, share)
    if a.dim:
        result["forward"] = forward(a, data, table)
    show(result)
    measure.write(a.results, "pytorch", result, machine)


if __name__ == "__main__":
    main()
