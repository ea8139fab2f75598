"""A batch of tensors, and its KeyedJaggedTensors."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from . import kjt
from .lists import BatchLists, DedupGroup, Jagged

if TYPE_CHECKING:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor


@dataclass(eq=False)
class Batch:
    """One batch: B rows. TorchRec's train pipelines and models take it as it is: it is Pipelineable, and has what
    torchrec.datasets.utils.Batch has (dense_features, sparse_features, labels), and weighted_features. Tensors share
    the engine's memory, which is given back when the last of them is gone.

    Each feature that was asked for is in one of the parts, once.

    dense is [B, D] float32, its columns ``dense_names``; labels [B, L] float32, its columns ``label_names``, or [B]
    where one label was asked for by a string and not by a list; embeddings are [B, dim] each. integers are the features
    of ``integers=``, [B] int64 each, or uint64 where they are stored so. Null is 0. sparse, weighted and floats hold
    the lists, in a tensor each of lengths and values of a kind: the same features in the same order in every batch of a
    plan. With output="ikjt" groups say which of them share an inverse in this batch. Other properties give them as
    KeyedJaggedTensors over the same memory, made at first use on the device where the batch is then: ask for them after
    ``to``. keys are the other keys among the features (session, request, user, time), strings, bytes and partition
    keys, exactly: a tensor [B] of int64, uint64, float32 or float64 where they are numbers without null, as wide as
    that holds them; else a list of numbers, str or bytes, None for null. dense_present and labels_present, of the
    shapes of dense and labels, and embeddings_present and integers_present, [B] each, are bool: False where the value
    is null. Like Jagged.present they come with ``presence=True`` only; without it they are None and empty.
    sample_weight, [B] float32, is what each row counts, with ``downsample``; else None.
    """

    index: int
    epoch: int
    rows: int
    dense_names: list[str]
    dense: torch.Tensor
    label_names: list[str]
    labels: torch.Tensor
    lists: BatchLists
    embeddings: dict[str, torch.Tensor] = field(default_factory=dict)
    integers: dict[str, torch.Tensor] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    dense_present: torch.Tensor | None = None
    labels_present: torch.Tensor | None = None
    sample_weight: torch.Tensor | None = None
    embeddings_present: dict[str, torch.Tensor] = field(default_factory=dict)
    integers_present: dict[str, torch.Tensor] = field(default_factory=dict)
    # KJTs that were asked for, and the streams that use the batch: those must also know of tensors that are made later.
    _made: dict[tuple[str, bool, bool], KeyedJaggedTensor] = field(default_factory=dict, init=False, repr=False)
    _streams: list[Any] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        _join_pipelineable()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}, "_streams": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _join_pipelineable()

    def map(self, f: Any) -> Batch:
        """The batch with f applied to every tensor."""
        return replace(self, dense=f(self.dense), labels=f(self.labels), lists=self.lists.map(f), embeddings={
            k: f(v)
            for k, v in self.embeddings.items()
        }, integers={k: f(v)
                     for k, v in self.integers.items()}, keys={
                         k: f(v) if isinstance(v, torch.Tensor) else v
                         for k, v in self.keys.items()
                     }, dense_present=None if self.dense_present is None else f(self.dense_present),
                       labels_present=None if self.labels_present is None else f(self.labels_present),
                       sample_weight=None if self.sample_weight is None else f(self.sample_weight), embeddings_present={
                           k: f(v)
                           for k, v in self.embeddings_present.items()
                       }, integers_present={k: f(v)
                                            for k, v in self.integers_present.items()},
                       )

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """The batch on a device. One int32 inverse per group travels: KJTs are made anew there."""
        return self.map(lambda t: t.to(device=device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """A copy in page-locked memory, from which ``to(device, non_blocking=True)`` does not wait."""
        return self.map(lambda t: t.pin_memory())

    def record_stream(self, stream: Any) -> None:
        """Says that a stream uses the tensors, so that their memory is not used anew before it is through: also those
        of KJTs that are made before or after."""
        def record(t: torch.Tensor) -> torch.Tensor:
            t.record_stream(stream)
            return t

        self.map(record)
        for made in self._made.values():
            kjt.record_stream(made, stream)
        self._streams.append(stream)

    @property
    def sparse(self) -> Jagged:
        """The id lists."""
        return self.lists.sparse

    @property
    def weighted(self) -> Jagged:
        """The weighted lists."""
        return self.lists.weighted

    @property
    def floats(self) -> Jagged:
        """The lists of float numbers."""
        return self.lists.floats

    @property
    def groups(self) -> list[DedupGroup]:
        """Which features share an inverse in this batch. Empty with output="kjt"."""
        return self.lists.groups()

    # Attributes rather than methods, because TrainPipelineSparseDist follows attributes of the batch through a traced
    # model.

    @property
    def dense_features(self) -> torch.Tensor:
        """dense, by TorchRec's name."""
        return self.dense

    @property
    def sparse_features(self) -> KeyedJaggedTensor:
        """All id lists as one KJT, its keys in the order of the request, those of ``expand`` last. With output="ikjt"
        it is in the variable-batch form in every batch, with identity rows for features whose rows share nothing there,
        and for those of ``expand`` (an ordinary KJT where these are all)."""
        return self._kjt("sparse", dedup=True, plain=True)

    @property
    def dedup_sparse_features(self) -> KeyedJaggedTensor:
        """The id lists but for those of ``expand`` as a KJT in the variable-batch form; without keys with
        output="kjt"."""
        return self._kjt("sparse", dedup=True)

    @property
    def plain_sparse_features(self) -> KeyedJaggedTensor:
        """The id lists of ``expand``, all with output="kjt", as an ordinary KJT."""
        return self._kjt("sparse", plain=True)

    @property
    def weighted_features(self) -> KeyedJaggedTensor:
        """All weighted lists as one KJT with weights: see sparse_features."""
        return self._kjt("weighted", dedup=True, plain=True)

    @property
    def dedup_weighted_features(self) -> KeyedJaggedTensor:
        """The weighted lists but for those of ``expand``: see dedup_sparse_features."""
        return self._kjt("weighted", dedup=True)

    @property
    def plain_weighted_features(self) -> KeyedJaggedTensor:
        """The weighted lists of ``expand``: see plain_sparse_features."""
        return self._kjt("weighted", plain=True)

    def _kjt(self, part: str, dedup: bool = False, plain: bool = False) -> KeyedJaggedTensor:
        """A KJT of one part: of the lists that may be deduplicated, of those that never are, or of both. It is made
        once."""
        made = self._made.get((part, dedup, plain))
        if made is None:
            lists: Jagged = getattr(self.lists, part)
            if dedup and lists.dedup:
                made = kjt.variable(lists, self.lists.inverses, self.rows, len(lists.keys) if plain else lists.dedup)
            else:
                made = kjt.plain(lists, self.rows, lists.dedup if plain else len(lists.keys))
            for stream in self._streams:
                kjt.record_stream(made, stream)
            self._made[part, dedup, plain] = made
        return made


def _join_pipelineable() -> None:
    """TorchRec's pipelines take instances of Pipelineable alone. To import it takes seconds, so that only those pay for
    it who use TorchRec anyway."""
    streamable = sys.modules.get("torchrec.streamable")
    if (base := getattr(streamable, "Pipelineable", None)) is not None:
        base.register(Batch)
