"""Partial duplicates: lists that are slices of others, in the batches as they are stored. Rows are held against
pyarrow's."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
import torch

import dsistore
from dsistore.numpy import Slices
from dsistore.torch import Jagged

SCORE = pa.list_(pa.struct([("id", pa.int64()), ("score", pa.float32())]))
LISTS = ["hist", "item", "short"]
ALL = [*LISTS, "scored", "numbers", "@keys"]
OPTIONS = [{}, {"batch_size": 7}, {"shuffle": "session", "seed": 3}, {"filter": "time > 200 AND click = 0"},
           {"expand": ["hist", "numbers"]}, {"presence": True}, {"transforms": {"hist": "first(3)"}}]


def make_histories() -> pa.Table:
    """Sessions whose histories get new values at their begin and lose old ones, with nulls and empty lists."""
    r = random.Random(1)
    columns: dict[str, list] = {k: [] for k in ("session", "time", "click", *LISTS, "scored", "numbers")}
    for session in range(60):
        history = [r.getrandbits(60) for _ in range(50)]
        for i in range(10):
            if r.random() < 0.6:
                history = [r.getrandbits(60), *history[:49]]
            columns["session"].append(session)
            columns["time"].append(10 * session + i)
            columns["click"].append(r.randrange(2))
            columns["hist"].append(r.choice([None, [], list(history), list(history), history[:20]]))
            columns["item"].append([r.getrandbits(60)])
            columns["short"].append([session])
            columns["scored"].append([{"id": x, "score": x % 97 / 8} for x in history[:30]])
            columns["numbers"].append(None if session % 7 == 0 else [x % 31 / 4 for x in history[:40]])
    types = {"hist": pa.list_(pa.int64()), "item": pa.list_(pa.int64()), "short": pa.list_(pa.int64()), "scored": SCORE,
             "numbers": pa.list_(pa.float32())}
    return pa.table({k: pa.array(v, types.get(k)) for k, v in columns.items()})


@pytest.fixture(scope="module")
def rows() -> dict[int, dict]:
    """The source's rows by their time."""
    return {row["time"]: row for row in make_histories().to_pylist()}


@pytest.fixture(scope="module")
def histories(tmp_path_factory) -> dsistore.Table:
    store = dsistore.open(tmp_path_factory.mktemp("partial"))
    store.ingest("t", make_histories(), session_key="session", time_key="time")
    return store.table("t")


def read(table, output="partial", **options):
    return table.torch(ALL, labels="click", output=output, **{"batch_size": 64, **options})


def source_of(batch, rows, key, options) -> list:
    """What the source has of a feature in the batch's rows."""
    want = [rows[t][key] for t in batch.keys["time"].tolist()]
    return [x and x[:3] for x in want] if key in options.get("transforms", ()) else want


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows_are_those_of_the_source(histories, rows, options):
    """By starts and lengths, and made contiguous; null and empty are told apart where that was asked for."""
    for batch in read(histories, **options):
        for lists in (batch.sparse, batch.weighted, batch.floats):
            assert len(lists.offsets) == 0 and len(lists.starts) == len(lists.lengths)
            for k, key in enumerate(lists.keys):
                group = None if lists.groups is None or lists.groups[k] == len(batch.groups) else (
                    batch.groups[lists.groups[k]])
                assert group is None or key in group.keys and key not in options.get("expand", ())
                slots = list(range(batch.rows)) if group is None else group.inverse.tolist()
                want = source_of(batch, rows, key, options)
                one, whole = lists.feature(key), lists.contiguous().feature(key)
                for j, begins in ((one, one.starts), (whole, whole.offsets)):
                    spans = [(int(begins[s]), int(begins[s] + j.lengths[s])) for s in slots]
                    got = [j.values[a:b].tolist() for a, b in spans]
                    if key == "scored":
                        got = [[{"id": i, "score": w} for i, w in zip(x, j.weights[a:b].tolist(), strict=True)]
                               for x, (a, b) in zip(got, spans)]
                    assert got == [x or [] for x in want], key
                    if options.get("presence"):
                        assert j.present[slots].tolist() == [x is not None for x in want]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_arrays_are_those_of_the_source(histories, rows, options):
    tensors = read(histories, **options)
    for got, batch in zip(histories.numpy(ALL, labels="click", dedup="partial", **{"batch_size": 64, **options}),
                          tensors, strict=True):
        for key in [*LISTS, "numbers"]:
            want = [x or [] for x in source_of(batch, rows, key, options)]
            assert [got[key].row(i).tolist() for i in range(batch.rows)] == want
            assert [got[key].ragged().row(i).tolist() for i in range(batch.rows)] == want
        scored, whole = got["scored"], got["scored"].ragged()
        for i in range(batch.rows):
            s = i if scored.inverse is None else scored.inverse[i]
            assert scored.weights[scored.starts[s]:][:scored.lengths[s]].tolist() == whole.weights[
                whole.offsets[s]:whole.offsets[s + 1]].tolist() == [
                    x["score"] for x in rows[int(batch.keys["time"][i])]["scored"]]


