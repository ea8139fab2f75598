"""Table.numpy: the batches of Table.torch as dicts of arrays, in processes that have no PyTorch."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import dsistore
from dsistore import Shuffle, _engine
from dsistore.numpy import Masked, Ragged, Slices
from programs import run

LISTS = ["user_list", "user_history", "item_list", "scored", "numbers"]
ALL = [*LISTS, "dense_a", "dense_b", "vector", "@keys", "request_id", "country"]


def equal(got: Any, want: Any) -> None:
    """Values and element types are the same, NaN and all."""
    if isinstance(want, torch.Tensor):
        want = want.numpy()
    assert isinstance(got, np.ndarray)
    if isinstance(want, list):
        assert got.dtype == object and got.tolist() == want
    else:
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def masked(got: Any, want: Any, present: Any) -> None:
    if present is not None:
        assert isinstance(got, Masked)
        equal(got.present, present)
        got = got.values
    equal(got, want)


def check(got: dict[str, Any], want: dsistore.torch.Batch) -> None:
    """A batch of Table.numpy is that of Table.torch with the same options."""
    names = []
    for columns, values, present in ((want.dense_names, want.dense, want.dense_present),
                                     (want.label_names, want.labels.reshape(want.rows, -1), want.labels_present)):
        present = None if present is None else present.reshape(want.rows, -1)
        for i, name in enumerate(columns):
            masked(got[name], values[:, i], None if present is None else present[:, i])
            names.append(name)
    for name, values in want.embeddings.items():
        masked(got[name], values, want.embeddings_present.get(name))
    for name, values in want.integers.items():
        masked(got[name], values, want.integers_present.get(name))
    for name, values in want.keys.items():
        equal(got[name], values)
    if want.sample_weight is not None:
        equal(got["sample_weight"], want.sample_weight)
        names.append("sample_weight")
    groups = want.groups
    for lists in (want.sparse, want.weighted, want.floats):
        of = [len(groups)] * len(lists.keys) if lists.groups is None else lists.groups.tolist()
        for name, group in zip(lists.keys, of):
            ragged, one = got[name], lists.feature(name)
            if lists.starts is None:
                assert isinstance(ragged, Ragged)
                equal(ragged.offsets, one.offsets)
            else:
                assert isinstance(ragged, Slices)
                equal(ragged.starts, one.starts)
            equal(ragged.values, one.values)
            equal(ragged.lengths, one.lengths)
            for a, b in ((ragged.weights, one.weights), (ragged.present, one.present),
                         (ragged.inverse, groups[group].inverse if group < len(groups) else None)):
                assert (a is None) == (b is None), name
                if b is not None:
                    equal(a, b)
            names.append(name)
    assert sorted(got) == sorted([*names, *want.embeddings, *want.integers, *want.keys])


@pytest.mark.parametrize("options", [
    {},
    {"dedup": True, "presence": True, "batch_size": 77},
    {"dedup": True, "expand": "item_*", "shuffle": Shuffle("session", 4), "seed": 3,
    "presence": True, "batch_size": 64},
    {"dedup": "partial", "presence": True, "expand": "user_list", "batch_size": 90},
    {"integers": ["dense_b"], "transforms": {"user_history": "first(2)"}, "filter": "dense_b > 10", "drop_last": True,
     "batch_size": 60},
    {"shuffle": "row", "rank": 1, "world_size": 3, "shards": 3, "batch_size": 50},
    {"downsample": "click = 0 AND sample(0.5, key=request_id, seed=7)", "presence": True},
])
def test_batches_are_those_of_torch(table, options):
    of_torch = {**options, "output": {True: "ikjt", "partial": "partial"}.get(options.get("dedup"), "kjt")}
    of_torch.pop("dedup", None)
    data, want = table.numpy(ALL, labels=["click"], **options), table.torch(ALL, labels=["click"], **of_torch)
    assert len(data) == len(want) > 0
    for _ in range(2):  # epochs
        for got, batch in zip(data, want, strict=True):
            check(got, batch)
            assert data.state_dict() == want.state_dict()


def test_a_row_of_a_ragged_feature(table, source):
    want = source["user_history"].to_pylist()
    for dedup in (False, True, "partial"):
        (batch,) = table.numpy(["user_history"], dedup=dedup, batch_size=4096)
        ragged = batch["user_history"]
        assert (ragged.inverse is not None) == bool(dedup)
        assert [ragged.row(i).tolist() for i in range(len(source))] == want
        if dedup == "partial":
            whole = ragged.ragged()
            assert [whole.row(i).tolist() for i in range(len(source))] == want
            assert whole.lengths.tolist() == ragged.lengths.tolist()
    with pytest.raises(dsistore.UsageError, match="dedup 'ikjt'"):
        table.numpy(["user_history"], dedup="ikjt")


def test_features_have_the_order_of_the_request(table):
    (batch,) = table.numpy(["numbers", "click", "country", "user_list", "vector"], labels="click", batch_size=4096)
    assert list(batch) == ["click", "numbers", "country", "user_list", "vector"]


def test_ranks_and_resume(table):
    """Jobs of other sizes go on in the same order; a dataset pickles."""
    def times(batches):
        return [b["event_time"].tolist() for b in batches]

    options = {"batch_size": 50, "shuffle": "session", "seed": 1, "shards": 4}
    alone = times(table.numpy(["@keys"], rank=0, world_size=1, **options))
    ranks = [table.numpy(["@keys"], rank=r, world_size=2, **options) for r in range(2)]
    running = [iter(d) for d in ranks]
    first = [times([next(i) for i in running]) for _ in range(3)]
    state = ranks[0].state_dict()
    assert state == ranks[1].state_dict() and state["global_position"] == 6
    rest = [pickle.loads(pickle.dumps(table.numpy(["@keys"], rank=r, world_size=3, **options))) for r in range(3)]
    for d in rest:
        d.load_state_dict(state)
    shares = [times(d) for d in rest]
    later = [shares[i % 3][i // 3] for i in range(sum(map(len, shares)))]
    assert [b for step in first for b in step] + later == alone


WITHOUT_TORCH = """
    import sys
    for name in ("torch", "torchrec", "pyarrow"):
        sys.modules[name] = None  # to import it is an ImportError
    import dsistore
    table = dsistore.open(sys.argv[1]).table("ads")

    # The lower level: a plan, a loader of the engine, and a batch as NumPy arrays.
    from dsistore import _engine
    from dsistore._block import Block, Schema
    plan = table._ref.plan(features=["user_list", "dense_a"], output="tensors", dedup="ikjt", batch_size=100)
    loader = _engine.call("loader_open", uri=table._ref.root, plan=plan.text, no_usage=True)
    block = Block(Schema.of(loader["schema"]), _engine.next_batch(_engine.handle(loader["handle"])))
    assert block.rows == 100 and block.array("dense.values").shape == block.array("groups.inverses").shape == (100,)
    _engine.close(_engine.handle(loader["handle"]))

    # The output: values, epochs, ranks of the environment, state.
    import os
    os.environ.update(RANK="1", WORLD_SIZE="2")
    data = table.numpy(["user_list", "dense_a", "country"], labels=["click"], batch_size=100,
    shuffle="session", presence=True)
    batches = list(data)
    assert len(batches) == len(data) == 5
    assert batches[0]["dense_a"].values.shape == (100,) and batches[0]["user_list"].present.shape == (100,)
    assert data.state_dict()["epoch"] == 1 and data.stats().rows == 500
    try:
        table.torch(["dense_a"])
    except ImportError as e:
        print(e)
"""


def test_it_needs_no_torch(store_path):
    assert "needs PyTorch" in run(WITHOUT_TORCH, store_path)


def test_arrays_outlive_the_dataset(table):
    data = table.numpy(["user_list", "dense_a"], batch_size=100)
    running = iter(data)
    batch = next(running)
    kept = batch["dense_a"]
    before = kept.tolist()
    running.close()
    del running, data, batch
    assert _engine.call("held") == 1 and kept.tolist() == before
    del kept
    assert _engine.call("held") == 0
