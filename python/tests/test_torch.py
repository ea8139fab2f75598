import ast
import copy
import functools
import inspect
import json
import multiprocessing
import pickle
import re
import threading
import warnings

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import dsistore
from conftest import ROWS
from dsistore import Shuffle, _engine
from dsistore._dataset import BatchOptions, Options
from dsistore.torch import TorchDataset

LISTS = ["user_list", "user_history", "item_list"]
ALL = [*LISTS, "scored", "dense_a", "dense_b", "vector", "numbers", "@keys", "request_id"]


def expanded(batch, part):
    """{feature: the lists of every row} of one kind."""
    j = getattr(batch, part).contiguous()
    inverses = [g.inverse.tolist() for g in batch.groups]
    offsets, values = j.offsets.tolist(), j.values.tolist()
    groups = [len(inverses)] * len(j.keys) if j.groups is None else j.groups.tolist()
    out, first = {}, 0
    for key, n, count, group in zip(j.keys, j.sizes, j.counts, groups, strict=True):
        lists = [values[offsets[first + i]: offsets[first + i + 1]] for i in range(n)]
        first += n
        assert sum(map(len, lists)) == count and key not in out
        if group < len(inverses):
            assert key in batch.groups[group].keys and batch.groups[group].slots == n
            assert len(inverses[group]) == batch.rows and sorted(set(inverses[group])) == list(range(n))
            lists = [lists[s] for s in inverses[group]]
        assert len(lists) == batch.rows
        out[key] = lists
        one = j.feature(key)
        assert one.keys == [key] and one.values.tolist() == [
            x for i in range(n) for x in values[offsets[first - n + i]:offsets[first - n + i + 1]]
        ]
        assert one.offsets[0] == 0 and one.offsets[-1] == count and torch.equal(one.lengths, one.offsets.diff().int())
    return out


