"""How fast TorchRec's own training loop goes, by what it reads: its DLRM, sharded by DistributedModelParallel over one
rank with fbgemm's fused kernels, in a TrainPipelineSparseDist. Batches come from pyarrow reading Parquet, and from a
dsistore table as kjt, as kjt that the device expands, and as ikjt. In turns in one process; the losses of all are
compared first.

    PYTHONPATH=python/src python bench/pytorch/sharded.py --help

Measured are samples/s of an epoch with reading, and of batches that are on the device already: the second says what the
model itself gains from a form (RecD's trainer gain).
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import measure
import numpy as np
import pyarrow.parquet as pq
import torch
import torch.distributed as dist
import training
from parquet import ParquetBatch, ParquetSide
from torch import nn
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, table_wise
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist
from torchrec.distributed.types import ShardingPlan
from torchrec.models import dlrm
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor
from torchrec.streamable import Pipelineable

import dsistore


@dataclass
class Step(Pipelineable):
    """What a step of training takes, of pyarrow's batches; dsistore's have these names too."""

    dense_features: torch.Tensor
    sparse_features: KeyedJaggedTensor
    labels: torch.Tensor

    def to(self, device: torch.device, non_blocking: bool = False) -> Step:
        return Step(self.dense_features.to(device, non_blocking=non_blocking),
                    self.sparse_features.to(device, non_blocking=non_blocking),
                    self.labels.to(device, non_blocking=non_blocking))

    def record_stream(self, stream: Any) -> None:
        for part in (self.dense_features, self.sparse_features, self.labels):
            part.record_stream(stream)

    def pin_memory(self) -> Step:
        return Step(self.dense_features.pin_memory(), self.sparse_features.pin_memory(), self.labels.pin_memory())


class Staged:
    """Batches of pyarrow, in page-locked memory where a device is to have them, made ahead by a thread: what a careful
    trainer does."""

    def __init__(self, side: ParquetSide, pin: bool):
        self._side, self._pin = side, pin

    def __iter__(self) -> Iterator[Step]:
        made: queue.Queue[Step | None] = queue.Queue(2)
        threading.Thread(target=self._make, args=(made,), daemon=True).start()
        while (step := made.get()) is not None:
            yield step

    def _make(self, made: queue.Queue[Step | None]) -> None:
        for b in self._side:
            step = _step(b)
            made.put(step.pin_memory() if self._pin else step)
        made.put(None)


def _step(b: ParquetBatch) -> Step:
    offsets = torch.zeros(len(b.ids.lengths) + 1, dtype=torch.int32)
    torch.cumsum(b.ids.lengths, 0, dtype=torch.int32, out=offsets[1:])
    return Step(b.dense, KeyedJaggedTensor(
        keys=b.ids.keys, values=b.ids.values, lengths=b.ids.lengths, offsets=offsets, stride=b.rows,
        length_per_key=b.ids.lengths.view(len(b.ids.keys), -1).sum(1).tolist()), b.labels[:, 0].contiguous())


class Model(nn.Module):
    """TorchRec's DLRM. forward gives the loss, and what pipelines hand on."""

    def __init__(self, dense: int, sparse: list[str], a: argparse.Namespace, device: torch.device):
        super().__init__()
        self._sparse, self._dim = len(sparse), a.dim
        self.bags = EmbeddingBagCollection(device=torch.device("meta"), tables=[
            EmbeddingBagConfig(name=f"t_{k}", embedding_dim=a.dim, num_embeddings=a.embeddings, feature_names=[k])
            for k in sparse])
        self.dense_arch = dlrm.DenseArch(dense, [512, 256, a.dim], device)
        self.inter_arch = dlrm.InteractionArch(len(sparse))
        self.over_arch = dlrm.OverArch(
            a.dim + len(sparse) * (len(sparse) + 1) // 2, [1024, 1024, 512, 256, 1], device)

    def forward(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        pooled = self.bags(batch.sparse_features).values().view(-1, self._sparse, self._dim)
        together = self.inter_arch(self.dense_arch(torch.log1p(batch.dense_features.abs())), pooled)
        loss = nn.functional.binary_cross_entropy_with_logits(self.over_arch(together).squeeze(1), batch.labels)
        return loss, loss.detach()


class Trainer:
    """A model, sharded over one rank, and the pipeline that trains it. All begin with the same weights."""

    def __init__(self, dense: int, sparse: list[str], a: argparse.Namespace, device: torch.device):
        torch.manual_seed(0)
        model = Model(dense, sparse, a, device)
        apply_optimizer_in_backward(torch.optim.SGD, model.bags.parameters(), {"lr": a.rate})
        sharder = EmbeddingBagCollectionSharder()
        plan = construct_module_sharding_plan(
            model.bags, {t: table_wise(rank=0) for t in sharder.shardable_parameters(model.bags)}, sharder=sharder,
            local_size=1, world_size=1, device_type=device.type)
        for p in plan.values():
            p.compute_kernel = "fused"
        sharded = DistributedModelParallel(model, device=device, plan=ShardingPlan(plan={"bags": plan}),
                                           sharders=[sharder])
        rest = {n: p for n, p in sharded.named_parameters() if "bags" not in n}
        optimizer = KeyedOptimizerWrapper(rest, lambda params: torch.optim.SGD(params, lr=a.rate))
        self._pipeline = TrainPipelineSparseDist(sharded, optimizer, device)

    def train(self, side: Iterable[Any], steps: int | None = None) -> list[torch.Tensor]:
        """Trains on the first steps of an epoch, or on all of it, and returns the losses."""
        batches, out = iter(side), []
        for _ in range(steps) if steps else itertools.count():
            try:
                out.append(self._pipeline.progress(batches))
            except StopIteration:
                break
        return out


def trained(trainer: Trainer, side: Iterable[Any], device: torch.device) -> Callable[[], int]:
    """Trains an epoch."""
    def run() -> int:
        steps = len(trainer.train(side))
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return steps
    return run


def sums(side: Iterable[Any]) -> np.ndarray:
    """What an epoch of expanded lists has: rows, ids, their sum, and those of labels and dense features."""
    return np.sum([[len(b.labels), b.sparse_features.values().numel(), int(b.sparse_features.values().sum()),
                    float(b.labels.sum()), float(b.dense_features.double().sum())] for b in side], 0)


def shares(a: argparse.Namespace, data: pathlib.Path, table: dsistore.Table, device: torch.device
           ) -> Iterator[dict[str, Any]]:
    columns = pq.read_schema(data / "clustered" / "part-00000.parquet").names
    for share in a.share:
        kinds = {f.name: f.kind for f in table.features(measure.projection(columns, share))}
        names = [n for n, kind in kinds.items() if kind in ("dense", "sparse")]
        sparse = [n for n in names if kinds[n] == "sparse"]
        on_gpu = device.type == "cuda"

        def dataset(output: str, where: torch.device | None) -> Any:
            return table.torch(names, labels=measure.LABELS[0], batch_size=a.batch_size, output=output,
                               workers=a.threads, device=where, pin_memory=on_gpu,
                               transforms={k: f"mod({a.embeddings})" for k in sparse})

        sides: dict[str, Iterable[Any]] = {
            "Parquet (pyarrow) kjt": Staged(ParquetSide(data / "clustered", names, measure.LABELS, a.batch_size,
                                                        a.threads, modulus=a.embeddings), on_gpu),
            "dsistore kjt": dataset("kjt", None),
            "dsistore kjt, device expands": dataset("kjt", device),
            "dsistore ikjt": dataset("ikjt", device),
        }
        print(f"{share:.0%}: {len(sparse)} sparse and {len(names) - len(sparse)} dense features: comparing",
              file=sys.stderr)
        want, *others = [sums(side) for name, side in sides.items() if "ikjt" not in name]
        if not all(np.allclose(o, want) for o in others):
            raise SystemExit(f"not the same rows: {want}, {others}")
        trainers = {name: Trainer(len(names) - len(sparse), sparse, a, device) for name in sides}
        losses = {name: [float(x) for x in trainers[name].train(sides[name], 3)] for name in sides}
        stored = [v for name, v in losses.items() if name.startswith("dsistore")]
        if not np.allclose(stored, stored[0], rtol=1e-3):
            raise SystemExit(f"losses differ: {losses}")
        batches = {name: [b.to(device) for b in side] for name, side in sides.items()}
        found = {
            "train": measure.rounds(a.rounds, {k: trained(trainers[k], v, device) for k, v in sides.items()}),
            # of batches that are there already
            "alone": measure.rounds(a.rounds, {k: trained(trainers[k], v, device) for k, v in batches.items()})
        }
        out: dict[str, Any] = {"share": share, "sparse": len(sparse), "dense": len(names) - len(sparse),
                               "rows": int(want[0]), "losses": losses, "sides": {name: {} for name in sides}}
        for kind, runs in found.items():
            for name, of in runs.items():
                if len({r.answer for r in of}) != 1 or of[0].answer != len(batches[name]):
                    raise SystemExit(f"{name}: {[r.answer for r in of]} steps an epoch")
                seconds = [r.seconds for r in of]
                out["sides"][name] |= {f"{kind}_seconds": seconds,
                                       f"{kind}_samples_per_second": out["rows"] / measure.median(seconds)}
        del batches, trainers
        yield out


def show(result: dict[str, Any]) -> None:
    for s in result["shares"]:
        print(f"\n{s['share']:.0%} of the features ({s['sparse']} sparse, {s['dense']} dense), {s['rows']:,} rows")
        print(f"  {'samples/s':30} {'training':>11} {'step alone':>11}")
        for name, m in s["sides"].items():
            print(f"  {name:30} {m['train_samples_per_second']:11,.0f} {m['alone_samples_per_second']:11,.0f}")


def main() -> None:
    a = training.arguments(__doc__).parse_args()
    backend = "nccl" if torch.device(a.device).type == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    training.run(a, "pytorch-sharded", shares, show)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
