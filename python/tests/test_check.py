"""check() against what modules of torchrec do with a KJT in the variable-batch form, each of them run."""

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("torchrec")

from torchrec.distributed.embedding import EmbeddingCollectionSharder  # noqa: E402
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.fp_embeddingbag import FeatureProcessedEmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.fused_embeddingbag import FusedEmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder  # noqa: E402
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.sharding_plan import (  # noqa: E402
    column_wise, construct_module_sharding_plan, data_parallel, row_wise, table_wise,
)
from torchrec.distributed.types import ShardingEnv  # noqa: E402
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig  # noqa: E402
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection  # noqa: E402
from torchrec.modules.embedding_tower import EmbeddingTower  # noqa: E402
from torchrec.modules.feature_processor_ import PositionWeightedModule, PositionWeightedModuleCollection  # noqa: E402
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection  # noqa: E402
from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection  # noqa: E402
from torchrec.modules.mc_embedding_modules import (  # noqa: E402
    ManagedCollisionEmbeddingBagCollection, ManagedCollisionEmbeddingCollection,
)
from torchrec.modules.mc_modules import (  # noqa: E402
    DistanceLFU_EvictionPolicy, ManagedCollisionCollection, MCHManagedCollisionModule,
)
from torchrec.quant.embedding_modules import EmbeddingBagCollection as QuantEmbeddingBagCollection  # noqa: E402
from torchrec.quant.embedding_modules import EmbeddingCollection as QuantEmbeddingCollection  # noqa: E402
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor  # noqa: E402

from dsistore.torch import check  # noqa: E402

CPU = torch.device("cpu")
IDS = 50


def plain():
    """Four rows: three share their list of a."""
    return KeyedJaggedTensor(
        keys=["a", "b"], values=torch.tensor([1, 2, 1, 2, 3, 1, 2, 4, 5, 6, 7]),
        lengths=torch.tensor([2, 2, 1, 2, 1, 1, 1, 1], dtype=torch.int32))


def deduplicated():
    """The same four rows."""
    return KeyedJaggedTensor(keys=["a", "b"], values=torch.tensor([1, 2, 3, 4, 5, 6, 7]), lengths=torch.tensor(
        [2, 1, 1, 1, 1, 1], dtype=torch.int32), stride_per_key_per_rank=[[2], [4]],
                             inverse_indices=(["a", "b"], torch.tensor([[0, 0, 1, 0], [0, 1, 2, 3]])))


def tables(config, **options):
    torch.manual_seed(0)
    return [config(name=f"t_{k}", embedding_dim=8, num_embeddings=IDS, feature_names=[k], **options) for k in "ab"]


def bags(**options):
    return EmbeddingBagCollection(tables(EmbeddingBagConfig), **options)


def sequences():
    return EmbeddingCollection(tables(EmbeddingConfig))


def fused_bags():
    configs = tables(EmbeddingBagConfig,
                     init_fn=lambda t: torch.nn.init.uniform_(t, generator=torch.Generator().manual_seed(1)))
    return FusedEmbeddingBagCollection(configs, optimizer_type=torch.optim.SGD, optimizer_kwargs={"lr": 0.1},
                                       device=CPU)


def processed_by_dict():
    return FeatureProcessedEmbeddingBagCollection(
        bags(is_weighted=True), {k: PositionWeightedModule(max_feature_length=5) for k in "ab"})


def processed():
    return FeatureProcessedEmbeddingBagCollection(
        bags(is_weighted=True), PositionWeightedModuleCollection(max_feature_lengths={k: 5 for k in "ab"}))


def collisions(configs):
    return ManagedCollisionCollection(
        managed_collision_modules={
            f"t_{k}": MCHManagedCollisionModule(zch_size=IDS, device=CPU, input_hash_size=1000, eviction_interval=2,
                                                eviction_policy=DistanceLFU_EvictionPolicy())
            for k in "ab"
        }, embedding_configs=configs)


def collision_bags():
    return ManagedCollisionEmbeddingBagCollection(inner := bags(), collisions(inner.embedding_bag_configs()))


def collision_sequences():
    return ManagedCollisionEmbeddingCollection(inner := sequences(), collisions(inner.embedding_configs()))


def quantized(make, kind):
    module = make()
    observer = torch.ao.quantization.PlaceholderObserver
    module.qconfig = torch.ao.quantization.QConfig(activation=observer, weight=observer.with_args(dtype=torch.qint8))
    return kind.from_float(module)


@pytest.fixture(scope="module")
def group():
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def sharded(make, sharder, how, kernel):
    module = make()
    plan = construct_module_sharding_plan(
        module, {k: how for k in sharder.shardable_parameters(module)}, sharder=sharder, local_size=1, world_size=1,
        device_type="cpu")
    for p in plan.values():
        p.compute_kernel = kernel
    return sharder.shard(module, plan, ShardingEnv.from_process_group(dist.group.WORLD), device=CPU)