def check_rows(batch, want):
    """want: the source's rows of the batch, as columns of Python values."""
    for part, names in (("sparse", LISTS), ("floats", ["numbers"])):
        got = expanded(batch, part)
        for name in names:
            assert got[name] == [x or [] for x in want[name]], name
    assert expanded(batch, "weighted")["scored"] == [[e["id"] for e in x or []] for x in want["scored"]]
    dense = dict(zip(batch.dense_names, batch.dense.T))
    for name in ("dense_a", "dense_b"):
        assert dense[name].tolist() == [float(np.float32(x or 0)) for x in want[name]]
    assert batch.label_names == ["click"] and batch.labels.reshape(-1).tolist() == want["click"]
    assert batch.embeddings["vector"].tolist() == [[float(np.float32(v)) for v in x] for x in want["vector"]]
    assert batch.keys["session_id"].tolist() == want["session_id"]


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("batch_size", [1, 7, 300, 4096])
def test_every_tensor_equals_the_source(table, source, output, batch_size):
    data = table.torch(ALL, labels="click", batch_size=batch_size, output=output)
    row = 0
    n = 0
    for batch in DataLoader(data, batch_size=None):
        check_rows(batch, source.slice(row, batch.rows).to_pydict())
        row += batch.rows
        n += 1
    assert row == ROWS and n == len(data) == -(-ROWS // batch_size)


def test_ikjt_holds_less(table):
    def ids(output):
        return sum(
            len(b.sparse.values)
            for b in table.torch(LISTS, output=output))

    assert ids("ikjt") < ids("kjt")


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_shuffled_epochs(table, source, output):
    rows = {r["event_time"]: r for r in source.to_pylist()}
    data = table.torch(ALL, labels=["click"], batch_size=64, output=output, shuffle=Shuffle("session", 4), seed=3)
    orders = []
    for epoch in (0, 1, 0):
        data.set_epoch(epoch)
        order = []
        for batch in data:
            assert batch.epoch == epoch
            times = batch.keys["event_time"].tolist()
            want = [rows[t] for t in times]
            check_rows(batch, {k: [r[k] for r in want] for k in want[0]})
            order += times
        assert sorted(order) == sorted(rows)
        orders.append(order)
    assert orders[0] == orders[2] != orders[1] and orders[0] != sorted(orders[0])


def test_transforms(table, source):
    data = table.torch(["user_history", "dense_b"],
                       transforms={"user_history": "first(2)|mod(97)", "dense_b": "clamp(0, 50)"})
    batch = next(iter(data))
    assert expanded(batch, "sparse")["user_history"] == [
        [v % 97 for v in x[:2]] for x in source["user_history"].to_pylist()]
    assert batch.dense[:, 0].tolist() == [min(x, 50) for x in source["dense_b"].to_pylist()]
    with pytest.raises(dsistore.UsageError, match="clmap"):
        table.torch(["dense_b"], transforms={"dense_b": "clmap(0, 1)"})


@pytest.mark.parametrize("world", [1, 2, 3, 6, 8])
def test_ranks_read_each_row_once(table, source, world):
    def times(rank):
        data = table.torch(["@keys"], batch_size=32, rank=rank, world_size=world, shuffle="session", seed=1)
        batches = list(data)
        assert len(batches) == len(data)
        return [b.keys["event_time"].tolist() for b in batches], [b.index for b in batches]

    parts = [times(r) for r in range(world)]
    whole = {i: t for batches, indices in parts for i, t in zip(indices, batches)}
    assert sorted(t for b in whole.values() for t in b) == sorted(source["event_time"].to_pylist())
    alone = [
        b.keys["event_time"].tolist()
        for b in table.torch(["@keys"], batch_size=32, shuffle="session", seed=1, rank=0, world_size=1, shards=world)
    ]
    assert [whole[i] for i in range(len(whole))] == alone


def test_resume_with_another_world_size(table, source):
    def data(rank, world):
        return table.torch(["@keys"], batch_size=16, rank=rank, world_size=world, shuffle="session", seed=9)

    got = []
    its = [(d := data(r, 8), iter(d)) for r in range(8)]
    for _ in range(3):
        for _, it in its:
            got.append(next(it).keys["event_time"].tolist())
    states = [json.loads(json.dumps(d.state_dict())) for d, _ in its]
    assert all(s == states[0] for s in states)
    del its
    resumed = [data(r, 6) for r in range(6)]
    for d in resumed:
        d.load_state_dict(states[0])
    its2 = [iter(d) for d in resumed]
    live = list(its2)
    while live:
        for it in list(live):
            b = next(it, None)
            if b is None:
                live.remove(it)
            else:
                got.append(b.keys["event_time"].tolist())
    one = data(0, 1)
    one.load_state_dict({**states[0], "global_position": 0})
    alone = [b.keys["event_time"].tolist() for b in one]
    assert got == alone
    with pytest.raises(dsistore.UsageError, match="plan"):
        table.torch(["@keys"], batch_size=17).load_state_dict(states[0])


def test_tensors_outlive_the_loader(table, source):
    data = table.torch(LISTS, batch_size=100)
    batches = list(data)
    values = [b.sparse.values for b in batches]
    copies = [v.clone() for v in values]
    del data, batches
    assert all(torch.equal(a, b) for a, b in zip(values, copies))


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_what_is_held_of_a_batch_is_not_overwritten(table, output):
    """A piece of one tensor holds the memory of its batch, whatever kind of view it is, while others are made in what
    was given back."""
    data = table.torch([*LISTS, "dense_*", "@keys"], labels=["click"], batch_size=40, output=output, workers=2,
                       presence=True)

    def pieces(b):
        lists = [b.sparse, b.weighted, b.floats]
        return [
            b.dense[1:], b.dense.t()[0], b.dense.numpy()[::2], b.labels[:, 0], b.keys["event_time"][3:],
            *(g.inverse[2:] for g in b.groups),
            *(j.values.view(torch.uint8)[1:] if j.values.dtype == torch.int64 else j.values[1:] for j in lists),
            *(j.lengths.numpy()[5:] for j in lists), *(j.offsets.detach() for j in lists),
            *(memoryview(j.weights.numpy()) for j in lists if j.weights is not None),
        ]

    kept, copies = [], []
    for i, b in enumerate(data):
        of = pieces(b)
        k = i % len(of)
        kept.append(of[k])
        copies.append(torch.as_tensor(of[k]).clone())
    del b, of
    for _ in range(3):  # in memory that is used again
        assert sum(b.rows for b in data) == len(table)
    assert len(kept) == len(data) and all(torch.equal(torch.as_tensor(a), c) for a, c in zip(kept, copies))
    assert _engine.call("held") >= 1


def test_it_pickles(table):
    data = table.torch(["user_list", "dense_a"], batch_size=100, shuffle="row", seed=4)
    other = pickle.loads(pickle.dumps(data))
    assert other.plan == data.plan
    assert all(torch.equal(a.dense, b.dense) for a, b in zip(data, other, strict=True))
    assert copy.copy(data).state_dict() == data.state_dict()


def test_drop_last(table):
    data = table.torch(["dense_a"], batch_size=300, drop_last=True)
    assert [b.rows for b in data] == [300] * 3 and len(data) == 3


@pytest.fixture
def start_method():
    """Sets how the process starts others, as a program does at its beginning."""
    before = multiprocessing.get_start_method(allow_none=True)
    yield lambda method: multiprocessing.set_start_method(method, force=True)
    multiprocessing.set_start_method(before, force=True)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_workers(table, source, start_method, method, workers):
    """test_processes.test_forked_workers_say_what_to_do has the third way."""
    start_method(method)
    loader = DataLoader(table.torch(["@keys"], batch_size=50), batch_size=None, num_workers=workers)
    got = [t for b in loader for t in b.keys["event_time"].tolist()]
    assert got == source["event_time"].to_pylist()


def test_the_options_of_all_outputs_are_the_same():
    def options(f, without):
        return {p.name: p.default for p in inspect.signature(f).parameters.values() if p.name not in without}

    shared = options(Options, ("features", "dedup"))
    assert options(dsistore.Table.torch, ("self", "features", "columns", "output", "device", "pin_memory")) == shared
    assert {*BatchOptions.__annotations__} == {*shared, "columns"}
    for name in [*shared, "features", "columns", "output", "device"]:  # and each is explained
        assert re.search(rf"\b{name}\b", dsistore.Table.torch.__doc__), name


def test_labels_have_the_places_that_were_asked_for(table, source):
    wanted = [source["click"].to_pylist(), [np.float32(x or 0) for x in source["dense_b"].to_pylist()]]
    for features in (["user_list"], ["dense_*", "click"], "@all"):
        for names in (["click", "dense_b"], ["dense_b", "click"]):
            (batch,) = table.torch(features, labels=names, batch_size=ROWS)
            assert batch.label_names == names
            assert "dense_b" not in batch.dense_names
            for column, name in enumerate(names):
                assert batch.labels[:, column].tolist() == wanted[name == "dense_b"]


@pytest.mark.parametrize("of", ["torch", "numpy"])
def test_null_labels_are_warned_of(tmp_path, of):
    """Once for a dataset, and not where nobody can take them for 0."""
    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"x": [1, 2, 3, 4], "y": pa.array([1, None, 0, None], pa.int8()), "z": [1, 0, 1, 0]}))

    def said(**options) -> list[str]:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            list(getattr(store.table("t"), of)("x", **options))
        assert all(w.filename == __file__ for w in given)
        return [str(w.message) for w in given]

    assert [w[:50] for w in said(labels="y", batch_size=1)] == ["null labels come as 0: 1 of 1 in batch 1 (y). filt"]
    assert [w[:53] for w in said(labels=["y", "z"])] == ["null labels come as 0: 2 of 8 in batch 0 (y, z). filt"]
    for i, name in enumerate(["is it*?", "true", "In", 'a "b"']):  # the second and third are words of filters
        store.ingest(f"odd{i}", pa.table({"x": [1, 2], name: pa.array([1, None], pa.int8())}))
        odd = functools.partial(getattr(store.table(f"odd{i}"), of), "x", labels=[re.sub(r"[*?]", r"\\\g<0>", name)],
                                batch_size=1)
        with pytest.warns(UserWarning) as given:
            assert len(list(odd())) == 2
        told = re.search(r"filter=('.*?') leaves .* transforms=({.*?}) says", str(given[0].message))
        for option, rows in ({"filter": ast.literal_eval(told[1])}, 1), ({"transforms": ast.literal_eval(told[2])}, 2):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert len(list(odd(**option))) == rows
    for options in ({"labels": "z"}, {"labels": "y", "filter": "y IS NOT NULL"}, {"labels": "y", "presence": True},
                    {"labels": "y", "transforms": {"y": "fill(0)"}}):
        assert said(**options) == []


