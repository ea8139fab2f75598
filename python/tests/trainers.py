"""Training of one model in the ways that TorchRec has, each giving its losses. Module level, so that spawned processes
find it."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, data_parallel, row_wise, table_wise
from torchrec.distributed.train_pipeline import TrainPipelineBase, TrainPipelineSparseDist
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.keyed import KeyedOptimizerWrapper

import dsistore

LISTS = ["user_list", "user_history", "item_list"]
BUCKETS = 1000
STEPS = 6
RATE = 0.5


def bags(keys, **options):
    """One table a feature; the same weights in every process."""
    torch.manual_seed(1)
    return EmbeddingBagCollection(tables=[
        EmbeddingBagConfig(name=f"t_{k}", embedding_dim=8, num_embeddings=BUCKETS, feature_names=[k]) for k in keys
    ], **options)


class Model(torch.nn.Module):
    """Reads of a batch what TorchRec's models read: attributes. forward gives (loss, (loss, logits, labels)), as
    DLRMTrain's."""

    def __init__(self):
        super().__init__()
        self.bags = bags(LISTS)
        self.weighted_bags = bags(["scored"], is_weighted=True)
        torch.manual_seed(2)
        self.over = torch.nn.Linear(8 * 4 + 2, 1)
        self.loss = torch.nn.BCEWithLogitsLoss()

    def forward(self, batch):
        pooled = self.bags(batch.sparse_features).to_dict()
        weighted = self.weighted_bags(batch.weighted_features).to_dict()
        logits = self.over(torch.cat([*(pooled[k] for k in LISTS), weighted["scored"], batch.dense_features],
                                     dim=1)).squeeze(1)
        loss = self.loss(logits, batch.labels)
        return loss, (loss.detach(), logits.detach(), batch.labels.detach())


def data(uri, output, rank=0, world=1, **options):
    return dsistore.open(uri).table("ads").torch(
        [*LISTS, "scored", "dense_a", "dense_b"], labels="click", batch_size=64, shuffle="session", seed=5,
        output=output, transforms={**{k: f"hash({BUCKETS})"
                                      for k in [*LISTS, "scored"]}, "dense_b": "log1p"}, rank=rank, world_size=world,
        **options)


def plain_losses(uri, output, world=1):
    """The losses of an ordinary loop over the batches that a world of this size takes in a step."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    its = [iter(data(uri, output, r, world)) for r in range(world)]
    for _ in range(STEPS):
        optimizer.zero_grad()
        step = []
        for it in its:
            loss, _ = model(next(it))
            (loss / world).backward()
            step.append(loss.item())
        optimizer.step()
        losses.append(step)
    return losses


def base_losses(uri, output, **options):
    """TrainPipelineBase over the dataset."""
    model = Model()
    pipeline = TrainPipelineBase(model, torch.optim.SGD(model.parameters(), lr=RATE), torch.device("cpu"), **options)
    it = iter(data(uri, output))
    return [[pipeline.progress(it)[0].item()] for _ in range(STEPS)]


def _load(model, whole):
    """Gives a sharded model the weights that an unsharded one has."""
    for name, t in model.state_dict().items():
        shards = t.local_shards() if isinstance(t, ShardedTensor) else []
        for shard in shards:
            (row, column), (rows, columns) = shard.metadata.shard_offsets, shard.metadata.shard_sizes
            shard.tensor.detach().copy_(whole[name][row: row + rows, column: column + columns])
        if not isinstance(t, ShardedTensor):
            t.copy_(whole[name])


def sharded_losses(uri, output, sharding, rank, world, **options):
    """This rank's losses with DistributedModelParallel and TrainPipelineSparseDist; the whole plan's, if it has only
    STEPS."""
    device = torch.device("cpu")
    model = Model()
    whole = {k: v.clone() for k, v in model.state_dict().items()}
    if sharding != "data_parallel":
        for part in (model.bags, model.weighted_bags):
            apply_optimizer_in_backward(torch.optim.SGD, part.parameters(), {"lr": RATE})
    sharder = EmbeddingBagCollectionSharder()
    how = {
        "table_wise": lambda i: table_wise(rank=i % world), "row_wise": lambda i: row_wise(),
        "data_parallel": lambda i: data_parallel(),
    }[sharding]
    modules = {}
    for name in ("bags", "weighted_bags"):
        part = getattr(model, name)
        tables = sorted(sharder.shardable_parameters(part))
        modules[name] = construct_module_sharding_plan(part, {t: how(i)
                                                              for i, t in enumerate(tables)}, sharder=sharder,
                                                       local_size=world, world_size=world, device_type="cpu")
        if sharding != "data_parallel":
            for p in modules[name].values():
                p.compute_kernel = "fused"
    plan = ShardingPlan(plan=modules)
    model = DistributedModelParallel(model, device=device, plan=plan, sharders=[sharder])
    _load(model, whole)
    dense = [(n, p) for n, p in model.named_parameters() if sharding == "data_parallel" or "over" in n]
    optimizer = KeyedOptimizerWrapper(dict(dense), lambda params: torch.optim.SGD(params, lr=RATE))
    pipeline = TrainPipelineSparseDist(model, optimizer, device)
    it = iter(data(uri, output, rank, world, **options))
    losses = [pipeline.progress(it)[0].item() for _ in range(STEPS)]
    assert pipeline._pipelined_modules or sharding == "data_parallel"
    return losses


def rank_main(rank, world, uri, rendezvous, cases, results):
    """A spawned rank: runs the cases one after the other and puts (rank, case, losses)."""
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    for case in cases:
        results.put((rank, case, sharded_losses(uri, *case, rank, world)))
    dist.barrier()
    dist.destroy_process_group()
