"""Batches for TensorFlow: a tf.data.Dataset of RaggedTensors. PyTorch is not needed.

    data = table.tensorflow(["user_*", "age"], labels=["click"], batch_size=4096, shuffle="session", seed=7)
    for epoch in range(3):
        for batch in data.dataset():
            batch["age"], batch["click"]        # [B] float32
            batch["user_history"]               # RaggedTensor [B, None] of int64

The engine prefetches: the dataset needs no prefetch.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tensorflow as tf

from . import errors
from ._block import Block
from ._dataset import Dataset, Options
from ._epoch_start import EpochStart
from ._plan import TableRef
from ._rank import Rank, RankLookup
from .numpy import Masked, NumpyMaker, Ragged

__all__ = ["TensorflowDataset"]

TensorflowBatch = dict[str, Any]


def of_process() -> Rank | None:
    """The rank of this process in the cluster of tf.distribute's strategy in scope, chief first; None without one."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    if resolver is None or not (cluster := resolver.cluster_spec().as_dict()):
        return None
    chiefs, workers = len(cluster.get("chief", [])), len(cluster.get("worker", []))
    return Rank(resolver.task_id + (chiefs if resolver.task_type == "worker" else 0), chiefs + workers)


class TensorflowDataset(Dataset[TensorflowBatch]):
    """Training batches for TensorFlow, in an order that depends only on the arguments and the epoch. Made by
    Table.tensorflow. dataset() is a tf.data.Dataset; iterating this object itself gives the same batches, as eager
    tensors.

    A batch is a dict with each requested feature:

        a number or label               [B] float32
        among ``integers``              [B] int64, or uint64 if it is stored as such
        a key                           [B] int64, uint64, float32 or float64; null is 0
        a string, bytes, partition key  [B] tf.string; null is the empty string
        an id list, list of floats      RaggedTensor [B, None] of int64 or float32
        an embedding                    [B, dim] float32

    Some features are a dict instead: ``values``, and ``weights`` (another RaggedTensor) for a weighted list,
    ``present`` with ``presence=True``, and ``inverse`` ([B] int32) with ``dedup=True``, if rows share lists:
    ``tf.gather(part["values"], part["inverse"])`` has one list per row.

    rank and world_size, given together, default to the tf.distribute strategy in scope where dataset() is called, or
    where this object is iterated; else to 0 of 1. state_dict is exact only if nothing after dataset() reads ahead, such
    as prefetch or a parallel map.
    """

    _ask_rank = staticmethod(of_process)

    def __init__(self, table: TableRef, options: Options):
        if options.dedup == "partial":
            raise errors.UsageError("dedup 'partial': RaggedTensors have offsets, want False or True")
        super().__init__(table, options, EpochStart())
        self._asked = self._rank
        self._of: Rank | None = None  # the rank of what dataset() gave
        self._maker = NumpyMaker(self)
        expanded = {f["name"] for f in json.loads(self._plan.text)["features"] if f.get("expanded")}
        self._dedup = set() if options.dedup == "kjt" else {f["name"] for f in self._plan.features} - expanded
        self._specs = {f["name"]: self._spec(f) for f in self._plan.features}

    @property
    def element_spec(self) -> dict[str, Any]:
        """The types and shapes of a batch."""
        return self._specs

    def dataset(self, context: tf.distribute.InputContext | None = None) -> tf.data.Dataset:
        """A tf.data.Dataset of one epoch from the current position. Each iteration of it is an iteration of this
        object, with its state_dict and set_epoch.

        It gives the batches of this rank, and TensorFlow does not shard it further. context comes from tf.distribute:
        with ``strategy.distribute_datasets_from_function(data.dataset)`` each input pipeline is a rank. UsageError: the
        rank differs from that of an earlier call.
        """
        # Looked up here: tf.data reads in threads of its own, where no strategy is in scope.
        rank = self._asked.find() if context is None else Rank(context.input_pipeline_id, context.num_input_pipelines)
        if self._of not in (None, rank):
            raise errors.UsageError(
                f"dataset: it gave rank {self._of.rank} of {self._of.world}, and is asked for rank {rank.rank} of "
                f"{rank.world}: make another one with Table.tensorflow for each rank")
        self._of, self._rank = rank, RankLookup(*rank, of_process)
        out = tf.data.Dataset.from_generator(lambda: iter(self), output_signature=self._specs)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        options.experimental_optimization.inject_prefetch = False  # the state would be ahead of what was given
        return out.with_options(options)

    def _spec(self, f: dict[str, Any]) -> Any:
        name, kind, elem = f["name"], f["kind"], f["elem"]
        masked: dict[str, Any] = {"present": tf.TensorSpec([None], tf.bool)} if self._presence else {}
        key = f["role"].endswith("key")
        if kind in ("string", "bytes"):
            return tf.TensorSpec([None], tf.string)
        if kind in ("sparse", "weighted") and not key:
            def ragged(of: Any) -> Any:
                return tf.RaggedTensorSpec([None, None], of, row_splits_dtype=tf.int32)

            of = tf.float32 if elem in ("float32", "float64") and kind == "sparse" else tf.int64
            weights = {"weights": ragged(tf.float32)} if kind == "weighted" else {}
            inverse = {"inverse": tf.TensorSpec([None], tf.int32)} if name in self._dedup else {}
            return _alone({"values": ragged(of), **weights, **inverse, **masked})
        if kind == "embedding":
            return _alone({"values": tf.TensorSpec([None, f["dim"]], tf.float32), **masked})
        if key or name in self._integers:
            of = {"uint64": tf.uint64, "float32": tf.float32, "float64": tf.float64}.get(elem, tf.int64)
            return _alone({"values": tf.TensorSpec([None], of), **({} if key else masked)})
        return _alone({"values": tf.TensorSpec([None], tf.float32), **masked})

    def _make(self, block: Block) -> TensorflowBatch:
        parts = self._maker.make(block)
        return {name: self._tensors(name, part, block.rows) for name, part in parts.items()}

    def _tensors(self, name: str, part: Any, rows: int) -> Any:
        if isinstance(part, Ragged):
            def ragged(values: Any) -> tf.RaggedTensor:
                return tf.RaggedTensor.from_row_splits(values, part.offsets, validate=False)

            out = {"values": ragged(part.values)}
            if part.weights is not None:
                out["weights"] = ragged(part.weights)
            if name in self._dedup:
                inverse = np.arange(rows, dtype=np.int32) if part.inverse is None else part.inverse
                out["inverse"] = tf.convert_to_tensor(inverse)
            if part.present is not None:
                out["present"] = tf.convert_to_tensor(part.present)
            return _alone(out)
        if isinstance(part, Masked):
            return {"values": tf.convert_to_tensor(part.values), "present": tf.convert_to_tensor(part.present)}
        spec = self._specs[name]
        spec = spec["values"] if isinstance(spec, dict) else spec
        if part.dtype == object:  # strings, and numbers some of which are null
            part = [x if x is not None else "" if spec.dtype == tf.string else 0 for x in part.tolist()]
        values = tf.convert_to_tensor(part, spec.dtype)
        if isinstance(self._specs[name], dict):  # a weight of downsample, which is never null
            return {"values": values, "present": tf.ones([rows], tf.bool)}
        return values


def _alone(parts: dict[str, Any]) -> Any:
    """The values, where a part has nothing else."""
    return parts if len(parts) > 1 else parts["values"]
