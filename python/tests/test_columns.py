"""columns=, another name for features, and sparse=: integers that come as lists of one id."""

from __future__ import annotations

import ast

import numpy as np
import pyarrow as pa
import pytest
import torch

import dsistore


def test_columns_is_another_name_for_features(table):
    for read in (table.torch, table.numpy):
        a, b = read(["user_list", "dense_a"], labels="click"), read(columns=["user_list", "dense_a"], labels="click")
        assert a.plan == b.plan
        with pytest.raises(dsistore.UsageError, match="give one"):
            read(["user_list"], columns=["dense_a"])
        with pytest.raises(dsistore.UsageError, match="give names"):
            read(labels="click")
    assert table.scan(columns="dense_*").to_arrow().column_names == ["dense_a", "dense_b"]
    assert table.scan().to_arrow().equals(table.scan("@all").to_arrow())
    with pytest.raises(dsistore.UsageError, match="give one"):
        table.scan("click", columns="click")
    with pytest.raises(TypeError, match="batch_sise"):
        table.numpy("click", batch_sise=3)


@pytest.mark.parametrize("output", ["kjt", "ikjt", "partial"])
def test_scalars_as_lists_of_one_id(table, source, output):
    """Ordinary features, keys and labels' neighbours, in the order of the request, nulls as empty lists."""
    at = 0
    data = table.torch(["dense_b", "user_list", "event_time", "request_id"], sparse=["session_id", "dense_b"],
                       labels="click", output=output, transforms={"dense_b": "mod(10)"}, batch_size=90, presence=True)
    for batch in data:
        assert batch.sparse.keys == ["dense_b", "user_list", "session_id"] and batch.dense_names == []
        assert list(batch.keys) == ["event_time", "request_id"]
        want = source.slice(at, batch.rows)
        for name, f in (("dense_b", lambda x: x % 10), ("session_id", int)):
            one = batch.sparse.contiguous().feature(name)
            k = batch.sparse.keys.index(name)
            group = len(batch.groups) if batch.sparse.groups is None else int(batch.sparse.groups[k])
            slots = torch.arange(batch.rows) if group == len(batch.groups) else batch.groups[group].inverse
            assert one.values[one.offsets[slots]].tolist() == [f(x) for x in want[name].to_pylist()]
            assert one.lengths[slots].tolist() == [1] * batch.rows
        at += batch.rows
    assert at == len(source)


def test_null_is_an_empty_list(tmp_path):
    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"category": pa.array([3, None, -1, 2**62], pa.int64()), "x": [0.5, 1.0, 1.5, 2.0]}))
    (batch,) = store.table("t").numpy("x", sparse="category", presence=True)
    ids = batch["category"]
    assert [ids.row(i).tolist() for i in range(4)] == [[3], [], [-1], [2**62]]
    assert ids.values.dtype == np.int64 and ids.present.tolist() == [True, False, True, True]


@pytest.mark.parametrize("shuffle", ["session", "row"])
def test_the_session_key_as_ids_of_a_shuffle(table, source, shuffle):
    """A shuffle also uses the session key, as it is stored: other features need not be named for either."""
    options = {"labels": "click", "shuffle": shuffle, "seed": 5, "batch_size": 90}
    keys = [k for batch in table.numpy("session_id", **options) for k in batch["session_id"].tolist()]
    ids = [batch["session_id"].row(i).tolist()
           for batch in table.numpy(sparse="session_id", transforms={"session_id": "mod(1000)"}, **options)
           for i in range(len(batch["click"]))]
    assert ids == [[k % 1000] for k in keys]
    assert sorted(keys) == sorted(source["session_id"].to_pylist()) and keys != source["session_id"].to_pylist()


def test_ways_out(table):
    """What the messages advise works: an id of a text, and a key as an id list."""
    ids = [b["country"].values.tolist() for b in table.numpy(sparse="country", batch_size=100,
                                                             transforms={"country": "hash(100000)"})]
    assert sum(map(len, ids)) > 0 and all(0 <= i < 100000 for x in ids for i in x)
    with pytest.raises(dsistore.UsageError, match=r"role is session key.*sparse=\['session_id'\], without list"):
        table.numpy("session_id", transforms={"session_id": "list | mod(1000)"})
    table.numpy(sparse=["session_id"], transforms={"session_id": "mod(1000)"})


@pytest.mark.parametrize(("options", "said"), [
    ({"sparse": "dense_a"}, "dense_a.*want a dense integer"), ({"sparse": "user_list"}, "user_list.*dense integer"),
    ({"sparse": "country"}, r'country.*dense integer.*transforms=\{"country": "hash\(100000\)"\}'),
    ({"sparse": "dense_b", "integers": "dense_b"}, "dense_b.*among integers"),
    ({"sparse": "dense_b", "labels": "dense_b"}, "dense_b.*among labels"),
    ({"sparse": "dense_b", "transforms": {"dense_b": "cast(float32)"}}, "dense_b.*dense integer")], ids=str)
def test_what_is_no_id(table, options, said):
    with pytest.raises(dsistore.UsageError, match=said):
        table.torch("user_list", **options)


def test_floats_are_cast_as_the_error_says(tmp_path):
    """And no others, whatever the name."""
    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"a*": [3.0, 4.0], "ab": [0.5, 1.5]}))
    options = {"features": "ab", "sparse": r"a\*"}
    with pytest.raises(dsistore.UsageError) as error:
        store.table("t").numpy(**options)
    said = ast.literal_eval(str(error.value).partition("transforms=")[2])
    (batch,) = store.table("t").numpy(**options, transforms=said)
    assert batch["a*"].values.tolist() == [3, 4] and batch["ab"].tolist() == [0.5, 1.5]


def test_a_missing_one_is_suggested(table):
    with pytest.raises(dsistore.NotFoundError, match="session_id"):
        table.torch("user_list", sparse="sesion_id")
