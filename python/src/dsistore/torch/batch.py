"""A batch of tensors, and its KeyedJaggedTensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import torch

from . import kjt
from .._block import TEXTS, listed, texts
from .block import TensorBlock, unpacked
from .lists import DedupGroup, Jagged, Map, expanded, jagged, of_features

if TYPE_CHECKING:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

T = TypeVar("T")


@dataclass(frozen=True)
class Features:
    """What a dataset knows of the features of all its batches."""

    names: list[str]  # of the plan's features
    dense: list[str]
    labels: list[str]
    lists: dict[str, list[str]]  # by kind
    integers: frozenset[str]
    columns: list[tuple[int, str, str, str]]  # of the exact columns: their places, names, kinds and types of numbers
    one_label: bool  # labels come as [B]
    weighted: bool  # the last column of the labels is the rows' weights
    presence: bool
    expands: bool  # blocks keep slots, and lists come one per row


_ABSENT = object()


class _Part(Generic[T]):
    """A part of a batch, which is made when it is first asked for. A part that is assigned to stays what it was set
    to, also where the batch is moved."""

    def __init__(self, make: Callable[[Batch], T]):
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, batch: None, owner: type) -> _Part[T]: ...
    @overload
    def __get__(self, batch: Batch, owner: type) -> T: ...
    def __get__(self, batch: Batch | None, owner: type) -> T | _Part[T]:
        if batch is None:
            return self
        made = batch._parts.get(self._name, _ABSENT)
        if made is _ABSENT:
            made = self._make(batch)
            for stream in batch._streams:
                _record(made, stream)
            batch._parts[self._name] = made
        return cast(T, made)

    def __set__(self, batch: Batch, value: T) -> None:
        batch._assigned.add(self._name)
        batch._parts = {k: v for k, v in batch._parts.items() if k in batch._assigned}  # others may be made of it
        batch._parts[self._name] = value


class Batch:
    """One batch: B rows. TorchRec's train pipelines and models accept it: it is Pipelineable, and has the attributes of
    torchrec.datasets.utils.Batch (dense_features, sparse_features, labels), and weighted_features.

    A batch is one block of memory, the engine's or a copy on a device. Tensors are views of the block, made at first
    use. The memory returns to the engine when the last tensor is gone.

    Each requested feature is in one of the parts: dense, labels, embeddings, integers, sparse, weighted, floats, keys.
    A null number is 0 and a null list is empty. The list features have the same order in every batch of a plan. With
    output="ikjt", groups say which of them share an inverse in this batch. With output="partial", sparse, weighted and
    floats have starts instead of offsets (Jagged). The properties that end with _features give them as
    KeyedJaggedTensors over the same memory, made at first use on the device where the batch is then: use them after
    ``to``. The masks that tell null from 0 (dense_present and the like, and Jagged.present) need ``presence=True``;
    without it they are None or empty.
    """

    def __init__(self, block: TensorBlock, features: Features):
        self._block = block
        self._features = features
        self._parts: dict[str, Any] = {}
        self._assigned: set[str] = set()  # parts that are not as the block has them
        # Streams that use the batch: they must also know of tensors that are made later.
        self._streams: list[Any] = []
        if not _joined:
            _join_pipelineable()

    def __repr__(self) -> str:
        return f"<dsistore.torch.Batch {self.index} of epoch {self.epoch}: {self.rows} rows>"

    def __getstate__(self) -> dict[str, Any]:
        return {"block": self._block, "features": self._features,
                "assigned": {name: self._parts[name] for name in self._assigned}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["block"], state["features"])  # type: ignore[misc]
        for name, value in state["assigned"].items():
            setattr(self, name, value)

    @property
    def index(self) -> int:
        """The batch's position in the order of the epoch, of all ranks."""
        return self._block.index

    @property
    def epoch(self) -> int:
        """The epoch of the batch."""
        return self._block.epoch

    @property
    def rows(self) -> int:
        """The number of rows, B."""
        return self._block.rows

    @property
    def dense_names(self) -> list[str]:
        """The features of dense, in the order of its columns."""
        return self._features.dense

    @property
    def label_names(self) -> list[str]:
        """The features of labels."""
        return self._features.labels

    @_Part
    def dense(self) -> torch.Tensor:
        """[B, D] float32: its columns are ``dense_names``."""
        return self._matrix("dense.values", len(self._features.dense))

    @_Part
    def labels(self) -> torch.Tensor:
        """[B, L] float32: its columns are ``label_names``; [B] if labels was one name and not a list."""
        labels = self._all_labels()
        if self._features.weighted:
            labels = labels[:, :-1]
        return labels[:, 0] if self._features.one_label else labels

    @_Part
    def sample_weight(self) -> torch.Tensor | None:
        """[B] float32: the weight of each row, with ``downsample``; else None."""
        return self._all_labels()[:, -1] if self._features.weighted else None

    @_Part
    def embeddings(self) -> dict[str, torch.Tensor]:
        """By feature: [B, dim] float32."""
        return {
            self._features.names[f]: self._matrix(f"embedding.{i}.values", width)
            for i, (f, width) in enumerate(self._block.layout.schema.embeddings)
        }

    @_Part
    def integers(self) -> dict[str, torch.Tensor]:
        """The features of ``integers=``, by name: [B] int64, or uint64 if they are stored as such."""
        return {name: self._numbers(i, elem) for i, name, _, elem in self._features.columns
                if name in self._features.integers}

    @_Part
    def keys(self) -> dict[str, Any]:
        """By name: the other keys among the features (session, request, user, time), strings, bytes and partition keys,
        with exact values. Numbers without nulls are a tensor [B] of int64, uint64, float32 or float64; others are a
        list of numbers, str or bytes, with None for null."""
        return {name: self._exact(i, kind, elem) for i, name, kind, elem in self._features.columns
                if name not in self._features.integers}

    @_Part
    def sparse(self) -> Jagged:
        """The id lists."""
        return self._lists("sparse")

    @_Part
    def weighted(self) -> Jagged:
        """The weighted lists."""
        return self._lists("weighted")

    @_Part
    def floats(self) -> Jagged:
        """The lists of float numbers."""
        return self._lists("floats")

    @_Part
    def inverses(self) -> torch.Tensor:
        """[groups, B] int32: for each group, the slot of each row."""
        inverses = self._inverses()
        return inverses[:0] if self._features.expands else inverses

    @_Part
    def groups(self) -> list[DedupGroup]:
        """Which features share an inverse in this batch. Empty with output="kjt"."""
        if self._features.expands or not self._block.has("groups.slots"):
            return []
        counts = self._block.counts()
        keys = [[self._features.names[f] for f in group] for group in counts.groups]
        return list(map(DedupGroup, keys, counts.slots, self.inverses))

    @_Part
    def dense_present(self) -> torch.Tensor | None:
        """[B, D] bool: False where a dense feature is null."""
        return self._matrix_mask("dense.present", len(self._features.dense))

    @_Part
    def labels_present(self) -> torch.Tensor | None:
        """bool, in the shape of labels: False where a label is null."""
        mask = self._matrix_mask("labels.present", len(self._features.labels) + self._features.weighted)
        if mask is None:
            return None
        return mask[:, 0] if self._features.one_label else mask[:, :len(self._features.labels)]

    @_Part
    def embeddings_present(self) -> dict[str, torch.Tensor]:
        """By feature: [B] bool."""
        masks = {self._features.names[f]: self._bits(f"embedding.{i}.present", 1)
                 for i, (f, _) in enumerate(self._block.layout.schema.embeddings)}
        return {name: mask[0] for name, mask in masks.items() if mask is not None}

    @_Part
    def integers_present(self) -> dict[str, torch.Tensor]:
        """By feature: [B] bool."""
        return {name: self._column_mask(i) for i, name, _, _ in self._features.columns
                if name in self._features.integers and self._features.presence}

    # Attributes rather than methods, because TrainPipelineSparseDist follows attributes of the batch through a traced
    # model.

    @property
    def dense_features(self) -> torch.Tensor:
        """The same as dense, under TorchRec's name."""
        return self.dense

    @_Part
    def sparse_features(self) -> KeyedJaggedTensor:
        """All id lists as one KJT; in every batch its keys have the order of the request. With output="ikjt" it has the
        variable-batch form in every batch, with one list per row for features whose rows share nothing, and for the
        features of ``expand`` (it is an ordinary KJT if these are all)."""
        return self._kjt("sparse")

    @_Part
    def dedup_sparse_features(self) -> KeyedJaggedTensor:
        """The id lists that are deduplicated, as a KJT in the variable-batch form: with output="ikjt" all but those of
        ``expand``, with output="kjt" none. If its features are adjacent in the request it is a view of the batch, else
        a copy. The same holds for expanded_sparse_features."""
        return self._kjt("sparse", True)

    @_Part
    def expanded_sparse_features(self) -> KeyedJaggedTensor:
        """The id lists that come one per row, as an ordinary KJT: with output="ikjt" those of ``expand``, with
        output="kjt" all."""
        return self._kjt("sparse", False)

    @_Part
    def weighted_features(self) -> KeyedJaggedTensor:
        """All weighted lists as one KJT with weights: see sparse_features."""
        return self._kjt("weighted")

    @_Part
    def dedup_weighted_features(self) -> KeyedJaggedTensor:
        """The weighted lists that are deduplicated: see dedup_sparse_features."""
        return self._kjt("weighted", True)

    @_Part
    def expanded_weighted_features(self) -> KeyedJaggedTensor:
        """The weighted lists that come one per row: see expanded_sparse_features."""
        return self._kjt("weighted", False)

    def map(self, f: Map) -> Batch:
        """The batch with f applied to every tensor. KeyedJaggedTensors are made anew, except those that were
        assigned."""
        out = Batch(self._block, self._features)
        for name in [*_TENSORS, *self._assigned.difference(_TENSORS)]:
            setattr(out, name, _map(getattr(self, name), f))
        return out

    def to(self, device: Any, non_blocking: bool = False, data_copy_stream: Any = None) -> Batch:
        """The batch on a device, by one copy. Only one int32 inverse per group is copied, and KJTs are made anew there.

        With data_copy_stream, which TorchRec's pipelines give with ``enable_inplace_copy_batch``, memory is allocated
        on the current stream of the device and filled on data_copy_stream. The caller must wait for data_copy_stream
        before it uses the batch, as the pipelines do.
        """
        if data_copy_stream is None:
            return self._moved(lambda t: t.to(device=device, non_blocking=non_blocking))
        module = torch.get_device_module(device)

        def copy(t: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(t, device=device)
            with module.stream(data_copy_stream):
                # What used the memory before may still run on the current stream.
                data_copy_stream.wait_stream(current)
                return out.copy_(t, non_blocking=non_blocking)

        current = module.current_stream(device)
        out = self._moved(copy, data_copy_stream)
        if out._block.device.type != "cpu":
            out._streams.append(current)  # it is used there: parts that are made later, on another stream, must know
        return out

    def pin_memory(self) -> Batch:
        """A copy in page-locked memory, from which ``to(device, non_blocking=True)`` does not wait."""
        return self._moved(lambda t: t.pin_memory())

    def _moved(self, f: Map, stream: Any = None) -> Batch:
        apart = set(self._assigned)
        if len(self._features.columns) > len(self._features.integers):
            self.keys  # may be lists, which are made where reading does not wait for a device
            apart.add("keys")
        parts = {name: _map(self._parts[name], f) for name in apart}
        # The block last: its memory is kept until all that was copied of it is through.
        out = Batch(self._block.map(f, stream), self._features)
        for name, part in parts.items():
            setattr(out, name, part)
        return out

    def record_stream(self, stream: Any) -> None:
        """Marks the tensors as used by a stream, so that their memory is not reused before the stream has finished.
        This includes tensors and KJTs that are made later."""
        _record(self._block.bytes(), stream)
        for made in self._parts.values():
            _record(made, stream)
        self._streams.append(stream)

    def _inverses(self) -> torch.Tensor:
        return self._block.tensor("groups.inverses").view(-1, self.rows)

    def _lists(self, kind: str) -> Jagged:
        lists = jagged(self._block, kind, self._features.lists[kind])
        if self._features.expands and lists.groups is not None:
            return expanded(self._block, kind, lists, self._inverses())
        return lists

    def _matrix(self, name: str, width: int) -> torch.Tensor:
        return self._block.tensor(name).view(self.rows, width)

    def _all_labels(self) -> torch.Tensor:
        return self._matrix("labels.values", len(self._features.labels) + self._features.weighted)

    def _bits(self, name: str, features: int) -> torch.Tensor | None:
        return unpacked(self._block.tensor(name), features, self.rows) if self._block.has(name) else None

    def _matrix_mask(self, name: str, width: int) -> torch.Tensor | None:
        """The presence of a matrix as [B, width]; None without features, or when nobody asked."""
        mask = self._bits(name, width)
        return None if mask is None else mask.t().contiguous()

    def _column_mask(self, i: int) -> torch.Tensor:
        values = self._block.tensor(f"column.{i}.values")
        mask = self._bits(f"column.{i}.present", 1)
        return torch.ones(self.rows, dtype=torch.bool, device=values.device) if mask is None else mask[0]

    def _numbers(self, i: int, elem: str) -> torch.Tensor:
        values = self._block.tensor(f"column.{i}.values")
        return values.view(torch.uint64) if elem == "uint64" else values

    def _exact(self, i: int, kind: str, elem: str) -> Any:
        """The values of the i-th exact column, which is in the host's memory."""
        present = self._bits(f"column.{i}.present", 1)
        mask = None if present is None else present.numpy()
        if kind in TEXTS:
            data, offsets = (self._block.tensor(f"column.{i}.{of}").numpy() for of in ("values", "offsets"))
            return listed(texts(kind, data, offsets), mask)
        numbers = self._numbers(i, elem)
        return numbers if mask is None else listed(numbers.tolist(), mask)

    def _kjt(self, kind: str, dedup: bool | None = None) -> KeyedJaggedTensor:
        """A KJT of the lists of a kind that are deduplicated, of those that come one per row, or of both (None)."""
        lists = getattr(self, kind).contiguous()
        if dedup is not None:
            lists = lists.select([d == dedup for d in lists.dedup])
        if any(lists.dedup):
            alone = kind in self._assigned or self._block.counts().lists[kind].alone
            return kjt.deduplicated(lists, of_features(lists, self.inverses, alone))
        return kjt.expanded(lists, self.rows)


# The parts that hold tensors of their own, not KJTs over those of others.
_TENSORS = ("dense", "labels", "sample_weight", "embeddings", "integers", "keys", "sparse", "weighted", "floats",
            "inverses", "groups", "dense_present", "labels_present", "embeddings_present", "integers_present")


def _map(part: Any, f: Map) -> Any:
    """A part with f applied to every tensor of it."""
    if isinstance(part, torch.Tensor):
        return f(part)
    if isinstance(part, dict):
        return {k: _map(v, f) for k, v in part.items()}
    if isinstance(part, list) and part and isinstance(part[0], DedupGroup):
        return [g.map(f) for g in part]
    if isinstance(part, Jagged):
        return part.map(f)
    return kjt.mapped(part, f) if _is_kjt(part) else part


def _is_kjt(part: Any) -> bool:
    """Whether a part is a KeyedJaggedTensor. torchrec may not be imported."""
    return hasattr(part, "inverse_indices_or_none")


def _record(part: Any, stream: Any) -> None:
    """Says that a stream uses a part."""
    def record(t: torch.Tensor) -> torch.Tensor:
        t.record_stream(stream)
        return t

    if _is_kjt(part):
        kjt.record_stream(part, stream)
    else:
        _map(part, record)


_joined = False


def _join_pipelineable() -> None:
    """TorchRec's pipelines take instances of Pipelineable alone. To import it takes seconds, so that only those pay for
    it who use TorchRec anyway."""
    global _joined
    streamable = sys.modules.get("torchrec.streamable")
    if (base := getattr(streamable, "Pipelineable", None)) is not None:
        base.register(Batch)
        _joined = True
