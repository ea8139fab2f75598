"""Table.jax: values and order of Table.torch, resume, ranks, and no id that is cut to 32 bits."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import dsistore
from dsistore import Shuffle
from dsistore.numpy import Masked, Ragged, Slices
from programs import run

jax = pytest.importorskip("jax")
jax.config.update("jax_platforms", "cpu")

BOUNDED = {k: "mod(100000)" for k in ("user_*", "item_list", "scored")}
FEATURES = ["user_*", "item_list", "scored", "dense_*", "vector", "numbers", "country"]


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def same(got, want) -> None:
    if isinstance(want, (Ragged, Slices, Masked)):
        assert type(got) is type(want)
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                same(a, b)
    elif want.dtype == object:
        assert got.tolist() == want.tolist()
    else:
        assert isinstance(got, jax.Array) and got.shape == want.shape
        assert np.array_equal(np.asarray(got), want)


@pytest.mark.parametrize("options", [
    {}, {"dedup": True, "presence": True, "shuffle": "session", "seed": 2}, {"dedup": "partial", "batch_size": 77},
    {"integers": "dense_b", "filter": "click = 1"}, {"shuffle": Shuffle("row", 3), "rank": 1, "world_size": 3},
    {"sparse": "dense_b", "expand": "item_list", "dedup": True, "drop_last": True}], ids=str)
def test_batches_are_those_of_numpy(table, options):
    """And those are held against torch and the source. Lists and order are the same, ids bounded to int32."""
    options = {"batch_size": 100, "labels": ["click"], "transforms": BOUNDED, **options}
    data, want = table.jax(FEATURES, **options), table.numpy(FEATURES, **options)
    assert len(data) == len(want)
    for _ in range(2):  # epochs
        batches = 0
        for got, batch in zip(data, want, strict=True):
            assert list(got) == list(batch)
            for name in batch:
                same(got[name], batch[name])
            assert got["user_list"].values.dtype == np.int32
            assert data.state_dict() == want.state_dict()
            batches += 1
        assert batches == len(data) > 0


def test_64_bits(table, x64):
    for got, want in zip(table.jax([*FEATURES, "@keys"], batch_size=100), table.numpy([*FEATURES, "@keys"],
                                                                                     batch_size=100), strict=True):
        for name in want:
            same(got[name], want[name])
        assert got["user_history"].values.dtype == got["event_time"].dtype == np.int64


def test_the_order_is_that_of_torch(table, x64):
    pytest.importorskip("torch")
    options = {"batch_size": 64, "shuffle": "session", "seed": 5, "rank": 0, "world_size": 1}
    got = [b["event_time"].tolist() for b in table.jax("@keys", **options)]
    assert got == [b.keys["event_time"].tolist() for b in table.torch("@keys", **options)]


@pytest.mark.parametrize(("transforms", "fits"), [
    ({}, False), ({"user_history": "mod(2147483648)"}, True), ({"user_history": "mod(2147483649)"}, False),
    ({"user_history": "hash(1000, seed=7) | first(3)"}, True), ({"user_history": "first(3)"}, False),
    ({"user_history": "cast(int32)"}, True), ({"user_history": "clamp(-5, 5)"}, True),
    ({"user_history": "clamp(0, 3000000000)"}, False), ({"user_history": "bucketize(1, 2)"}, True),
    ({"user_history": "mod(10) | fill(9000000000)"}, False), ({"user_history": "mod(10) | fill"}, True),
    ({"user_history": "sigrid_hash(1000)"}, True), ({"user_history": "cast(uint32)"}, False)], ids=str)
def test_no_id_is_cut(table, transforms, fits):
    if not fits:
        with pytest.raises(dsistore.UsageError, match="user_history.*jax_enable_x64"):
            table.jax("user_history", transforms=transforms)
        return
    want = table.numpy("user_history", transforms=transforms, batch_size=300)
    for got, batch in zip(table.jax("user_history", transforms=transforms, batch_size=300), want, strict=True):
        assert got["user_history"].values.dtype == np.int32
        assert np.array_equal(got["user_history"].values, batch["user_history"].values)


def test_keys_and_integers_are_not_cut(table):
    for options in ({"features": "session_id"}, {"features": "dense_a", "integers": "event_time"}):
        with pytest.raises(dsistore.UsageError, match="session_id|event_time"):
            table.jax(**options)
    next(iter(table.jax("dense_a", integers="dense_b")))  # int32


def test_resume(table):
    """A state from the middle goes on exactly, in another process' dataset and for other ranks."""
    options = {"batch_size": 50, "shuffle": "session", "seed": 1, "shards": 2,
               "transforms": {"user_history": "mod(100000)"}}

    def times(batches):
        return [b["user_history"].values.tolist() for b in batches]

    alone = times(table.jax("user_history", rank=0, world_size=1, **options))
    first = table.jax("user_history", **options)
    running = iter(first)
    head = [next(running) for _ in range(7)]
    state = json.loads(json.dumps(first.state_dict()))
    ranks = [pickle.loads(pickle.dumps(table.jax("user_history", rank=r, world_size=2, **options))) for r in (0, 1)]
    for d in ranks:
        d.load_state_dict(state)
    rest = [times(d) for d in ranks]
    assert times(head) + [rest[i % 2][i // 2] for i in range(len(alone) - 7)] == alone


def test_the_rank_is_that_of_jax(table, monkeypatch):
    monkeypatch.setenv("RANK", "4")
    monkeypatch.setenv("WORLD_SIZE", "5")
    data = table.jax("dense_a", batch_size=100)
    assert len(data) == 10
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    assert len(data) == 3 and len(list(data)) == 3
    assert [b["dense_a"].tolist() for b in data] == [
        b["dense_a"].tolist() for b in table.numpy("dense_a", batch_size=100, rank=1, world_size=3)]


def test_on_a_device(table):
    [device] = jax.devices("cpu")[:1]
    mesh = jax.sharding.SingleDeviceSharding(device)
    for where in (device, mesh):
        data = table.jax(["user_list", "dense_a", "country"], transforms={"user_list": "mod(9)"}, device=where)
        batch = next(iter(data))
        assert batch["user_list"].values.devices() == batch["dense_a"].devices() == {device}
    doubled = jax.tree.map(lambda a: a * 2, {k: v for k, v in batch.items() if k != "country"})
    assert isinstance(doubled["user_list"], Ragged)

    @jax.jit
    def total(ragged):
        return jax.numpy.sum(ragged.values)

    assert int(total(batch["user_list"])) == int(np.sum(batch["user_list"].values))


def test_memory_is_shared_and_given_back(table):
    """DLPack: no copy where the memory begins at a multiple of 64 bytes; the engine's memory is back at the end."""
    batch = next(iter(table.jax("numbers", batch_size=1000)))
    (one,) = table.numpy("numbers", batch_size=1000)
    values = one["numbers"].values
    assert values.ctypes.data % 64 == 0
    assert dsistore.jax._array(values).unsafe_buffer_pointer() == values.ctypes.data
    kept = batch["numbers"].values
    del batch
    assert np.array_equal(kept, one["numbers"].values)


WITHOUT_JAX = """
    import sys
    sys.modules["jax"] = None
    import dsistore
    table = dsistore.open(sys.argv[1]).table("ads")
    assert sum(len(b["dense_a"]) for b in table.numpy("dense_a")) == 1000
    try:
        table.jax("dense_a")
    except ImportError as e:
        print(e)
"""


def test_without_jax(store_path):
    assert "pip install" in run(WITHOUT_JAX, store_path)
