"""Which rank of how many a process is. Nothing here imports PyTorch: where it is not imported, there is no process
group."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _worker, errors


class Rank(NamedTuple):
    """One rank of a job."""

    rank: int
    world: int


class RankLookup:
    """The rank of a dataset. It is looked up when it is needed, because a dataset may be made before the process group
    is. The first that is found counts:

        in a DataLoader worker   1. given   2. the rank of the process that started the worker
        elsewhere                1. given   2. what ask says   3. that of the pickle   4. 0 of 1

    ask is of_process, which asks torch.distributed and the environment, or what another framework says.

    A worker must not look for itself: torch.distributed is not initialized there, and RANK may be that of the machine,
    set by a scheduler. So pickling looks the rank up in the parent, and the pickle has the result. A process that is no
    worker looks again first: it may be one of the ranks to which a program sends its dataset.
    """

    def __init__(self, rank: int | None, world: int | None, ask: Callable[[], Rank | None]):
        if (rank is None) != (world is None):
            raise errors.UsageError(f"rank {rank!r} and world_size {world!r}: give both, or neither")
        self._ask = ask
        self._given = None if rank is None or world is None else _checked(rank, world)
        self._pickled: Rank | None = None  # the rank that was found where this was pickled
        self._unpickled_by = -1  # the process

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self._given, "ask": self._ask, "pickled": None if self._given is not None else self._find()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._given, self._ask, self._pickled = state["given"], state["ask"], state["pickled"]
        self._unpickled_by = os.getpid()

    def find(self) -> Rank:
        """The rank now, in this process."""
        return self._given or self._find() or Rank(0, 1)

    def _find(self) -> Rank | None:
        if _worker.info() is None:
            return self._ask() or self._pickled
        if self._unpickled_by == os.getpid():
            return self._pickled
        # The dataset was not sent to this worker. A forked worker has the parent's process group and environment.
        found = self._ask() or self._pickled
        if found is None and _parent_may_be_a_rank():
            raise errors.UsageError(
                "a dataset made in a DataLoader worker does not know the rank of the process that started the worker: "
                "make it there, or give rank= and world_size= (0 and 1 where there is one process)")
        return found


# The number of processes of a job, as launchers set it that do not set RANK: Slurm's srun, Open MPI, and MPICH with its
# descendants.
_TASKS = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def of_process() -> Rank | None:
    """The rank of this process: in torch.distributed, else in RANK and WORLD_SIZE."""
    return _of_group() or _of_environment()


def _parent_may_be_a_rank() -> bool:
    """Whether the parent of this process, a worker, may have a process group that is not visible here. As a rule a
    parent that multiprocessing started has one, as the processes of torch.multiprocessing.spawn do, and so have the
    processes of a launcher's job. Any other program has none."""
    method = getattr(multiprocessing.current_process(), "_start_method", None)  # None: the default one
    if (method or multiprocessing.get_start_method()) == "fork":
        return False
    parent = multiprocessing.parent_process()
    return parent is not None and parent.name != "MainProcess" or any(
        os.environ.get(name, "1") != "1" for name in _TASKS)


def _of_group() -> Rank | None:
    """The rank in torch.distributed, once there is a process group."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Rank(distributed.get_rank(), distributed.get_world_size())


def _of_environment() -> Rank | None:
    """The rank in RANK and WORLD_SIZE, which torchrun sets. One without the other is an error: the rank would be a
    guess."""
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and world is None:
        return None
    try:
        return _checked(int(rank or ""), int(world or ""))
    except ValueError as e:  # a UsageError is one
        raise errors.UsageError(
            f"environment: RANK={rank or ''} WORLD_SIZE={world or ''}: want a rank and a world size, as torchrun sets "
            "them, or give rank= and world_size=") from e


def _checked(rank: int, world: int) -> Rank:
    for name, n in (("rank", rank), ("world size", world)):
        if not isinstance(n, int) or isinstance(n, bool):
            raise errors.UsageError(f"{name} {n!r}: want an integer")
    if not 0 <= rank < world:
        raise errors.UsageError(f"rank {rank} of world size {world}: a rank is from 0 to world size - 1")
    return Rank(rank, world)