@pytest.mark.parametrize("option", [
    {"batch_size": 0}, {"batch_size": None}, {"batch_size": 1.5},
    {"batch_size": True}, {"batch_size": 2**70}, {"shuffle": True},
    {"shuffle": "session", "seed": -1}, {"shuffle": "row", "seed": 0.5},
    {"shards": 0}, {"shards": 1.5}, {"transforms": {"user_list": 3}},
    {"rank": 1}, {"world_size": 4}, {"rank": 4, "world_size": 4}, {"rank": 0, "world_size": 0},
    {"workers": 1.5}, {"memory": 2**70}, {"prefetch": -1},
    {"prefetch": 2**40}, {"workers": 2**40},
])
def test_options_that_make_no_sense(table, option):
    with pytest.raises(dsistore.UsageError, match=list(option)[-1].replace("_", "[ _]").replace(
            "prefetch", "max batches")):
        next(iter(table.torch(["user_list"], **option)))


def test_a_rank_without_a_world_is_not_guessed(table, monkeypatch):
    """One alone, in a process that has both: every rank would read the batches of rank 0."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for option in ({"world_size": 2}, {"rank": 1}):
        with pytest.raises(dsistore.UsageError, match="both, or neither"):
            table.torch(["user_list"], **option)
    assert [b.index for b in table.torch(["user_list"], batch_size=300)] == [1, 3]


def test_a_batch_that_was_not_given_comes_again(table):
    """An interrupt while a batch is made: the state that is saved then does not pass over it."""
    data = table.torch(["user_list"], batch_size=100)
    make, made = data._make, []

    def interrupted(raw):
        made.append(raw.index)
        if len(made) == 3:
            raise KeyboardInterrupt
        return make(raw)

    data._make = interrupted
    with pytest.raises(KeyboardInterrupt):
        list(data)
    state = data.state_dict()
    assert state["global_position"] == 2
    again = table.torch(["user_list"], batch_size=100)
    again.load_state_dict(state)
    assert [b.index for b in again] == list(range(2, 10))


@pytest.mark.parametrize("batch_size", [100, 500])
def test_a_thread_that_is_late_does_not_move_the_state_back(table, batch_size):
    data = table.torch(["user_list"], batch_size=batch_size)
    make, begun, go_on = data._make, threading.Event(), threading.Event()

    def late(raw):
        if raw.index == 0:
            begun.set()
            go_on.wait()
        return make(raw)

    data._make = late
    running = iter(data)
    first = threading.Thread(target=next, args=(running,))
    first.start()
    begun.wait()
    assert next(running).index == 1
    state = data.state_dict()
    go_on.set()
    first.join()
    assert data.state_dict() == state
    assert [b.index for b in running] == list(range(2, -(-ROWS // batch_size)))
    assert (data.state_dict()["epoch"], data.state_dict()["global_position"]) == (1, 0)


def test_an_epoch_iterator_is_closed_though_its_meter_is_interrupted(table, monkeypatch):
    def interrupted(handle, done):
        raise KeyboardInterrupt

    data = table.torch(["user_list"], batch_size=100)
    running = iter(data)
    next(running)
    monkeypatch.setattr(data._meter, "end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        running.close()
    assert dsistore._engine.call("open_counts")["loaders"] == 0


def test_a_partition_predicate_that_makes_no_sense(table):
    for text in ("ds =", "nothing = 1", "ds = 'a' AND"):
        with pytest.raises(dsistore.UsageError, match="partition"):
            table.torch(["dense_a"], partitions=text)
