"""The loader state of a dataset: its position in a job's epochs, and the state dictionary that holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _worker, errors
from ._epoch_start import EpochStart, Position
from ._plan import Plan

FORMAT = 1  # of state dictionaries


def number(n: Any, least: int = 0) -> bool:
    """Whether n is a number that the engine takes."""
    return isinstance(n, int) and not isinstance(n, bool) and least <= n < 2**63


class LoaderState:
    """The position that a state dictionary holds, and where the next epoch iterator begins.

        set, load -> begin: an iterator from there -> moved: after each batch -> the epoch's end -> exhausted: the next
        epoch's begin

    The newest iterator moves it, and none does once something was set. In the process that has the dataset, EpochStart
    hands what is set on to DataLoader's workers. What a worker loads is its own, as torchdata's StatefulDataLoader
    needs it.

    The epoch's end is the position (epoch, batches), for any world size, and whether or not batches are left out there.
    An iterator from there gives no batch. So the loop of a job that saved with the last batch ends at once, and the
    job's own count of epochs stays right. Only an iterator that is exhausted moves the state to the next epoch. The
    next iterator is of that epoch as soon as the last batch was given, because some loops do not ask for one more.
    """

    def __init__(self, batches: int, start: EpochStart) -> None:
        self._batches = batches  # of an epoch
        self._start = start
        self._position = Position(0, 0)
        self._begin = Position(0, 0)  # where the newest iterator took up its epoch
        # Of a worker: where to go on, and where the epoch was taken up.
        self._restored: tuple[Position, int] | None = None
        self._restored_shards: int | None = None
        self._iterator: object | None = None  # the iterator that moves _position

    def shards(self) -> int | None:
        """The shards of a loaded state, or None."""
        return self._start.shards() if self._restored_shards is None else self._restored_shards

    def set(self, at: Position, shards: int | None = None, begin: int = 0) -> None:
        """The next iterator begins at a position of an epoch that was taken up at the batch begin; shards None leaves
        them."""
        if _worker.info() is None:
            self._start.set(at, shards)
        else:
            self._restored = at, begin
            if shards is not None:
                self._restored_shards = shards
        self._position, self._begin, self._iterator = at, Position(at.epoch, begin), None

    def set_epoch(self, epoch: int) -> None:
        """The next iterator begins at the epoch's first batch, unless it is of that epoch anyway: then it stays where
        it is."""
        following = self._start.epoch() if self._restored is None else self._restored[0].epoch
        # they differ where the newest iterator is at its epoch's end
        if epoch != following or epoch != self._position.epoch:
            self.set(Position(epoch, 0))

    def begin(self) -> tuple[Position, int, Callable[[int, bool, bool], None]]:
        """Begins an iterator. Returns where, at which batch the ranks took up the epoch, and what the iterator calls at
        each move: with the batch of the global order that the job goes on with, all of them at the epoch's end, whether
        this rank has given its last batch, and whether the iterator is exhausted."""
        in_worker = _worker.info() is not None
        start = self._start.begin()
        begin = start.batch
        if self._restored is not None:
            (start, begin), self._restored = self._restored, None
            self._start.took_up(start.epoch, self._restored_shards)
        self._begin = Position(start.epoch, begin)
        this = self._iterator = object()  # and not the iterator, which would live for as long as the dataset
        over = False

        def moved(to: int, last: bool, exhausted: bool) -> None:
            nonlocal over
            if self._iterator is not this:
                return
            self._position = Position(start.epoch, to)
            if in_worker:  # one that is through waits for the others at the end
                if last:
                    self._start.given(start.epoch)
                return
            following = Position(start.epoch + 1, 0)
            if (last or to == self._batches) and not over:
                over = True
                self._start.set(following)
            if exhausted:
                self._position = following

        moved(start.batch, False, False)
        return start, begin, moved

    def save(self, of: Mapping[str, Any], shards: int, world: int) -> dict[str, Any]:
        """The state dictionary; of are the entries that say of which table and plan it is. There are world ranks."""
        working = _worker.info() is not None
        if not working and self._start.in_workers():
            raise errors.UsageError(
                "state_dict: DataLoader's workers iterate this dataset and know where they are: use num_workers=0, or "
                "torchdata's StatefulDataLoader and its state_dict; after set_epoch of another epoch the state is "
                "that epoch's begin")
        state = {
            "format": FORMAT, **of, "epoch": self._position.epoch, "global_position": self._position.batch,
            "shards": shards,
        }
        if working:  # the workers' turns go on as they were; those of ranks begin anew where a job goes on
            state["turns"] = self._turns(world)
            state["begin"] = self._begin.batch if self._begin.epoch == self._position.epoch else self._position.batch
        return state

    @staticmethod
    def _turns(world: int) -> list[int]:
        """How many ranks take turns, and how many workers of each."""
        info = _worker.info()
        return [world, 1 if info is None else info.num_workers]

    def load(self, state: Mapping[str, Any], plan: Plan, drop_last: bool, world: Callable[[], int]) -> None:
        """Goes to the position of a state dictionary of the plan. world tells the number of ranks."""
        if not isinstance(state, Mapping):
            raise errors.UsageError(f"state {state!r}: want what state_dict gave")
        if state.get("format") != FORMAT:
            raise errors.UsageError(f"state: format {state.get('format')!r}: this package reads {FORMAT}")
        for name, least in ("epoch", 0), ("global_position", 0), ("shards", 1):
            if not number(state.get(name), least):
                raise errors.UsageError(f"state: {name} {state.get(name)!r}: want {least} or more")
        if state.get("plan_hash") != plan.hash:
            raise errors.UsageError(f"state: {_differences(state, plan)}")
        saved = state.get("drop_last", drop_last)
        if saved != drop_last and state["shards"] > 1 and plan.rows % plan.parts["batch_size"]:
            raise errors.UsageError(
                f"state: it was saved with drop_last={saved}. Shards are cut of the batches that an epoch has, and so "
                "the order is another one: give what was given")
        at, begin = Position(state["epoch"], state["global_position"]), state.get("begin", state["global_position"])
        if at.batch > self._batches:
            raise errors.UsageError(f"state: global_position {at.batch}: an epoch has {self._batches} batches")
        if not number(begin) or begin > at.batch:
            raise errors.UsageError(f"state: begin {begin!r}: want 0 to global_position, {at.batch}")
        if "turns" in state and state["turns"] != (now := self._turns(world())):
            raise errors.UsageError(
                f"state: of a DataLoader's worker, of [ranks, workers] {state['turns']}, and there are {now}: a worker "
                "knows its own batches alone. Go on with as many; states of num_workers=0 suit any number of ranks")
        self.set(at, state["shards"], begin)


def _differences(state: Mapping[str, Any], plan: Plan) -> str:
    """What differs between the plan of a state dictionary and another one, and what to do."""
    was, now = state.get("plan"), plan.parts
    if not isinstance(was, Mapping) or was == now:
        return (f"it is of plan {state.get('plan_hash')}, not of {plan.hash}: features, snapshot, batch size, seed and "
                "the like must be as they were")
    differs = [name for name in now if was.get(name) != now[name]]
    values = {
        name: f"{name} ({was.get(name)}, now {now[name]})" for name in ("snapshot", "batch_size", "seed", "table")}
    text = "it is of another plan. These differ: " + ", ".join(values.get(name, name) for name in differs)
    if "snapshot" in differs:
        text += ('. Open the table as it was: store.table(name, version=state["snapshot"]). A job that opens a branch '
                 "or a version goes on whatever is added to the table")
    return text
