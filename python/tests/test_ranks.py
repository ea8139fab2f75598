"""Ranks as PyTorch's programs have them: torch.multiprocessing.spawn, init_process_group, and DataLoaders with workers
of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import pickle
import re
import subprocess
import sys
import unittest.mock

import pyarrow as pa
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, IterableDataset

import dsistore
from dsistore.torch import TorchDataset

ROWS = 700
WORLD = 2
OPTIONS = {"batch_size": 32, "shuffle": "session", "seed": 3}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("ranks")
    rows = pa.table({"id": range(ROWS), "session": [i // 9 for i in range(ROWS)], "list": [[i] for i in range(ROWS)]})
    dsistore.open(path).ingest("t", rows, session_key="session", time_key="id")
    return str(path)


def data(store: str, **options) -> TorchDataset:
    return dsistore.open(store).table("t").torch(["id", "list"], **{**OPTIONS, **options})


def ids_of(batches) -> list[list[int]]:
    return [b.keys["id"].tolist() for b in batches]


def workers(of: TorchDataset, context: str, persistent: bool = False, n: int = 2) -> DataLoader:
    return DataLoader(of, batch_size=None, num_workers=n, multiprocessing_context=context,
                      persistent_workers=persistent)


def rank_main(rank: int, store: str, rendezvous: str, sent: TorchDataset, forks: TorchDataset, out: str) -> None:
    """A rank of a job. It writes what each kind of dataset gives it: {case: [len, batches of an epoch, ...]}."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["torch"])
    before = data(store)
    assert len(before) == -(-ROWS // 32)  # nobody has said yet that there are others
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD)
    given: dict[str, list] = {}

    def epochs(case: str, of: TorchDataset, loader, n: int) -> None:
        given[case] = [len(of)]
        for epoch in range(n):
            of.set_epoch(epoch)
            given[case].append(ids_of(loader))

    made = data(store)
    epochs("alone", made, made, 1)
    epochs("spawn", made, workers(made, "spawn"), 1)
    epochs("forkserver, persistent", before, workers(before, "forkserver", persistent=True), 2)
    # What was sent from a process that was no rank; where it goes on was set there, for all ranks.
    given["sent"] = [len(sent), ids_of(workers(sent, "forkserver"))]
    torch.manual_seed(rank)  # as programs do whose ranks augment differently
    batches = ids_of(workers(forks, "fork"))
    given["sent, fork"] = [len(forks), batches]
    whole = data(store, drop_last=True)
    epochs("drop_last", whole, workers(whole, "forkserver"), 1)
    other = data(store, rank=1 - rank, world_size=WORLD)
    epochs("said", other, workers(other, "forkserver"), 1)
    pathlib.Path(out, f"{rank}.json").write_text(json.dumps(given))
    dist.barrier()
    dist.destroy_process_group()


