"""The order of batches: what ranks, workers and restarts give together is what one process gives alone, each row
once."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import random

import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import dsistore
from dsistore import Shuffle
from dsistore.torch import TorchDataset

from conftest import make_rows
from programs import dsi

WORLDS = [1, 2, 3, 6, 8]
# Rows of each ingest and their partitions: segments of very different sizes, tiny ones among them.
INGESTS = [(400, ["a", "b"]), (1, ["a"]), (90, ["b", "c"]), (7, ["c"]), (2, ["a", "d"]), (230, ["d"])]
ROWS = sum(n for n, _ in INGESTS)
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["torch"])


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A table of several partitions and segments, and its ids in the order in which they are stored."""
    store = dsistore.open(tmp_path_factory.mktemp("order"))
    r = random.Random(11)
    ids = itertools.count()
    stored: dict[str, list[int]] = {}
    for rows, partitions in INGESTS:
        table = pa.table({
            "id": [next(ids) for _ in range(rows)],
            "session": [r.randrange(1 + rows // 6) for _ in range(rows)],
            "ds": [partitions[i % len(partitions)] for i in range(rows)],
            "list": [[i, i + 1] for i in range(rows)],
        })
        store.ingest("t", table, session_key="session", time_key="id", partition_by="ds")
        for row in sorted(table.to_pylist(), key=lambda x: (x["ds"], x["session"], x["id"])):
            stored.setdefault(row["ds"], []).append(row["id"])
    return store.table("t"), [i for ds in sorted(stored) for i in stored[ds]]


def ids_of(batch) -> list[int]:
    return batch.keys["id"].tolist()


def digest(batches) -> str:
    return hashlib.sha256(json.dumps(batches).encode()).hexdigest()


def data(table, **options) -> TorchDataset:
    return table.torch(["id", "list"], **options)


def epochs_alone(table, n, shards, **options) -> list[list[list[int]]]:
    """The batches of the first epochs as one process reads them without a break."""
    alone = data(table, rank=0, world_size=1, shards=shards, **options)
    return [[ids_of(b) for b in alone] for _ in range(n)]


def test_the_order_without_shuffle_is_that_of_the_table(parts):
    table, stored = parts
    (batches,) = epochs_alone(table, 1, 1, batch_size=64)
    assert [i for b in batches for i in b] == stored
    assert [len(b) for b in batches] == [64] * (ROWS // 64) + [ROWS % 64]


def over(state: dict) -> dict:
    """The state after the loop over an epoch, of one that was taken at the epoch's last batch."""
    assert state["global_position"] > 0
    return {**state, "epoch": state["epoch"] + 1, "global_position": 0}


class Job:
    """Ranks that train in step, are stopped anywhere, and go on as another number of ranks."""

    def __init__(self, table, random_state: random.Random, **options):
        self.table, self.random, self.options = table, random_state, options
        self.state: dict | None = None
        self.given: list[tuple[int, int, list[int]]] = []  # epoch, place in the epoch, ids

    def run(self, world: int, steps: int) -> None:
        ranks = [data(self.table, rank=r, world_size=world, **self.options) for r in range(world)]
        if self.state is not None:
            for d in ranks:
                d.load_state_dict(json.loads(json.dumps(self.state)))
        running = [iter(d) for d in ranks]
        for _ in range(steps):
            batches = [next(it, None) for it in running]
            self.given += [(b.epoch, b.index, ids_of(b)) for b in batches if b is not None]
            states = [d.state_dict() for d in ranks]
            if self.options["drop_last"]:  # a collective after each batch never hangs
                assert len({b is None for b in batches}) == 1, [b is None for b in batches]
            # All stand at the same place; those that had none left have gone on from an epoch's end to the next one's
            # begin.
            for b, s in zip(batches, states):
                assert s == (states[0] if (b is None) == (batches[0] is None) else over(states[0])), (states[0], s)
            if batches[0] is None or batches[-1] is None:
                running = [iter(d) for d in ranks]
        self.state = self.random.choice(ranks).state_dict()


@pytest.mark.parametrize("seed", range(24))
def test_restarts_with_other_world_sizes(parts, seed):
    table, stored = parts
    r = random.Random(seed)
    options = {
        "batch_size": r.choice([5, 16, 31, 64, 400]),
        "shuffle": [None, Shuffle("session", 2), Shuffle("row", 3), "session"][seed % 4],
        "seed": r.randrange(1000), "drop_last": seed % 8 >= 4, "workers": r.choice([1, 2]),
    }
    job = Job(table, r, **options)
    shards = world = r.choice(WORLDS)
    if r.random() < 0.5:
        shards = job.options["shards"] = r.choice([1, 4, 12])
    for _ in range(r.randrange(2, 7)):
        job.run(world, r.randrange(0, 2 + 2 * ROWS // options["batch_size"] // world))
        world = r.choice(WORLDS)
    epochs = 1 + max((e for e, _, _ in job.given), default=0)
    alone = epochs_alone(table, epochs, shards, **{k: v for k, v in options.items() if k != "shards"})
    want = [(e, i, ids) for e, batches in enumerate(alone) for i, ids in enumerate(batches)]
    if options["drop_last"]:  # but for what no round of all ranks had a place for, at the end of an epoch
        given = {(e, i) for e, i, _ in job.given}
        last = {e: max(i for d, i in given if d == e) for e, _ in given}
        assert all(len(alone[e]) - 1 - i < max(WORLDS) for e, i in last.items() if e + 1 < epochs)
        want = [w for w in want if w[0] in last and w[1] <= last[w[0]]]
    assert job.given == want[: len(job.given)] and digest(job.given) == digest(want[: len(job.given)]), options
    for batches in alone:
        got = [i for b in batches for i in b]
        left_out = ROWS % options["batch_size"] if options["drop_last"] else 0
        assert len(got) == len(set(got)) == ROWS - left_out and set(got) <= set(stored)
    if options["shuffle"] is not None and epochs > 1:
        assert alone[0] != alone[1]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_state_is_the_same_on_all_ranks_to_the_end(parts, world, drop_last):
    """Also where some ranks give a batch fewer, and where there are more ranks than batches: with drop_last they give
    none."""
    table, _ = parts
    for batch_size in (100, 243, 365):
        ranks = [
            data(table, batch_size=batch_size, rank=r, world_size=world, drop_last=drop_last) for r in range(world)
        ]
        running = [iter(d) for d in ranks]
        batches = -(-ROWS // batch_size) if not drop_last else ROWS // batch_size // world * world
        for _ in range(-(-batches // world)):
            given = [next(it, None) for it in running]
            states = [d.state_dict() for d in ranks]
            assert all(s == (states[0] if b is not None else over(states[0])) for b, s in zip(given, states))
            assert given[0] is not None and not (drop_last and None in given)
        assert all(next(it, None) is None for it in running)
        state = ranks[0].state_dict()
        assert all(d.state_dict() == state for d in ranks) and (state["epoch"], state["global_position"]) == (1, 0)
        assert sum(len(d) for d in ranks) == batches and (not drop_last or len({len(d) for d in ranks}) == 1)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [2, 3, 5])
def test_drop_last_gives_all_ranks_as_many(parts, world, workers):
    """Of 11 whole batches of an epoch, also where a job of one process goes on as several from any of them."""
    table, _ = parts
    options = {"batch_size": 65, "drop_last": True, "shuffle": "session"}
    (alone,) = epochs_alone(table, 1, 1, **options)
    assert len(alone) == 11
    for begin in (0, 1, 5, 8, 10):
        given = []
        for rank in range(world):
            d = data(table, rank=rank, world_size=world, shards=1, **options)
            assert len(d) == 11 // world
            d.load_state_dict({**d.state_dict(), "global_position": begin})
            batches = d if workers == 0 else DataLoader(
                d, batch_size=None, num_workers=workers, multiprocessing_context=FORKSERVER)
            given.append([ids_of(b) for b in batches])
        rounds = (11 - begin) // world
        assert [len(g) for g in given] == [rounds] * world
        assert [ids for turn in zip(*given) for ids in turn] == alone[begin:begin + rounds * world]


def test_what_an_iteration_begins_with(parts):
    table, stored = parts
    d = data(table, batch_size=100, shuffle="row", rank=0, world_size=1)
    epochs = epochs_alone(table, 3, 1, batch_size=100, shuffle="row")

    def first():
        return ids_of(next(iter(d)))

    at_begin = d.state_dict()
    assert (at_begin["epoch"], at_begin["global_position"]) == (0, 0)
    assert first() == first() == epochs[0][0]  # a look at the first batch loses nothing
    running = iter(d)
    for want in epochs[0][:3]:
        assert ids_of(next(running)) == want
    middle = d.state_dict()
    assert middle["global_position"] == 3
    d.set_epoch(2)
    assert (d.state_dict()["epoch"], d.state_dict()["global_position"]) == (2, 0)
    assert ids_of(next(running)) == epochs[0][3]  # what runs is not touched, and no longer moves the state
    assert d.state_dict()["epoch"] == 2 and first() == epochs[2][0]
    d.load_state_dict(middle)
    assert d.state_dict() == middle
    assert ids_of(next(running)) == epochs[0][4] and d.state_dict() == middle
    assert [ids_of(b) for b in d] == epochs[0][3:]  # goes on
    assert d.state_dict()["epoch"] == 1 and [ids_of(b) for b in d] == epochs[1]
    d.load_state_dict(middle)
    assert first() == epochs[0][3] and first() == epochs[0][0]  # goes on once
    d.load_state_dict(at_begin)
    assert [ids_of(b) for b in d] == epochs[0]
    # An epoch whose last batch was given is over, whether or not somebody asked for one more.
    d.set_epoch(0)
    for _ in zip(epochs[0], d):
        pass
    assert (d.state_dict()["epoch"], d.state_dict()["global_position"]) == (0, 8) and first() == epochs[1][0]


def test_states_that_make_no_sense(parts):
    table, _ = parts
    d = data(table, batch_size=100)
    good = d.state_dict()
    for change in ({"format": 2}, {"epoch": -1}, {"epoch": "1"}, {"epoch": 2**63}, {"global_position": None},
                   {"global_position": 9}, {"shards": True}, {"shards": 0}, {"shards": 2**70}, {"plan_hash": "0"},
                   {"begin": "0"}, {"begin": -1}, {"begin": 1}):
        with pytest.raises(dsistore.UsageError, match=next(iter(change)).split("_")[0]):
            d.load_state_dict({**good, **change})
    for no_state in ({}, [], None, "x"):
        with pytest.raises(dsistore.UsageError, match="state"):
            d.load_state_dict(no_state)
    assert d.state_dict() == good
    for epoch in (-1, 1.5, True, 2**63):
        with pytest.raises(dsistore.UsageError, match="epoch"):
            d.set_epoch(epoch)


def test_a_state_of_another_order_is_refused(parts):
    """Shards are cut of the batches, and drop_last leaves one out: with one shard that changes nothing before it."""
    table, _ = parts
    options = {"shuffle": "row", "rank": 0, "world_size": 1}
    assert ROWS % 65
    for size in (65, 1):
        for shards in (1, 3):
            for drop_last in (False, True):
                d = data(table, batch_size=size, shards=shards, drop_last=drop_last, **options)
                other = data(table, batch_size=size, shards=shards, drop_last=not drop_last, **options)
                state = d.state_dict()
                if size == 65 and shards == 3:
                    with pytest.raises(dsistore.UsageError, match=f"drop_last={drop_last}"):
                        other.load_state_dict(state)
                    continue
                other.load_state_dict(state)
                assert ids_of(next(iter(other))) == ids_of(next(iter(d)))
    d.load_state_dict({k: v for k, v in state.items() if k != "drop_last"})  # of an older package


def test_what_differs_from_the_plan_of_a_state(tmp_path):
    """The error names it; a job that opens what it had goes on."""
    store = dsistore.open(tmp_path)
    store.ingest("t", make_rows(1, 400), session_key="session_id")
    dsi("branch", "create", tmp_path, "t", "exp")
    options = {"features": ["user_*"], "labels": "click", "batch_size": 64, "shuffle": "session", "seed": 3}

    def dataset(table, **changed):
        return table.torch(**{**options, **changed}, rank=0, world_size=1)

    tables = {"newest": store.table("t"), "branch": store.table("t", "exp"), "version": store.table("t", 1)}
    states, rest = {}, {}
    for how, table in tables.items():
        running = iter(d := dataset(table))
        next(running), next(running)
        states[how] = json.loads(json.dumps(d.state_dict()))
        rest[how] = [b.sparse.values.tolist() for b in running]
    assert len(json.dumps(states["branch"])) < 1000
    store.ingest("t", make_rows(2, 80), session_key="session_id")
    again = {"branch": store.table("t", branch="exp"), "version": store.table("t", version=1),
             "newest": store.table("t", version=states["newest"]["snapshot"])}
    for how, table in again.items():
        d = dataset(table)
        d.load_state_dict(states[how])
        assert [b.sparse.values.tolist() for b in d] == rest[how] != []
    with pytest.raises(dsistore.UsageError, match=r"snapshot \(2, now 3\).*version=state\[\"snapshot\"\]") as e:
        dataset(store.table("t")).load_state_dict(states["newest"])
    assert "features" not in str(e.value)
    for changed, said in (
        ({"batch_size": 65}, r"batch_size \(64, now 65\)"), ({"seed": 4}, r"seed \(3, now 4\)"),
        ({"features": "user_list"}, "features"), ({"filter": "click = 1"}, "filter"), ({"shuffle": "row"}, "shuffle"),
        ({"output": "ikjt"}, "output"), ({"transforms": {"user_list": "first(1)"}}, "transforms"),
        ({"integers": "dense_b"}, "features, integers|integers, features"), ({"labels": "dense_b"}, "labels.*features"),
        ({"output": "ikjt", "expand": "user_list"}, "expand.*output")):
        with pytest.raises(dsistore.UsageError, match=f"differ: {said}$|differ: .*{said}") as e:
            dataset(again["version"], **changed).load_state_dict(states["version"])
        assert "version=" not in str(e.value)
    with pytest.raises(dsistore.UsageError, match="branch"):
        dataset(again["version"]).load_state_dict(states["branch"])


def rank_of_environment(uri, rank, world, state, steps, answers) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    d = data(dsistore.open(uri).table("t"), batch_size=32, shuffle="session", seed=5)
    if state is not None:
        d.load_state_dict(state)
    given = [(b.index, ids_of(b)) for _, b in zip(range(steps), d)]
    answers.put((given, d.state_dict()))


def test_processes_take_their_rank_from_the_environment(parts):
    table, _ = parts
    given, state = {}, None
    for world, steps in ((3, 4), (2, 100)):
        answers = FORKSERVER.Queue()
        ranks = [
            FORKSERVER.Process(target=rank_of_environment, args=(table.store.uri, rank, world, state, steps, answers))
            for rank in range(world)
        ]
        for p in ranks:
            p.start()
        got = [answers.get(timeout=120) for _ in ranks]
        for p in ranks:
            p.join()
        assert all(a[1] == got[0][1] for a in got)
        state = got[0][1]
        for index, ids in (b for a in got for b in a[0]):
            assert index not in given
            given[index] = ids
    (alone,) = epochs_alone(table, 1, 3, batch_size=32, shuffle="session", seed=5)
    assert [given[i] for i in range(len(given))] == alone


def saved(table, epoch: int, steps: int, **options) -> dict:
    """The state of a job that stands after some batches of an epoch."""
    d = data(table, **options)
    d.set_epoch(epoch)
    running = iter(d)
    for _ in range(steps):
        next(running)
    return json.loads(json.dumps(d.state_dict()))


@pytest.mark.parametrize("workers", ["none", "DataLoader", "in workers", "that persist"])
@pytest.mark.parametrize("steps", [5, 12])
def test_the_loop_that_everyone_writes(parts, workers, steps):
    """load_state_dict, then set_epoch of each epoch from the state's on. 12 batches/epoch."""
    table, _ = parts
    options = {"batch_size": 64, "shuffle": "session", "rank": 0, "world_size": 1}
    want = epochs_alone(table, 4, 1, batch_size=64, shuffle="session")
    state = saved(table, 1, steps, **options)
    assert (state["epoch"], state["global_position"]) == (1, steps)
    d = data(table, **options)
    context = {"multiprocessing_context": FORKSERVER, "persistent_workers": workers == "that persist"}
    loader = d if workers == "none" else DataLoader(
        d, batch_size=None, **({"num_workers": 2, **context} if workers != "DataLoader" else {}))
    d.load_state_dict(state)
    for epoch in range(state["epoch"], 4):
        d.set_epoch(epoch)
        assert d.state_dict() == ({**state} if epoch == 1 else {**state, "epoch": epoch, "global_position": 0})
        assert [ids_of(b) for b in loader] == want[epoch][steps if epoch == 1 else 0:]
    d.set_epoch(1)  # it went on there once
    assert [ids_of(b) for b in loader] == want[1]
    for other in (0, 2):
        d.load_state_dict(state)
        d.set_epoch(other)
        assert [ids_of(b) for b in loader] == want[other]
        d.load_state_dict(state)
        d.set_epoch(other)
        d.set_epoch(1)  # set anew, it begins
        assert [ids_of(b) for b in loader] == want[1]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world", [1, 3])
def test_a_job_that_saves_at_any_step(parts, world, drop_last):
    """It saves its own epoch too, and sets each from there on: every batch is given once, whichever step was the
    last."""
    table, _ = parts
    options = {"batch_size": 65, "drop_last": drop_last, "shuffle": "session"}  # 11 batches and a short one
    epochs, turns = 3, {(1, False): 12, (1, True): 11, (3, False): 4, (3, True): 3}[world, drop_last]

    def run(checkpoint, steps=None):
        """The batches that the ranks give, up to a step of the job, and the checkpoints of all of them there."""
        ranks = [data(table, rank=r, world_size=world, **options) for r in range(world)]
        for d in ranks if checkpoint else ():
            d.load_state_dict(checkpoint["data"])
        given = []
        for epoch in range(checkpoint["epoch"] if checkpoint else 0, epochs):
            for d in ranks:
                d.set_epoch(epoch)
            for batches in itertools.zip_longest(*ranks):
                given += [(epoch, b.epoch, b.index, ids_of(b)) for b in batches]
                if len(given) == (steps or 0) * world:
                    return given, [{"epoch": epoch, "data": json.loads(json.dumps(d.state_dict()))} for d in ranks]
        return given, [{"epoch": epochs, "data": d.state_dict()} for d in ranks]

    whole, over = run(None)
    assert len(whole) == epochs * turns * world and all(c["data"] == over[0]["data"] for c in over)
    for steps in range(1, epochs * turns + 1):
        begun, checkpoints = run(None, steps)
        assert begun == whole[:steps * world] and all(c == checkpoints[0] for c in checkpoints)
        for place in {0, world - 1}:
            rest, _ = run(checkpoints[place])
            assert rest == whole[steps * world:], steps


@pytest.mark.parametrize("drop_last", [False, True])
def test_what_follows_the_last_batch(parts, drop_last):
    """The state of an epoch's last batch is its end: of that epoch nothing comes, for any world size, and then the next
    one."""
    table, _ = parts
    options = {"batch_size": 65, "drop_last": drop_last, "shards": 1, "shuffle": "row"}
    want = epochs_alone(table, 3, 1, batch_size=65, shuffle="row", drop_last=drop_last)

    def at(d):
        state = d.state_dict()
        return state["epoch"], state["global_position"]

    states = []
    for world in (1, 2, 3, 5):
        d = data(table, rank=0, world_size=world, **options)
        d.set_epoch(1)
        given = len(d)
        assert given == (len(want[1]) // world if drop_last else -(-len(want[1]) // world))
        running = iter(d)
        for _ in range(given):
            next(running)
        states.append(json.loads(json.dumps(d.state_dict())))
        assert next(running, None) is None and at(d) == (2, 0)
        assert next(running, None) is None and at(d) == (2, 0)
    assert all(s == states[0] for s in states) and states[0]["epoch"] == 1
    end = (1, states[0]["global_position"])
    for world in (1, 2, 3, 5):
        for rank in range(world):
            d = data(table, rank=rank, world_size=world, **options)
            for _ in range(2):  # loaded again, it is there again
                d.load_state_dict(states[0])
                assert at(d) == end and d.state_dict() == states[0] and len(d) > 0
                running = iter(d)
                assert at(d) == end and list(running) == [] == list(running) and at(d) == (2, 0)
            assert [ids_of(b) for b in d] == want[2][rank:len(want[2]) // world * world if drop_last else None:world]
            d.load_state_dict(states[0])
            d.set_epoch(1)
            assert at(d) == end and list(d) == []  # the usual loop
            d.load_state_dict(states[0])
            for other in (2, 0, 1):  # away from it, and back: anew
                d.set_epoch(other)
                assert at(d) == (other, 0) and ids_of(next(iter(d))) == want[other][rank]
            d.set_epoch(2)
            d.load_state_dict(states[0])  # what was loaded goes before what was set
            assert list(d) == []
            d.load_state_dict(states[0])
            left, running = iter(d), iter(d)  # one that was not even begun
            assert ids_of(next(running)) == want[2][rank] and list(left) == [] and at(d) == (2, world)


def test_a_loop_that_is_left_at_the_last_batch(parts):
    """The epoch is over for the next loop, as it is for a job that goes on from there."""
    table, _ = parts
    want = epochs_alone(table, 3, 1, batch_size=100, shuffle="row")
    d = data(table, batch_size=100, shuffle="row", rank=0, world_size=1)

    def at():
        return d.state_dict()["epoch"], d.state_dict()["global_position"]

    def leave(epoch):
        running = iter(d)
        assert [ids_of(next(running)) for _ in want[epoch]] == want[epoch] and at() == (epoch, 8)
        return running

    leave(0)
    leave(1)
    d.set_epoch(2)
    assert at() == (2, 0)
    running = leave(2)
    d.set_epoch(2)  # once more
    assert at() == (2, 0) and list(running) == [] and at() == (2, 0)
    running = leave(2)
    d.set_epoch(3)  # what runs is not touched, and moves nothing any more
    assert at() == (3, 0) and list(running) == [] and at() == (3, 0)


def test_setting_the_epoch_that_runs_changes_nothing(parts):
    table, _ = parts
    (want,) = epochs_alone(table, 1, 1, batch_size=64, shuffle="row")
    d = data(table, batch_size=64, shuffle="row", rank=0, world_size=1)
    running = iter(d)
    assert [ids_of(next(running)) for _ in range(3)] == want[:3]
    d.set_epoch(0)
    assert d.state_dict()["global_position"] == 3
    assert [ids_of(b) for b in running] == want[3:] and d.state_dict()["epoch"] == 1
    d.set_epoch(0)
    assert [ids_of(b) for _, b in zip(range(2), d)] == want[:2]
    d.set_epoch(0)
    assert [ids_of(b) for b in d] == want  # as without set_epoch: what was left begins again
