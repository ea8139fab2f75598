"""What a batch costs on its way to a device, and how fast a model trains from it: pyarrow reading Parquet, and a
dsistore table as kjt, as kjt that the device expands, and as ikjt. In turns in one process; the rows of all are
compared first.

    PYTHONPATH=python/src python bench/pytorch/device.py --help

Measured are the bytes that cross the bus (of copies to the device, as the profiler saw them; without a device those of
the tensors), the time from next() to a ready KeyedJaggedTensor on the device (of a consumer that takes batches at once,
and of one that computes 20 ms between, so that the next batch can be made ahead), and samples/s of a DLRM that trains.

The model is TorchRec's DLRM with its dense, interaction and over arch. Its embeddings are one nn.EmbeddingBag for all
features: without fbgemm's kernels for CUDA (a wheel of half a gigabyte) EmbeddingBagCollection launches a kernel for
each feature. With ikjt lists are pooled once per slot, and rows take what was pooled (RecD).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import loader
import measure
import numpy as np
import pyarrow.parquet as pq
import torch
import training
from parquet import ParquetBatch, ParquetSide
from torch import nn
from torchrec.models import dlrm
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

import dsistore


class Ready(NamedTuple):
    """What a step of training takes, on the device."""

    rows: int
    dense: torch.Tensor
    labels: torch.Tensor
    kjt: KeyedJaggedTensor
    bytes: int  # of what was copied to the device


class Staged:
    """Batches of pyarrow in page-locked memory, made ahead by a thread: what a careful trainer does."""

    def __init__(self, side: ParquetSide, device: torch.device):
        self._side, self._device = side, device

    def __iter__(self) -> Iterator[Ready]:
        made: queue.Queue[Any] = queue.Queue(2)
        threading.Thread(target=self._make, args=(made,), daemon=True).start()
        while (b := made.get()) is not None:
            yield self._moved(*b)

    def _make(self, made: queue.Queue[Any]) -> None:
        pin = self._device.type == "cuda"
        for b in self._side:
            tensors = (b.dense, b.labels[:, 0].contiguous(), b.ids.values, b.ids.lengths, _offsets(b))
            per_key = b.ids.lengths.view(len(b.ids.keys), -1).sum(1).tolist()
            made.put((b, per_key, [t.pin_memory() for t in tensors] if pin else tensors))
        made.put(None)

    def _moved(self, b: ParquetBatch, per_key: list[int], tensors: list[torch.Tensor]) -> Ready:
        dense, labels, values, lengths, offsets = (t.to(self._device, non_blocking=True) for t in tensors)
        kjt = KeyedJaggedTensor(keys=b.ids.keys, values=values, lengths=lengths, offsets=offsets, stride=b.rows,
                                length_per_key=per_key)
        return Ready(b.rows, dense, labels, kjt, sum(t.nbytes for t in tensors))


def _offsets(b: ParquetBatch) -> torch.Tensor:
    out = torch.zeros(len(b.ids.lengths) + 1, dtype=torch.int32)
    torch.cumsum(b.ids.lengths, 0, dtype=torch.int32, out=out[1:])
    return out


class Stored:
    """Batches of a dsistore table. Without moves the dataset moves them; with it the consumer does, and so all lists
    that rows have cross the bus."""

    def __init__(self, data: Any, device: torch.device, moves: bool):
        self._data, self._device, self._moves = data, device, moves

    def __iter__(self) -> Iterator[Ready]:
        for b in self._data:
            if self._moves:
                b = b.to(self._device, non_blocking=True)
            yield Ready(b.rows, b.dense, b.labels[:, 0], b.sparse_features, len(b._block.bytes()))


class Bags(nn.Module):
    """One embedding bag for all features, which sums: [B, features, dim]."""

    def __init__(self, features: int, embeddings: int, dim: int):
        super().__init__()
        self._embeddings, self._dim = embeddings, dim
        self.bag = nn.EmbeddingBag(features * embeddings, dim, mode="sum", sparse=True, include_last_offset=True)

    def forward(self, kjt: KeyedJaggedTensor, rows: int) -> torch.Tensor:
        device, per_key = kjt.values().device, kjt.length_per_key()
        first = torch.arange(0, len(per_key) * self._embeddings, self._embeddings, device=device)
        ids = kjt.values() % self._embeddings + first.repeat_interleave(
            torch.tensor(per_key).to(device, non_blocking=True), output_size=sum(per_key))
        pooled = self.bag(ids, kjt.offsets().long())
        if (inverse := kjt.inverse_indices_or_none()) is not None:
            sizes = np.cumsum([0, *kjt.stride_per_key()[:-1]])
            at = inverse[1] + torch.from_numpy(sizes).to(device, non_blocking=True).unsqueeze(1)
            pooled = pooled.index_select(0, at.view(-1))
        return pooled.view(-1, rows, self._dim).transpose(0, 1)


class Model(nn.Module):
    """TorchRec's DLRM over Bags."""

    def __init__(self, dense: int, sparse: int, a: argparse.Namespace):
        super().__init__()
        self.bags = Bags(sparse, a.embeddings, a.dim)
        self.dense_arch = dlrm.DenseArch(dense, [512, 256, a.dim])
        self.inter_arch = dlrm.InteractionArch(sparse)
        self.over_arch = dlrm.OverArch(a.dim + sparse * (sparse + 1) // 2, [1024, 1024, 512, 256, 1])

    def forward(self, b: Ready) -> torch.Tensor:
        pooled = self.bags(b.kjt, b.rows)
        together = self.inter_arch(self.dense_arch(torch.log1p(b.dense.abs())), pooled)
        return nn.functional.binary_cross_entropy_with_logits(self.over_arch(together).squeeze(1), b.labels)


class Trainer:
    """Steps of training from the same weights at first."""

    def __init__(self, dense: int, sparse: int, a: argparse.Namespace, device: torch.device):
        torch.manual_seed(0)
        self._model = Model(dense, sparse, a).to(device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=a.rate)

    def __call__(self, b: Ready) -> torch.Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._model(b)
        loss.backward()
        self._optimizer.step()
        return loss.detach()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class OnDevice(NamedTuple):
    """What an epoch did on the device, as the profiler saw it."""

    bytes: int  # copied to it
    copy_ms: float
    kernel_ms: float


def on_device(side: Iterable[Ready], device: torch.device) -> OnDevice:
    """What it takes to bring an epoch to the device. Without one the bytes are those of the tensors."""
    if device.type != "cuda":
        return OnDevice(sum(b.bytes for b in side), 0, 0)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in side:
            pass
        synchronize(device)
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy" and "HtoD" in e["name"]]
    return OnDevice(sum(e["args"]["bytes"] for e in copies), sum(e["dur"] for e in copies) / 1e3,
                    sum(e["dur"] for e in events if e.get("cat") == "kernel") / 1e3)


def ready_times(side: Iterable[Ready], device: torch.device, pause: float) -> list[float]:
    """Milliseconds from next() to a ready KJT on the device, of every batch but the first."""
    out = []
    batches = iter(side)
    while True:
        time.sleep(pause)
        synchronize(device)
        begin = time.perf_counter()
        if next(batches, None) is None:
            return out[1:]
        synchronize(device)
        out.append(1e3 * (time.perf_counter() - begin))


def epoch(side: Iterable[Ready], device: torch.device) -> Callable[[], int]:
    """Reads an epoch onto the device; nothing is computed of it."""
    def run() -> int:
        rows = sum(b.rows for b in side)
        synchronize(device)
        return rows
    return run


def trained(side: Iterable[Ready], device: torch.device, trainer: Trainer) -> Callable[[], int]:
    """Trains an epoch."""
    def run() -> int:
        rows = 0
        for b in side:
            trainer(b)
            rows += b.rows
        synchronize(device)
        return rows
    return run


def same_losses(sides: dict[str, Iterable[Ready]], trainers: dict[str, Trainer]) -> dict[str, list[float]]:
    """The losses of the first steps from equal weights, by side."""
    out = {}
    for name, side in sides.items():
        batches = iter(side)
        out[name] = [float(trainers[name](next(batches))) for _ in range(3)]
    return out


def rows_of(side: Any, stored: bool) -> np.ndarray:
    """A hash of each row, of what came back from the device."""
    if stored:
        return loader.store_rows(b.map(lambda t: t.cpu()) for b in side)  # not `to`: lists are made on the device
    return loader.parquet_rows(side)


def shares(a: argparse.Namespace, data: pathlib.Path, table: dsistore.Table, device: torch.device
           ) -> Iterator[dict[str, Any]]:
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    for share in a.share:
        kinds = {f.name: f.kind for f in table.features(measure.projection(columns, share))}
        names = [n for n, kind in kinds.items() if kind in ("dense", "sparse")]
        sparse = [n for n in names if kinds[n] == "sparse"]

        def dataset(output: str, where: torch.device | None) -> Any:
            pin = device.type == "cuda"
            return table.torch(names, labels=measure.LABELS, batch_size=a.batch_size, output=output, workers=a.threads,
                               device=where, pin_memory=pin)

        parquet = ParquetSide(data / "clustered", names, measure.LABELS, a.batch_size, a.threads)
        data_of = {
            "dsistore kjt": Stored(dataset("kjt", None), device, True),
            "dsistore kjt, device expands": Stored(dataset("kjt", device), device, False),
            "dsistore ikjt": Stored(dataset("ikjt", device), device, False)
        }
        print(f"{share:.0%}: {len(sparse)} sparse and {len(names) - len(sparse)} dense features: comparing",
              file=sys.stderr)
        want = np.sort(rows_of(parquet, False))
        for name, side in data_of.items():
            if not np.array_equal(np.sort(rows_of(side._data, True)), want):
                raise SystemExit(f"{name}: rows differ from those of Parquet")
        sides: dict[str, Any] = {"Parquet (pyarrow) kjt": Staged(parquet, device), **data_of}

        out: dict[str, Any] = {"share": share, "sparse": len(sparse), "dense": len(names) - len(sparse),
                               "rows": len(want), "sides": {name: {} for name in sides}}
        trainers = {name: Trainer(len(names) - len(sparse), len(sparse), a, device) for name in sides}
        out["losses"] = same_losses(sides, trainers)
        stored = [v for k, v in out["losses"].items() if k in data_of]
        if not np.allclose(stored, stored[0], rtol=1e-3):
            raise SystemExit(f"losses differ: {out['losses']}")
        batches = {name: list(side) for name, side in sides.items()}
        runs = {
            "epoch": measure.rounds(a.rounds, {k: epoch(v, device) for k, v in sides.items()}),
            "train": measure.rounds(a.rounds, {k: trained(v, device, trainers[k]) for k, v in sides.items()}),
            # of batches that are there already
            "alone": measure.rounds(a.rounds, {k: trained(v, device, trainers[k]) for k, v in batches.items()})
        }
        for name, side in sides.items():
            of = out["sides"][name]
            of |= {"batches": len(batches[name]), **on_device(side, device)._asdict()}
            for pause in (0, a.consumer_ms):
                times = [t for _ in range(a.rounds) for t in ready_times(side, device, pause / 1e3)]
                of[f"ready_ms_{pause:g}"] = measure.median(times)
            for kind, found in runs.items():
                of[f"{kind}_seconds"] = [r.seconds for r in found[name]]
                of[f"{kind}_samples_per_second"] = len(want) / measure.median(of[f"{kind}_seconds"])
        del batches
        yield out


def show(result: dict[str, Any]) -> None:
    pause = result["consumer_ms"]
    for s in result["shares"]:
        print(f"\n{s['share']:.0%} of the features ({s['sparse']} sparse, {s['dense']} dense), {s['rows']:,} rows")
        print(f"  {'a batch:':30} {'KB':>7} {'copy, kernels, ms':>18} {'next() to ready, ms':>20} "
              f"{'samples/s: to the device':>26} {'training':>11} {'step alone':>11}")
        for name, m in s["sides"].items():
            n = m["batches"]
            print(f"  {name:30} {m['bytes'] / n / 1e3:7,.0f} {m['copy_ms'] / n:9.3f} {m['kernel_ms'] / n:8.3f} "
                  f"{m['ready_ms_0']:10.2f} {m[f'ready_ms_{pause:g}']:9.2f} {m['epoch_samples_per_second']:26,.0f} "
                  f"{m['train_samples_per_second']:11,.0f} {m['alone_samples_per_second']:11,.0f}")


def main() -> None:
    p = training.arguments(__doc__)
    p.add_argument("--consumer-ms", type=float, default=20, help="what a consumer computes between batches")
    a = p.parse_args()
    training.run(a, "pytorch-device", shares, show, consumer_ms=a.consumer_ms)


if __name__ == "__main__":
    main()