def test_it_holds_less(histories):
    values = {output: sum(len(b.sparse.values) + len(b.weighted.values) + len(b.floats.values) for b in read(
        histories, output)) for output in ("kjt", "ikjt", "partial")}
    assert 3 * values["partial"] < values["ikjt"] < values["kjt"], values


def test_kjts_are_those_of_ikjt(histories):
    pytest.importorskip("torchrec")
    options = {"batch_size": 100, "expand": ["item"]}
    for batch, want in zip(read(histories, **options), read(histories, "ikjt", **options), strict=True):
        for name in ("sparse_features", "dedup_sparse_features", "expanded_sparse_features", "weighted_features"):
            a, b = getattr(batch, name), getattr(want, name)
            assert a.keys() == b.keys()
            assert a.length_per_key() == [int(x.lengths().sum()) for x in a.split([1] * len(a.keys()))]
            for key in b.keys():
                assert expanded(a, key) == expanded(b, key), (name, key)


def expanded(kjt, key):
    """The lists of every row of the batch, with weights where there are any."""
    lists = list(zip(kjt[key].to_dense(), kjt[key].to_dense_weights() or [torch.empty(0)] * 10_000))
    if kjt.inverse_indices_or_none() is not None:
        keys, inverses = kjt.inverse_indices()
        lists = [lists[i] for i in inverses[keys.index(key)].tolist()]
    return [(a.tolist(), b.tolist()) for a, b in lists]


def test_batches_travel(histories):
    """Pickled or moved; and features apart are those together."""
    for batch in read(histories, expand="item", batch_size=100):
        other = pickle.loads(pickle.dumps(batch)).to("cpu")
        whole, moved = batch.sparse.contiguous(), other.sparse.contiguous()
        assert torch.equal(whole.values, moved.values) and torch.equal(whole.offsets, moved.offsets)
        some = batch.sparse.select([True, False, True])
        assert some.keys == ["hist", "short"] and some.starts is not None
        for key in some.keys:
            a, b = some.contiguous().feature(key), whole.feature(key)
            assert torch.equal(a.values, b.values) and torch.equal(a.lengths, b.lengths)
            assert torch.equal(a.offsets, b.offsets)
        shapes = batch.to("meta").sparse
        assert shapes.starts.shape == batch.sparse.starts.shape and shapes.values.shape == batch.sparse.values.shape


def test_lists_that_offsets_do_not_hold(histories):
    """Slices of few values may be more in sum than an int32 counts."""
    lists = next(iter(read(histories))).sparse
    few = torch.zeros(3, dtype=torch.int32)
    long = torch.full((3,), 2**30, dtype=torch.int32)
    most = Jagged(["a"], [3], [2**30], [3 * 2**30], [True], None, long, lists.offsets, lists.values, starts=few)
    with pytest.raises(dsistore.UsageError, match="3221225472 values: batch_size is too large"):
        most.contiguous()
    with pytest.raises(dsistore.UsageError, match="3221225472 values: batch_size is too large"):
        Slices(lists.values.numpy(), few.numpy(), long.numpy()).ragged()


def test_the_name_of_the_output(histories):
    with pytest.raises(dsistore.UsageError, match="'kjt', 'ikjt' or 'partial'"):
        histories.torch(LISTS, output="windowed")