def run(module, kjt):
    """The result as {feature: tensors}."""
    out = module(kjt)
    out = out.wait() if hasattr(out, "wait") else out
    out = out[0] if isinstance(out, tuple) else out  # managed collisions also give the ids
    out = out.wait() if hasattr(out, "wait") else out
    out = out if isinstance(out, dict) else out.to_dict()
    return {k: (v,) if isinstance(v, torch.Tensor) else (v.values(), v.lengths()) for k, v in out.items()}


def observed(make):
    want = run(make(), plain())
    try:
        got = run(make(), deduplicated())
    except (RuntimeError, AssertionError):
        return "refuses"
    same = want.keys() == got.keys() and all(
        x.shape == y.shape and torch.allclose(x.float(), y.float(), atol=1e-5)
        for k in want for x, y in zip(want[k], got[k], strict=True))
    return "honours" if same else "ignores"


@pytest.mark.parametrize("does, make", [
    ("honours", bags),
    ("ignores", sequences),
    ("ignores", fused_bags),
    ("ignores", processed_by_dict),
    ("refuses", processed),
    ("honours", collision_bags),
    ("ignores", collision_sequences),
    ("ignores", lambda: quantized(bags, QuantEmbeddingBagCollection)),
    ("ignores", lambda: quantized(sequences, QuantEmbeddingCollection)),
])
def test_modules(does, make):
    [support] = check(make())
    assert observed(make) == does == support.does
    assert does == "honours" or "kjt" in support.advice


BY_TABLE, BY_ROW, BY_COLUMN, REPLICATED = table_wise(rank=0), row_wise(), column_wise(ranks=[0, 0]), data_parallel()
BAGS, SEQUENCES = EmbeddingBagCollectionSharder, EmbeddingCollectionSharder
PROCESSED = FeatureProcessedEmbeddingBagCollectionSharder


@pytest.mark.parametrize("does, make, sharder, hows, kernel", [
    ("honours", bags, BAGS, [BY_TABLE, BY_ROW, BY_COLUMN], "fused"),
    ("refuses", bags, BAGS, [BY_TABLE, BY_ROW, BY_COLUMN, REPLICATED], "dense"),
    ("honours", sequences, SEQUENCES, [BY_TABLE, BY_ROW, BY_COLUMN], "fused"),
    ("honours", fused_bags, FusedEmbeddingBagCollectionSharder, [BY_TABLE, BY_ROW, BY_COLUMN], "fused"),
    ("refuses", processed_by_dict, PROCESSED, [BY_TABLE, BY_ROW, BY_COLUMN], "fused"),
    ("honours", processed, PROCESSED, [BY_TABLE, BY_ROW, BY_COLUMN], "fused"),
    ("refuses", processed, PROCESSED, [BY_TABLE, REPLICATED], "dense"),
    ("honours", collision_bags, ManagedCollisionEmbeddingBagCollectionSharder, [BY_ROW], "fused"),
    ("refuses", collision_sequences, ManagedCollisionEmbeddingCollectionSharder, [BY_ROW], "fused"),
])
def test_sharded_modules(group, does, make, sharder, hows, kernel):
    for how in hows:
        made = lambda: sharded(make, sharder(), how, kernel)  # noqa: E731, B023
        [support] = check(made())
        assert observed(made) == does == support.does
        assert does == "honours" or "kjt" in support.advice


def test_sharded_sequences_need_a_fused_kernel_for_either_output(group):
    module = sharded(sequences, SEQUENCES(), BY_TABLE, "dense")
    with pytest.raises(RuntimeError, match="split_sizes"):
        run(module, plain())
    assert check(module)[0].does == "refuses"


def test_a_model(group):
    class Bags(EmbeddingBagCollection):
        pass

    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = Bags(tables(EmbeddingBagConfig))
            self.collisions = collision_bags()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.sequences = sequences()
            self.over = torch.nn.Linear(3, 1)
            self.tower = EmbeddingTower(bags(), torch.nn.Linear(3, 1))

    found = check(Model())
    assert [(s.name, s.module, s.does) for s in found] == [
        ("inner.bags", "Bags", "honours"),
        ("inner.collisions", "ManagedCollisionEmbeddingBagCollection", "honours"),
        ("sequences", "EmbeddingCollection", "ignores"),
        ("tower", "EmbeddingTower", "unknown"),
    ]
    assert str(found[0]) == "inner.bags (Bags): honours" and "not tried" in str(found[3])
    assert check(torch.nn.Linear(3, 1)) == []
