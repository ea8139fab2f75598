"""Which modules of TorchRec honour deduplicated features: found by running those of torchrec 1.9.2 on a CPU
(test_check.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_KJT = 'Give its features with output="kjt", or from a dataset of their own'
_SHARD = "Shard it with a fused optimizer, or give its features with output=\"kjt\""


@dataclass(frozen=True)
class Support:
    """What one module does with KJTs in the variable-batch form.

    does is "honours" (results as with expanded lists), "ignores" (no error, but results for slots instead of rows),
    "refuses" (an error) or "unknown" (not tried). advice says why and what to do; it is mostly empty for "honours".
    """

    name: str  # in the model
    module: str  # its class
    does: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.name or '(the model)'} ({self.module}): {self.does}" + (f": {self.advice}"
                                                                               if self.advice else "")


def _sharded(module: Any) -> tuple[str, str]:
    """Sharded collections look up with a kernel a table. The dense one, which tables without a fused optimizer and
    replicated (data parallel) tables get, knows no variable batches on a CPU."""
    plan = getattr(module, "module_sharding_plan", None) or module._embedding_bag_collection.module_sharding_plan
    dense = [table for table, p in plan.items() if p.compute_kernel == "dense"]
    if dense and getattr(module, "_device", torch.device("cpu")).type == "cpu":
        return "refuses", (
            f"tables {', '.join(dense)} use the dense kernel, which takes no variable batches on a CPU. "
            "Give them a fused optimizer (apply_optimizer_in_backward before sharding) and do not replicate them. "
            f"{_KJT}")
    if getattr(module, "_use_index_dedup", False):
        return "unknown", f"use_index_dedup needs a GPU: it was not tried. {_KJT}"
    return "honours", ""


def _sharded_processed(module: Any) -> tuple[str, str]:
    if not module._is_collection:
        return "refuses", f"processors in a dict take no variable batches. Use a FeatureProcessorsCollection. {_KJT}"
    return _sharded(module)


def _processed(module: Any) -> tuple[str, str]:
    if isinstance(module._feature_processors, torch.nn.ModuleDict):
        return "ignores", (
            f"unsharded with a dict of processors it loses which row has which list, and pools wrong lists. {_KJT}")
    return "refuses", f"unsharded it gives each feature as many rows as it has slots. {_SHARD}"


def _sharded_collisions(module: Any) -> tuple[str, str]:
    does, advice = _sharded(module._embedding_module)
    return does, advice or "the ids of a list that rows share count once, for eviction too"


def _is(does: str, advice: str = "") -> Callable[[Any], tuple[str, str]]:
    return lambda module: (does, advice)


_KNOWN: dict[str, Callable[[Any], tuple[str, str]]] = {
    "torchrec.modules.embedding_modules.EmbeddingBagCollection": _is("honours"),
    "torchrec.modules.embedding_modules.EmbeddingCollection": _is(
        "ignores", f"unsharded it gives one list of embeddings a slot. {_SHARD}"),
    "torchrec.modules.fused_embedding_modules.FusedEmbeddingBagCollection": _is(
        "ignores", f"unsharded it pools one row a slot. {_SHARD}"),
    "torchrec.modules.fp_embedding_modules.FeatureProcessedEmbeddingBagCollection": _processed,
    "torchrec.modules.mc_embedding_modules.ManagedCollisionEmbeddingBagCollection": _is(
        "honours", "the ids of a list that rows share count once, for eviction too"),
    "torchrec.modules.mc_embedding_modules.ManagedCollisionEmbeddingCollection": _is(
        "ignores", f"it gives one list of embeddings a slot. {_KJT}"),
    "torchrec.quant.embedding_modules.EmbeddingBagCollection": _is(
        "ignores", f"it pools one row a slot. {_KJT}"), "torchrec.quant.embedding_modules.EmbeddingCollection": _is(
            "ignores", f"it gives one list of embeddings a slot. {_KJT}"),
    "torchrec.distributed.embeddingbag.ShardedEmbeddingBagCollection": _sharded,
    "torchrec.distributed.embedding.ShardedEmbeddingCollection": _sharded,
    "torchrec.distributed.fused_embeddingbag.ShardedFusedEmbeddingBagCollection": _sharded,
    "torchrec.distributed.fp_embeddingbag.ShardedFeatureProcessedEmbeddingBagCollection": _sharded_processed,
    "torchrec.distributed.mc_embeddingbag.ShardedManagedCollisionEmbeddingBagCollection": _sharded_collisions,
    "torchrec.distributed.mc_embedding.ShardedManagedCollisionEmbeddingCollection": _is(
        "refuses", f"managed collisions of sequences take no variable batches. {_KJT}"),
}

_UNKNOWN = f"it was not tried with variable batches: compare its results on both outputs first. {_KJT}"


def check(model: torch.nn.Module) -> list[Support]:
    """What each embedding module of a model does with deduplicated features (output="ikjt"), outermost modules only.

    It knows the modules of torchrec 1.9.2, as they do on a CPU, and subclasses as what they derive from. Other modules
    of torchrec that look like embeddings are "unknown"; modules of others are looked into.

        for support in dsistore.torch.check(model):
            print(support)
    """
    return list(_check("", model))


def _check(name: str, module: torch.nn.Module) -> Iterator[Support]:
    kind = type(module)
    for base in kind.__mro__:
        if (known := _KNOWN.get(f"{base.__module__}.{base.__qualname__}")) is not None:
            yield Support(name, kind.__name__, *known(module))
            return
    place, _, rest = kind.__module__.partition(".")
    if place == "torchrec" and rest.startswith(("modules.", "distributed.", "quant.")) and any(
            word in kind.__name__ for word in ("Embedding", "Collision")):
        yield Support(name, kind.__name__, "unknown", _UNKNOWN)
        return
    for child, m in module.named_children():
        yield from _check(f"{name}.{child}" if name else child, m)