def test_ranks_with_workers_share_an_epoch(store, tmp_path, monkeypatch):
    """The pattern of PyTorch's DDP tutorial. A cluster's scheduler has its own idea of RANK and WORLD_SIZE."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    (alone,) = [ids_of(data(store, rank=0, world_size=1, shards=WORLD))]
    later = data(store, rank=0, world_size=1, shards=WORLD)
    later.set_epoch(1)
    alone_later = ids_of(later)
    sent = data(store, shards=WORLD)
    sent.load_state_dict({**sent.state_dict(), "global_position": 6})
    forks = data(store, shards=WORLD)
    forks.load_state_dict(sent.state_dict())
    mp.spawn(rank_main, args=(store, str(tmp_path / "rendezvous"), sent, forks, str(tmp_path)), nprocs=WORLD)
    ranks = [json.loads((tmp_path / f"{r}.json").read_text()) for r in range(WORLD)]

    def together(case: str, epoch: int = 0) -> list[list[int]]:
        """The batches of all ranks in their order: they take turns."""
        parts = [r[case][1 + epoch] for r in ranks]
        return [b for i in range(max(map(len, parts))) for part in parts for b in part[i:i + 1]]

    for case in ("alone", "spawn", "forkserver, persistent"):
        assert together(case) == alone, case
        assert [r[case][0] for r in ranks] == [len(r[case][1]) for r in ranks] == [11, 11], case
        assert sorted(i for b in together(case) for i in b) == list(range(ROWS)), case
    assert together("forkserver, persistent", 1) == alone_later != alone
    for case in ("sent", "sent, fork"):
        assert together(case) == alone[6:] and [r[case][0] for r in ranks] == [11, 11], case
    assert together("drop_last") == alone[:20] and [r["drop_last"][0] for r in ranks] == [10, 10]
    ranks.reverse()
    assert together("said") == alone


def torchrun_main(store: str, out: str) -> None:
    """A program that torchrun starts, and that never makes a process group."""
    of = data(store)
    given = [len(of), ids_of(workers(of, "spawn", n=1))]
    pathlib.Path(out, f"{os.environ['RANK']}.json").write_text(json.dumps(given))


def test_ranks_of_torchrun(store, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        f"import test_ranks\nif __name__ == '__main__':\n    test_ranks.torchrun_main({store!r}, {str(tmp_path)!r})\n")
    path = [str(pathlib.Path(dsistore.__file__).parent.parent), str(pathlib.Path(__file__).parent)]
    subprocess.run([
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node",
        str(WORLD), "--master-port", "0",
        str(script)
    ], check=True, timeout=300, env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"},
                   capture_output=True, text=True)
    parts = [json.loads((tmp_path / f"{r}.json").read_text()) for r in range(WORLD)]
    assert [n for n, _ in parts] == [len(batches) for _, batches in parts] == [11, 11]
    assert sorted(i for _, batches in parts for b in batches for i in b) == list(range(ROWS))


def test_a_pickle_has_the_rank_of_the_process_that_made_it(store, monkeypatch):
    def place(of: TorchDataset) -> tuple[int, list[int]]:
        return len(of), [b.index for b in of]

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    of_rank = pickle.dumps(data(store))
    said = pickle.dumps(data(store, rank=2, world_size=11))
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    share = (6, list(range(1, 22, 4)))
    again = pickle.loads(of_rank)
    assert place(again) == share  # where nothing says otherwise
    assert place(pickle.loads(pickle.dumps(again))) == share  # also at one remove
    assert place(pickle.loads(said)) == (2, [2, 13])
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "5")
    assert place(pickle.loads(of_rank)) == (4, [3, 8, 13, 18])  # another rank's process says who it is
    assert place(pickle.loads(said)) == (2, [2, 13])  # and what was said goes before it
    monkeypatch.delenv("WORLD_SIZE")
    for of in (pickle.loads(of_rank), data(store)):
        with pytest.raises(dsistore.UsageError, match="RANK.*WORLD_SIZE"):
            len(of)
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(dsistore.UsageError, match="WORLD_SIZE.*many"):
        len(data(store))


class MadeInWorker(IterableDataset):
    """Makes a dataset where it is iterated, in each environment and with its options. Gives its rows, or its error."""

    def __init__(self, store: str, cases: tuple[tuple[dict[str, str], dict[str, int]], ...]):
        self.store, self.cases = store, cases

    def __iter__(self):
        for variables, options in self.cases:
            with unittest.mock.patch.dict(os.environ, variables):
                try:
                    yield sum(b.rows for b in data(self.store, **options))
                except dsistore.UsageError as e:
                    yield str(e)


GUESS = "DataLoader worker.*rank= and world_size="


def made_in_worker(store: str, *cases: tuple[dict[str, str], dict[str, int]]) -> list[int | str]:
    """What a worker gives in each environment, with options."""
    return list(DataLoader(MadeInWorker(store, cases), batch_size=None, num_workers=1, multiprocessing_context="spawn"))


def made_in_worker_of(rank: int, store: str) -> None:
    """A process of mp.spawn, which may be a rank."""
    says, rows = made_in_worker(store, ({}, {}), ({}, {"rank": rank, "world_size": 1}))
    assert re.search(GUESS, says) and rows == ROWS


def test_a_dataset_made_in_a_worker_does_not_guess(store):
    """The rank of the worker's parent is not known there, unless it is in the environment."""
    tasks = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # of launchers that set no RANK
    alone, rank, *launched = made_in_worker(store, ({}, {}), ({"RANK": "1", "WORLD_SIZE": "2"}, {}),
                                            *(({name: n}, {}) for n in "12" for name in tasks))
    assert (alone, rank) == (ROWS, 11 * 32 - (-ROWS % 32))  # alone: of a program that is no rank
    assert launched[:3] == [ROWS] * 3 and all(re.search(GUESS, says) for says in launched[3:])
    mp.spawn(made_in_worker_of, args=(store,), nprocs=1)
