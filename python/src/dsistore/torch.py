"""Batches for PyTorch and TorchRec.

    dataset = table.torch(["user_*", "item_id"], labels=["click"], batch_size=4096, shuffle="session", seed=7, output="ikjt")
    for batch in torch.utils.data.DataLoader(dataset, batch_size=None):
        loss = model(batch.dense_features, batch.sparse_features, batch.labels)

The dataset prefetches by itself, in threads of the engine: DataLoader's num_workers=0 is the fast way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from . import _batch, _engine, _kjt, errors
from ._check import Support, check
from ._jagged import BatchLists, DedupGroup, Jagged, lists_of, mask
from ._pass import Pass
from ._rank import Rank
from ._select import SampleList, list_name, literal, names
from ._standing import Standing, number
from ._stats import Meter, Stats

if TYPE_CHECKING:
    from torch.types import Device
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    from .table import Table

__all__ = ["Batch", "DedupGroup", "Jagged", "Shuffle", "Stats", "Support", "TorchDataset", "check"]


@dataclass(frozen=True)
class Shuffle:
    """The order of an epoch: ``buffer_stripes`` stripes at a time are held in memory, and their sessions (or rows) interleaved at
    random. Sessions stay whole with unit "session", so that what their rows share stays shared in a batch."""

    unit: str = "session"  # none, session or row
    buffer_stripes: int = 16


@dataclass(eq=False)
class Batch:
    """One batch: B rows. TorchRec's train pipelines and models take it as it is: it is Pipelineable, and has what
    torchrec.datasets.utils.Batch has (dense_features, sparse_features, labels), and weighted_features. Tensors share the
    engine's memory, which is given back when the last of them is gone.

    Each feature that was asked for is in one of the parts, once.

    dense is [B, D] float32, its columns ``dense_names``; labels [B, L] float32, its columns ``label_names``, or [B] where one
    label was asked for by a string and not by a list; embeddings are [B, dim] each. integers are the features of ``integers=``,
    [B] int64 each, or uint64 where they are stored so. Null is 0.
    sparse, weighted and floats hold the lists, in a tensor each of lengths and values of a kind: the same features in the same order in
    every batch of a plan. With output="ikjt" groups say which of them share an inverse in this batch. Other properties give them as
    KeyedJaggedTensors over the same memory, made at first use on the device where the batch is then: ask for them after ``to``.
    keys are the other keys among the features (session, request, user, time), strings, bytes and partition keys, exactly: a tensor [B]
    of int64, uint64, float32 or float64 where they are numbers without null, as wide as that holds them; else a list of
    numbers, str or bytes, None for null.
    dense_present and labels_present, of the shapes of dense and labels, and embeddings_present and integers_present, [B] each, are
    bool: False where the value is null. Like Jagged.present they come with ``presence=True`` only; without it they are None and empty.
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
        return replace(
            self, dense=f(self.dense), labels=f(self.labels), lists=self.lists.map(f),
            embeddings={k: f(v) for k, v in self.embeddings.items()}, integers={k: f(v) for k, v in self.integers.items()},
            keys={k: f(v) if isinstance(v, torch.Tensor) else v for k, v in self.keys.items()},
            dense_present=None if self.dense_present is None else f(self.dense_present),
            labels_present=None if self.labels_present is None else f(self.labels_present),
            sample_weight=None if self.sample_weight is None else f(self.sample_weight),
            embeddings_present={k: f(v) for k, v in self.embeddings_present.items()},
            integers_present={k: f(v) for k, v in self.integers_present.items()},
        )

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """The batch on a device. One int32 inverse a group travels: KJTs are made anew there."""
        return self.map(lambda t: t.to(device=device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """A copy in page-locked memory, from which ``to(device, non_blocking=True)`` does not wait."""
        return self.map(lambda t: t.pin_memory())

    def record_stream(self, stream: Any) -> None:
        """Says that a stream uses the tensors, so that their memory is not used anew before it is through: also those of KJTs
        that are made before or after."""
        def record(t: torch.Tensor) -> torch.Tensor:
            t.record_stream(stream)
            return t

        self.map(record)
        for kjt in self._made.values():
            _kjt.record_stream(kjt, stream)
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

    # Attributes rather than methods, because TrainPipelineSparseDist follows attributes of the batch through a traced model.

    @property
    def dense_features(self) -> torch.Tensor:
        """dense, by TorchRec's name."""
        return self.dense

    @property
    def sparse_features(self) -> KeyedJaggedTensor:
        """All id lists as one KJT, its keys in the order of the request, those of ``expand`` last. With output="ikjt" it is in the
        variable-batch form in every batch, with identity rows for features whose rows share nothing there, and for those of
        ``expand`` (an ordinary KJT where these are all)."""
        return self._kjt("sparse", dedup=True, plain=True)

    @property
    def dedup_sparse_features(self) -> KeyedJaggedTensor:
        """The id lists but for those of ``expand`` as a KJT in the variable-batch form; without keys with output="kjt"."""
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
        """A KJT of one part: of the lists that may be deduplicated, of those that never are, or of both. It is made once."""
        made = self._made.get((part, dedup, plain))
        if made is None:
            lists: Jagged = getattr(self.lists, part)
            if dedup and lists.dedup:
                made = _kjt.variable(lists, self.lists.inverses, self.rows, len(lists.keys) if plain else lists.dedup)
            else:
                made = _kjt.plain(lists, self.rows, lists.dedup if plain else len(lists.keys))
            for stream in self._streams:
                _kjt.record_stream(made, stream)
            self._made[part, dedup, plain] = made
        return made


def _join_pipelineable() -> None:
    """TorchRec's pipelines take instances of Pipelineable alone. To import it takes seconds, so that only those pay for it who
    use TorchRec anyway."""
    streamable = sys.modules.get("torchrec.streamable")
    if (base := getattr(streamable, "Pipelineable", None)) is not None:
        base.register(Batch)


def _columns(m: _batch.Matrix, rows: int) -> torch.Tensor | None:
    """The presence of a matrix as [B, D]; None without features, or when nobody asked."""
    present = mask(m.present, rows)
    return None if present is None else present.t().contiguous()


class TorchDataset(torch.utils.data.IterableDataset[Batch]):
    """Training batches of a table, in an order that the arguments and the epoch decide alone: Table.torch makes it.

    features, labels and integers are names, globs or sets, as in Table.features. The labels of one name alone (labels="click") come as
    [B], those of a list as [B, L]. labels says which features are labels; without it those are that have the role. A feature with the
    role that is not among labels is an ordinary feature if features has its name, and an error if only a glob or a set selects it.
    integers are dense integers that come as they are stored, int64, in Batch.integers. Other dense features, and labels, come as
    float32, which holds every integer up to 2^24 and few beyond: a batch that has another is a UsageError, which names the features.
    float64 is rounded to float32. partitions is a predicate over partition keys, filter one over features, sample_list a list of
    rows, and overlay names overlays (Table.scan).
    shuffle is None, "session", "row" or a Shuffle. output is "kjt" (every row has its lists) or "ikjt" (lists that rows share
    are given once: Batch.groups); expand is names, globs or sets whose lists come a row each in "ikjt" too, in
    Batch.plain_sparse_features: items, say, which rows hardly ever share. transforms maps names or globs to what is done to the values:
    {"user_history_*": "first(50) | mod(1000000)"}. rank and world_size, given together, default to torch.distributed's, then to
    the environment's RANK and WORLD_SIZE. They are looked up in the process that iterates, or that makes the DataLoader: its workers
    are told, whatever starts them.
    shards is in how many places an epoch is read at once (default: the world size): each rank reads its own where world_size
    divides it, and the order of the batches depends on it. A state_dict has it, so that a job with another world size goes on
    in the same order. drop_last leaves out the batch that is short, and at the end of an epoch the batches that are too few for
    all ranks: each rank gives as many, also where a job goes on with another world size, so that a collective never waits
    for a rank that is through. Without it each row is given once an epoch, and some ranks give a batch more than others: stop
    them together, or use torch's Join. presence adds masks that tell null from 0 and from the empty list: Batch.dense_present
    and the like, and Jagged.present.
    device: batches are moved there. prefetch bounds the batches made ahead, workers the engine's threads, memory the bytes of
    stripes in memory. job is what usage records call this: default, DSISTORE_JOB of the environment, else the name of the program.
    lease=False takes no lease while batches are read (Table.scan).

    It pickles to the plan, and opens what it reads in the process that iterates. A pickle has the rank of the process that made it,
    for DataLoader's workers; another process looks for its own first.
    """

    def __init__(self, table: Table, features: str | Sequence[str], *, labels: str | Sequence[str] = (),
                 integers: str | Sequence[str] = (), partitions: str | None = None, filter: str | None = None, sample_list: str | SampleList | None = None, downsample: str | None = None,
                 overlay: str | Sequence[str] = (), batch_size: int = 4096,
                 shuffle: Literal["session", "row"] | Shuffle | None = None, seed: int = 0,
                 rank: int | None = None, world_size: int | None = None, output: Literal["kjt", "ikjt"] = "kjt",
                 expand: str | Sequence[str] = (), transforms: Mapping[str, str] | None = None, drop_last: bool = False, presence: bool = False,
                 device: Device = None, shards: int | None = None, prefetch: int | None = None, workers: int | None = None,
                 memory: int | None = None, job: str | None = None, lease: bool = True):
        super().__init__()
        self._job = _engine.job_name(job)
        if output not in ("kjt", "ikjt"):
            raise errors.UsageError(f"output {output!r}: want 'kjt' or 'ikjt'")
        if not number(batch_size, 1):
            raise errors.UsageError(f"batch_size {batch_size!r}: want 1 or more")
        self._rank = Rank(rank, world_size)
        if shards is not None and not number(shards, 1):
            raise errors.UsageError(f"shards {shards!r}: want 1 or more")
        if isinstance(shuffle, str):
            shuffle = Shuffle(unit=shuffle)
        if not isinstance(shuffle, (Shuffle, type(None))):
            raise errors.UsageError(f"shuffle {shuffle!r}: want None, 'session', 'row' or a Shuffle")
        self._store = table.store
        # Before the features, so that a label that they select too keeps its place among the labels.
        label_names, integer_names = ([f.name for f in table.features(of, overlay=overlay)] if of else [] for of in (labels, integers))
        self._plan: dict[str, Any] = _engine.call(
            "plan", **table._place, features=[*map(literal, label_names + integer_names), *names(features)], labels=label_names, integers=integer_names,
            partitions=partitions, filter=filter, sample_list=list_name(sample_list), downsample=downsample, overlay=names(overlay) or None,
            batch_size=batch_size, output="tensors", dedup=output, expand=names(expand) or None,
            shuffle=None if shuffle is None else {"unit": shuffle.unit, "buffer_stripes": shuffle.buffer_stripes, "seed": seed},
            transforms=dict(transforms) if transforms else None,
        )
        self._weighted = downsample is not None
        self._one_label = isinstance(labels, str) and len(label_names) == 1
        self._names: list[str] = [f["name"] for f in self._plan["features"]]
        self._kinds: list[tuple[str, str]] = [(f["kind"], f["elem"]) for f in self._plan["features"]]
        self._integers = frozenset(integer_names)
        for f in self._plan["features"]:
            if f["kind"] in ("sparse", "weighted", "embedding") and f["role"] != "feature":
                raise errors.UsageError(
                    f"feature {f['name']!r}: its role is {f['role']}, and it is {f['kind']}: want a number, a string or bytes. Where it is "
                    "a label, say with labels= which features are, and it comes as any other")
        self._options = {"workers": workers, "memory": memory, "prefetch": prefetch, "presence": presence, "no_lease": not lease or None}
        self._batch_size = batch_size
        self._shards = shards
        self._drop_last = drop_last
        self._device = device
        self._standing = Standing(self._plan["batches"])
        self._meter = Meter()

    @property
    def plan(self) -> str:
        """The plan, as text: the same for the same data and options, whatever ranks read it."""
        text: str = self._plan["plan"]
        return text

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next iteration, which begins with the epoch's first batch.

        To set the epoch that the next iteration is of anyway changes nothing: after ``load_state_dict(state)`` and
        ``set_epoch(state["epoch"])`` it goes on where the state stood. So a loop may set each epoch:

            dataset.load_state_dict(state)
            for epoch in range(state["epoch"], epochs):
                dataset.set_epoch(epoch)
                for batch in loader:

        Iterations that are under way are not touched. Without it an iteration that gave its epoch's last batch is followed by the next
        epoch, and one that was left before by the same epoch again. DataLoader's workers do not count epochs: set each.
        """
        if not number(epoch):
            raise errors.UsageError(f"epoch {epoch!r}: want 0 or more")
        self._standing.set_epoch(epoch)

    def stats(self) -> Stats:
        """What the epoch that began last has done so far, in this process: in DataLoader's workers, ask there."""
        return self._meter.stats()

    def state_dict(self) -> dict[str, Any]:
        """Where the newest iteration stands: small, JSON-able, the same on every rank after as many steps, good for another
        world size.

        With an epoch's last batch it is that epoch's end, and after the loop over the epoch the next one's begin. So a job may save
        the epoch that it is in beside it at any step, and epoch + 1 after the loop. In the last step of an epoch without drop_last, ranks
        that have no batch left are after their loop already.

        Where DataLoader's workers iterate, they know: use torchdata's StatefulDataLoader, which asks them. This is a
        UsageError then.
        """
        of = {"table": self._store.uri, "snapshot": self._plan["snapshot"], "plan_hash": self._plan["hash"]}
        return self._standing.save(of, self._shard_count())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where a state_dict of the same plan stood, the one after it with an epoch's first batch. At an
        epoch's end nothing is left: the iteration gives no batch, and the one after it is of the next epoch.

        Iterations that are under way are not touched.
        """
        self._standing.load(state, self._plan["hash"])

    def _shard_count(self) -> int:
        """In how many places an epoch is read: those of a state, else those asked for, else the world size."""
        for shards in (self._standing.shards(), self._shards):
            if shards is not None:
                return shards
        return self._rank.place().world

    def __len__(self) -> int:
        """How many batches a whole epoch gives this rank. With drop_last all ranks say the same, without it ranks differ by one at
        the most. Of an epoch that n batches of the global order were given of, (all batches - n) // world size are left with
        drop_last."""
        rank, world = self._rank.place()
        rows: int = self._plan["rows"]
        size = self._batch_size
        return rows // size // world if self._drop_last else len(range(rank, -(-rows // size), world))

    def __iter__(self) -> Pass[Batch]:
        rank, world = self._rank.place()
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info is not None else (0, 1)
        start, begin, moved = self._standing.begin()
        # DataLoader takes its workers in turns, so that worker w of n gives every n-th of this rank's batches.
        options = {
            "uri": self._store._root, "plan": self.plan, "rank": rank, "world": world, "worker": worker, "rank_workers": workers,
            "shards": self._shard_count(), "drop_last": self._drop_last, **self._options,
            **_engine.recorded(self._job),
        }

        def make(raw: _batch.RawBatch) -> Batch:
            batch = self._make(raw)
            return batch if self._device is None else batch.to(self._device)

        return Pass(options, start, begin, self._plan["batches"], world, make, moved, self._meter)

    def _make(self, raw: _batch.RawBatch) -> Batch:
        names = self._names
        labels, labels_present = torch.from_numpy(raw.labels.values), _columns(raw.labels, raw.rows)
        label_names, weight = [names[f] for f in raw.labels.features], None
        if self._weighted:  # the last of the labels
            weight, labels, label_names = labels[:, -1], labels[:, :-1], label_names[:-1]
            labels_present = None if labels_present is None else labels_present[:, :-1]
        if self._one_label:
            labels, labels_present = labels[:, 0], None if labels_present is None else labels_present[:, 0]
        return Batch(
            index=raw.index, epoch=raw.epoch, rows=raw.rows,
            dense_names=[names[f] for f in raw.dense.features], dense=torch.from_numpy(raw.dense.values),
            label_names=label_names, labels=labels, sample_weight=weight,
            lists=lists_of(raw, names),
            embeddings={names[m.features[0]]: torch.from_numpy(m.values) for m in raw.embeddings},
            integers={name: self._numbers(c) for place, c in raw.columns.items() if (name := names[place]) in self._integers},
            keys={name: self._key(c) for place, c in raw.columns.items() if (name := names[place]) not in self._integers},
            dense_present=_columns(raw.dense, raw.rows), labels_present=labels_present,
            embeddings_present={
                names[m.features[0]]: present[0] for m in raw.embeddings if (present := mask(m.present, raw.rows)) is not None
            },
            integers_present={
                name: _present(c) for place, c in raw.columns.items() if (name := names[place]) in self._integers
            } if self._options["presence"] else {},
        )

    def _key(self, c: _batch.Column) -> Any:
        """A key: a tensor where it is a number without nulls, else a list."""
        kind = self._kinds[c.place][0]
        present = _present(c).tolist() if len(c.present) else None
        if kind in ("bytes", "string"):
            data, offsets = c.data.tobytes(), c.offsets.tolist()
            values = [data[a:b] for a, b in zip(offsets, offsets[1:])]
            out: list[Any] = [v.decode() for v in values] if kind == "string" else values
        else:
            numbers = self._numbers(c)
            if present is None:
                return numbers
            out = numbers.tolist()
        return out if present is None else [v if p else None for v, p in zip(out, present)]

    def _numbers(self, c: _batch.Column) -> torch.Tensor:
        """An exact column of numbers. Null is 0."""
        numbers: np.ndarray[Any, Any] = c.ints if len(c.ints) else c.floats if len(c.floats) else c.doubles
        return torch.from_numpy(numbers.view(np.uint64) if self._kinds[c.place][1] == "uint64" else numbers)


def _present(c: _batch.Column) -> torch.Tensor:
    """Where an exact column is not null. Without bits it is null nowhere."""
    if not len(c.present):
        return torch.ones(c.rows, dtype=torch.bool)
    return torch.from_numpy(np.unpackbits(c.present.view(np.uint8), bitorder="little", count=c.rows).view(np.bool_))
