"""What the datasets of all outputs share: the plan, ranks, epochs and state. An output adds how a batch becomes its
own.

    Options ──> Dataset ──plan──> engine
                   │ iter                     Dataset._make(Block): of TorchDataset, of NumpyDataset
                   └──> EpochIterator ──next_batch──> Block ──_make──> a batch of the output
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from . import _engine, _worker, errors
from ._block import Block
from ._epoch import EpochIterator
from ._epoch_start import EpochStart
from ._plan import Plan, TableRef
from ._rank import RankLookup, of_process
from ._select import ReadOptions, SampleList, Shuffle, dedup_form, list_name, literal, names, operand, selected
from ._state import LoaderState, number
from ._stats import Meter, Stats

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What is asked of all outputs: Table.torch describes it. dedup is its output."""

    features: str | Sequence[str]
    labels: str | Sequence[str] = ()
    integers: str | Sequence[str] = ()
    sparse: str | Sequence[str] = ()
    partitions: str | None = None
    filter: str | None = None
    sample_list: str | SampleList | None = None
    downsample: str | None = None
    overlay: str | Sequence[str] = ()
    batch_size: int = 4096
    shuffle: str | Shuffle | None = None
    seed: int = 0
    rank: int | None = None
    world_size: int | None = None
    dedup: str = "kjt"
    expand: str | Sequence[str] = ()
    transforms: Mapping[str, str] | None = None
    drop_last: bool = False
    presence: bool = False
    shards: int | None = None
    prefetch: int | None = None
    workers: int | None = None
    memory: int | None = None
    job: str | None = None
    lease: bool = True


class BatchOptions(ReadOptions, total=False):
    """The options that all outputs have: Table.torch describes them."""

    labels: str | Sequence[str]
    integers: str | Sequence[str]
    sparse: str | Sequence[str]
    shuffle: Literal["session", "row"] | Shuffle | None
    seed: int
    rank: int | None
    world_size: int | None
    expand: str | Sequence[str]
    transforms: Mapping[str, str] | None
    drop_last: bool
    presence: bool
    shards: int | None
    prefetch: int | None


def options_of(features: str | Sequence[str] | None, dedup: bool | str, options: BatchOptions) -> Options:
    """The options of an output that has dedup instead of Table.torch's output."""
    given: dict[str, Any] = dict(options)
    default = () if given.get("sparse") or given.get("integers") else None
    return Options(selected(features, given.pop("columns", None), default), dedup=dedup_form(dedup), **given)


class Dataset(Generic[T]):
    """Training batches of a table, in an order that depends only on the arguments and the epoch.

    Its pickle contains the plan; files are opened in the process that iterates. The pickle also has the rank of the
    process that made it, for DataLoader workers; another process first looks for its own rank.
    """

    # What says which rank this process is, where it is not given.
    _ask_rank = staticmethod(of_process)

    def __init__(self, table: TableRef, o: Options, start: EpochStart):
        super().__init__()
        if not number(o.batch_size, 1):
            raise errors.UsageError(f"batch_size {o.batch_size!r}: want 1 or more")
        if o.shards is not None and not number(o.shards, 1):
            raise errors.UsageError(f"shards {o.shards!r}: want 1 or more")
        shuffle = Shuffle(unit=o.shuffle) if isinstance(o.shuffle, str) else o.shuffle
        if not isinstance(shuffle, (Shuffle, type(None))):
            raise errors.UsageError(f"shuffle {shuffle!r}: want None, 'session', 'row' or a Shuffle")
        self._rank = RankLookup(o.rank, o.world_size, self._ask_rank)
        self._job = _engine.job_name(o.job)
        self._table = table
        label_names, integer_names, sparse_names = (
            [f.name for f in table.features(of, o.overlay)] if of else [] for of in (o.labels, o.integers, o.sparse))
        # Before the features, so that a label that they select too keeps its place among the labels.
        features = [*map(literal, label_names + integer_names), *names(o.features), *map(literal, sparse_names)]
        self._plan: Plan = table.plan(
            features=features, labels=label_names, integers=integer_names, sparse=sparse_names or None,
            partitions=o.partitions, filter=o.filter, sample_list=list_name(o.sample_list), downsample=o.downsample,
            overlay=names(o.overlay) or None,
            batch_size=o.batch_size, output="tensors", dedup=o.dedup,
            expand=names(o.expand) or None, shuffle=None if shuffle is None else {
                "unit": shuffle.unit, "buffer_stripes": shuffle.buffer_stripes, "seed": o.seed},
            transforms=dict(o.transforms) if o.transforms else None,
        )
        for f in self._plan.features:
            if f["kind"] in ("sparse", "weighted", "embedding") and f["role"] != "feature":
                way = ("say with labels= which features are, and it comes as any other" if f["role"] == "label" else
                       f"for an id list: sparse=[{f['name']!r}], without list in its transforms")
                raise errors.UsageError(
                    f"feature {f['name']!r}: its role is {f['role']}, and it is {f['kind']}: want a number, a string "
                    f"or bytes; {way}")
        self._partial = o.dedup == "partial"
        self._one_label = isinstance(o.labels, str) and len(label_names) == 1
        self._weighted = o.downsample is not None  # the last label is the weight
        self._names = [f["name"] for f in self._plan.features]
        self._integers = frozenset(integer_names)
        self._presence = o.presence
        self._options = {
            "workers": o.workers, "memory": o.memory, "prefetch": o.prefetch, "presence": o.presence,
            "no_lease": not o.lease or None,
        }
        self._batch_size = o.batch_size
        self._shards = o.shards
        self._drop_last = o.drop_last
        self._state = LoaderState(self._plan.batches, start)
        self._meter = Meter()
        self._warned = False  # of null labels

    def _make(self, block: Block) -> T:
        """A batch of the output, over the memory of the engine's."""
        raise NotImplementedError

    def _give(self, block: Block) -> T:
        """_make, with a warning at the first batch that has null labels, which a loss would take for 0."""
        if block.null_labels and not self._presence and not self._warned:
            self._warned = True
            labels = [self._names[f] for f in block.schema.labels[:-1 if self._weighted else None]]
            name = labels[0] if len(labels) == 1 else "LABEL"
            wanted, filled = f"{operand(name)} IS NOT NULL", {literal(name): "fill(0)"}
            warnings.warn(
                f"null labels come as 0: {block.null_labels} of {block.rows * len(labels)} in batch {block.index} "
                f"({', '.join(labels)}). filter={wanted!r} leaves such rows out, presence=True adds a mask, "
                f"and transforms={filled} says that 0 is meant.", stacklevel=4)
        return self._make(block)

    @property
    def plan(self) -> str:
        """The plan as text. It is the same for the same data and options on all ranks."""
        return self._plan.text

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, which starts at the first batch of the epoch.

        If the next iteration has this epoch anyway, nothing changes: after ``load_state_dict(state)`` and
        ``set_epoch(state["epoch"])`` it continues from the state. So a loop may set each epoch:

            dataset.load_state_dict(state)
            for epoch in range(state["epoch"], epochs):
                dataset.set_epoch(epoch)
                for batch in loader:

        Running iterations do not change. Without set_epoch, the next iteration reads the next epoch if the previous one
        gave its last batch, and the same epoch again if it was left earlier. DataLoader workers do this too, but each
        reads ahead by prefetch_factor batches: if a loop is left that shortly before the end, call set_epoch.
        """
        if not number(epoch):
            raise errors.UsageError(f"epoch {epoch!r}: want 0 or more")
        self._state.set_epoch(epoch)

    def stats(self) -> Stats:
        """What the epoch that began last has done so far, in this process. DataLoader workers have their own
        statistics."""
        return self._meter.stats()

    def state_dict(self) -> dict[str, Any]:
        """The position of the newest iteration. It is small, can be written as JSON, is the same on all ranks after the
        same number of steps, and can be loaded with another world size.

        At the last batch of an epoch it is the end of that epoch; after the loop over the epoch it is the start of the
        next one. Save the job's epoch next to the state inside the loop, and epoch + 1 after the loop. In the last step
        of an epoch without drop_last, some ranks may have no batch left and have finished their loop.

        If DataLoader workers iterate, only they know the position, and this is a UsageError: use torchdata's
        StatefulDataLoader, which asks them. A worker knows its own batches alone: its state can be loaded with as many
        ranks and workers.
        """
        of = {"store": self._table.uri, "table": self._table.params["table"], "snapshot": self._plan.snapshot,
              "plan_hash": self._plan.hash, "plan": dict(self._plan.parts), "drop_last": self._drop_last}
        return self._state.save(of, self._shard_count(), self._rank.find().world)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration continues from a state_dict of the same plan; later ones start at the first batch of their
        epoch. If the table has new snapshots since, open it with ``version=state["snapshot"]``; this is not needed if
        it was opened at a branch or version. If the state is the end of an epoch, the next iteration gives no batch,
        and the one after it reads the next epoch.

        UsageError: the state has another plan, or another order because drop_last differs; the message says what
        differs. Running iterations do not change.
        """
        self._state.load(state, self._plan, self._drop_last, lambda: self._rank.find().world)

    def _shard_count(self, world: int | None = None) -> int:
        """In how many shards an epoch is read: those of a state, else those asked for, else the world size, which is
        looked up unless it is given."""
        for shards in (self._state.shards(), self._shards, world):
            if shards is not None:
                return shards
        return self._rank.find().world

    def __len__(self) -> int:
        """How many batches a whole epoch gives this rank. With drop_last it is the same on all ranks; without it ranks
        differ by one at most. Of an epoch of which n batches of the global order have been given, (all batches - n) //
        world size are left with drop_last."""
        rank, world = self._rank.find()
        rows, size = self._plan.rows, self._batch_size
        return rows // size // world if self._drop_last else len(range(rank, -(-rows // size), world))

    def __iter__(self) -> EpochIterator[T]:
        rank, world = self._rank.find()
        info = _worker.info()
        worker, workers = (info.id, info.num_workers) if info is not None else (0, 1)
        start, begin, moved = self._state.begin()
        # DataLoader takes its workers in turns: worker w of n gives every n-th of this rank's batches.
        options = {
            "uri": self._table.root, "plan": self._plan.text, "rank": rank, "world": world, "worker": worker,
            "rank_workers": workers, "shards": self._shard_count(world), "drop_last": self._drop_last, **self._options,
            **_engine.recorded(self._job),
        }
        return EpochIterator(options, start, begin, self._plan.batches, world, self._give, moved, self._meter)
