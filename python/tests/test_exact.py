"""Every feature that is asked for is in the batch once, and no integer is rounded unless that is asked for."""

from __future__ import annotations

import json
import pickle
import random
from multiprocessing.reduction import ForkingPickler

import pyarrow as pa
import pytest
import torch

import dsistore
from dsistore.torch import Batch

MOST = 2**24  # float32 holds every integer up to it


def ingest(path, columns, roles={}, **options) -> dsistore.Table:
    mapping = path / "mapping.json"
    mapping.write_text(json.dumps({"columns": {c: {"role": r} for c, r in roles.items()}}))
    store = dsistore.open(path / "store")
    store.ingest("t", pa.table(columns), mapping=mapping, **options)
    return store.table("t")


def parts_of(b: Batch) -> dict[str, str]:
    """Which part of a batch has each of its features. A feature that two have, or a column too many or too few, is an
    error."""
    parts = {"dense": b.dense_names, "labels": b.label_names, "embeddings": list(b.embeddings), "keys": list(b.keys),
             "integers": list(b.integers)}
    for kind in ("sparse", "weighted", "floats"):
        parts[kind] = getattr(b, kind).keys
    out: dict[str, str] = {}
    for part, names in parts.items():
        for name in names:
            assert name not in out, (name, part, out[name])
            out[name] = part
    assert b.dense.shape == (b.rows, len(b.dense_names))
    assert b.labels.numel() == b.rows * len(b.label_names)
    assert all(len(t) == b.rows for t in (*b.integers.values(), *b.keys.values(), *b.embeddings.values()))
    return out


# 11: integers

IDS = [2**62 - i for i in range(4096)]


@pytest.fixture(scope="module")
def ids(tmp_path_factory) -> dsistore.Table:
    n = len(IDS)
    return ingest(
        tmp_path_factory.mktemp("ids"), {
            "request_id": IDS, "user": [2**40 + i // 4 for i in range(n)], "count": [i * 4096 for i in range(n)],
            "hash": pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()), "some": pa.array(
                [None if i % 3 else 2**53 + 1 for i in range(n)], pa.int64()), "tags": [[2**62 + i] for i in range(n)],
            "click": pa.array([i % 2 for i in range(n)], pa.int8()), "country": ["de"] * n,
        }, roles={"user": "user_key"})


def all_of(table, name, **options) -> list:
    return [v for b in table.torch(name, batch_size=1000, **options) for v in b.integers[name].tolist()]


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("where", ["features", "labels", "both"])
def test_an_id_is_never_rounded(ids, output, where):
    features = {
        "features": (["request_id", "count"], ()), "labels": (["count"], "request_id"),
        "both": (["hash", "count"], ["request_id"])
    }
    with pytest.raises(dsistore.UsageError) as e:
        next(iter(ids.torch(features[where][0], labels=features[where][1], output=output)))
    text = str(e.value)
    assert '"request_id"' in text and "4611686018427387903" in text and "row 1" in text, text  # 2^62 itself is held
    # all of them are named at once
    assert ("18446744073709551615" in text and '"hash"' in text) == (where == "both"), text
    assert '"count"' not in text and "integers" in text and "cast(float32)" in text and "list" in text


def test_integers_by_name(ids):
    for b in ids.torch(["count", "tags"], labels="click", integers=["request_id", "hash"], batch_size=4096):
        assert parts_of(b) == {
            "count": "dense", "tags": "sparse", "click": "labels", "request_id": "integers", "hash": "integers"
        }
        assert b.integers["request_id"].dtype == torch.int64 and b.integers["request_id"].tolist() == IDS
        assert b.integers["hash"].dtype == torch.uint64 and b.integers["hash"].tolist() == [
            2**64 - 1 - i for i in range(4096)
        ]
        assert b.dense[:, 0].tolist() == [i * 4096 for i in range(4096)]  # exactly, though there are more than 2^24
        for other in (b.to("cpu"), pickle.loads(ForkingPickler.dumps(b)), b.map(lambda t: t)):
            assert other.integers["request_id"].tolist() == IDS
        assert b.integers_present == {}
    assert all_of(ids, "request_id", integers="request_*") == IDS
    assert all_of(ids, "count", integers=["count"],
                  transforms={"count": "mod(7)"}) == [i * 4096 % 7 for i in range(4096)]
    assert max(all_of(ids, "country", integers="country", transforms={"country": f"hash({2**60})"})) > MOST
    # A key comes as it did, or so.
    (b,) = ids.torch(["user"])
    assert parts_of(b) == {"user": "keys"} and b.keys["user"].tolist() == [2**40 + i // 4 for i in range(4096)]
    (b,) = ids.torch(["@keys"], integers="user")
    assert parts_of(b) == {"user": "integers"} and b.integers["user"].tolist() == [2**40 + i // 4 for i in range(4096)]


@pytest.mark.parametrize("presence", [False, True])
def test_integers_that_are_null(ids, presence):
    """Always a tensor: null is 0, as in all others."""
    null = [bool(i % 3) for i in range(4096)]
    for b, at in zip(ids.torch([], integers="some", batch_size=2048, presence=presence), (0, 2048)):
        assert b.integers["some"].tolist() == [0 if x else 2**53 + 1 for x in null[at:at + 2048]]
        assert {k: m.tolist() for k, m in b.integers_present.items()} == (
            {"some": [not x for x in null[at:at + 2048]]} if presence else {})
        if presence:
            assert b.to("cpu").integers_present["some"].dtype == torch.bool
    (b,) = ids.torch("count", integers="request_id", batch_size=4096, presence=True)
    assert b.integers_present["request_id"].all()


def test_ways_out_that_the_error_names(ids):
    (b,) = ids.torch(["request_id"], transforms={"request_id": "list"}, batch_size=4096)
    assert parts_of(b) == {"request_id": "sparse"} and b.sparse.values.tolist() == IDS
    (b,) = ids.torch(["request_id"], transforms={"request_id": "cast(float32)"}, batch_size=4096)
    assert b.dense[:, 0].tolist() == [2.0**62] * 4096
    (b,) = ids.torch(["request_id"], transforms={"request_id": "mod(1000)"}, batch_size=4096)
    assert b.dense[:, 0].tolist() == [x % 1000 for x in IDS]


@pytest.mark.parametrize("options, text", [
    ({"integers": "tags"}, "tags.*list"), ({"integers": "country"}, "country.*string"),
    ({"integers": "@all"}, "country.*string"),
    ({"integers": "count", "transforms": {"count": "log1p"}}, "count.*float32"),
    ({"integers": "click", "labels": "click"}, "click.*labels.*integers"), ({"integers": "request_ids"}, "request_id"),
])
def test_integers_that_make_no_sense(ids, options, text):
    with pytest.raises(dsistore.DsistoreError, match=text):
        ids.torch("count", **options)


def test_which_integers_float32_holds(tmp_path):
    """Each value alone in a batch, where all others are small: an exact answer, value by value."""
    r = random.Random(5)
    odd = [r.getrandbits(b) | 1 << b - 1 for b in range(20, 64) for _ in range(6)]
    values = [
        0, MOST, -MOST, MOST + 1, -MOST - 1, MOST + 2, 2**62, -2**63, 2**63 - 1, -2**63 + 1, -2**40, 2**40 + 2**16,
        2**40 + 2**15
    ]
    signed = [
        *values, *(s * (o >> 1 if o >= 2**63 else o) for o in odd for s in (1, -1)),
        *((o >> 30) << 30 for o in odd if o < 2**63)
    ]
    unsigned = [0, MOST + 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2**40, 2**64 - 2**39, *odd]
    for i, (values, kind) in enumerate(((signed, pa.int64()), (unsigned, pa.uint64()))):
        (tmp_path / str(i)).mkdir()
        table = ingest(tmp_path / str(i),
                       {"x": pa.array([v for x in values for v in (1, x)], kind), "row": list(range(2 * len(values)))})
        # Python compares int and float exactly
        held = [v for v in values if float(torch.tensor(float(v), dtype=torch.float32)) == v]
        assert 20 < len(held) < len(values) - 20
        for k, v in enumerate(values):
            batches = iter(table.torch("x", filter=f"row >= {2 * k} AND row < {2 * k + 2}"))
            if v in held:
                assert next(batches).dense[:, 0].tolist() == [1, float(v)]
            else:
                with pytest.raises(dsistore.UsageError, match=rf'"x" has {v} \(row 1\b'):
                    next(batches)


def test_integers_of_later_segments(tmp_path):
    """A count that grows beyond 2^24 in the second partition: its batches are an error, those before and the others are
    not."""
    store = dsistore.open(tmp_path)
    for ds, first in (("a", 0), ("b", MOST - 5), ("c", 0)):
        store.ingest("t", pa.table({"n": list(range(first, first + 10)), "v": [1] * 10, "ds": [ds] * 10}),
                     partition_by="ds")
    table = store.table("t")
    batches = iter(table.torch(["n", "v"], batch_size=5))
    for want in (range(5), range(5, 10), range(MOST - 5, MOST)):
        assert next(batches).dense[:, 0].tolist() == list(want)
    with pytest.raises(dsistore.UsageError, match=rf"{MOST + 1} \(row 16\b"):
        next(batches)
    for where in ("ds = 'c'", "ds = 'a'"):
        assert len(list(table.torch("n", partitions=where))) == 1
    assert sum(b.rows for b in table.torch("n", filter=f"n <= {MOST}")) == 26
    table.delete(f"n > {MOST}")
    assert sum(b.rows for b in store.table("t").torch("n")) == 26


def test_integers_of_an_overlay(tmp_path):
    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"key": list(range(100)), "v": [0.5] * 100}))
    store.table("t").overlay("big", pa.table({"key": list(range(50, 100)),
                                              "id": [MOST + 1 + 2 * i for i in range(50)]}), key="key")
    table = store.table("t")
    with pytest.raises(dsistore.UsageError, match=rf'"id" has {MOST + 1} \(row 50\b'):
        list(table.torch(["v", "id"], overlay="big"))
    (b,) = table.torch("v", integers="id", overlay="big", batch_size=100)
    assert b.integers["id"].tolist() == [0] * 50 + [MOST + 1 + 2 * i for i in range(50)]


def test_times_and_decimals_are_not_rounded(tmp_path):
    import datetime
    import decimal

    now = datetime.datetime(2026, 11, 1, 12, 0, 0, 1)
    table = ingest(tmp_path, {
        "at": pa.array([now] * 3, pa.timestamp("us")), "day": pa.array([now.date()] * 3, pa.date32()),
        "price": pa.array([decimal.Decimal("123456.789")] * 3, pa.decimal128(18, 3)), "v": [0.5] * 3})
    for name in ("at", "price"):
        with pytest.raises(dsistore.UsageError, match=name):
            next(iter(table.torch(["v", name])))
    (b,) = table.torch(["v", "day"], integers=["at", "price"])
    assert b.integers["at"].tolist() == [int(now.replace(tzinfo=datetime.timezone.utc).timestamp()) * 10**6 + 1] * 3
    assert b.integers["price"].tolist() == [123456789] * 3
    assert b.dense.tolist() == [[0.5, (now.date() - datetime.date(1970, 1, 1)).days]] * 3


def test_vectors_of_integers(tmp_path):
    path = tmp_path / "m"
    path.mkdir()
    (path / "mapping.json").write_text('{"columns": {"vec": {"kind": "embedding", "dim": 2, "elem": "int64"}}}')
    store = dsistore.open(tmp_path / "s")
    store.ingest("t", pa.table({"vec": [[1, 2], [3, 2**40 + 1]]}), mapping=path / "mapping.json")
    with pytest.raises(dsistore.UsageError, match=rf'"vec" has {2**40 + 1} \(row 1\b'):
        next(iter(store.table("t").torch("vec")))


# 12: labels

@pytest.fixture(scope="module")
def labeled(tmp_path_factory) -> dsistore.Table:
    n = 6
    return ingest(
        tmp_path_factory.mktemp("labeled"), {
            "click": [i % 2 for i in range(n)], "conversion": [i % 3 for i in range(n)],
            "dwell": [0.5 * i for i in range(n)], "topics": [[i] for i in range(n)], "why": ["x"] * n,
            "user": list(range(n)), "a": [float(i) for i in range(n)], "list": [[i, i] for i in range(n)],
            "shared": [[random.Random(i // 3).getrandbits(60) for _ in range(500)] for i in range(n)],
            "key": list(range(n))
        }, roles={"click": "label", "conversion": "label", "topics": "label", "why": "label", "user": "user_key"})


def one(table, *args, **options) -> Batch:
    (b,) = table.torch(*args, **options)
    return b


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("presence", [False, True])
def test_every_feature_is_in_the_batch_once(labeled, output, presence):
    """labels= says which are labels. What is named in features besides is a feature, whatever its role is."""
    b = one(labeled, ["click", "conversion", "a", "list", "shared"], labels="click", output=output, presence=presence)
    assert parts_of(b) == {"click": "labels", "conversion": "dense", "a": "dense", "list": "sparse", "shared": "sparse"}
    assert [g.keys for g in b.groups] == ([["shared"]] if output == "ikjt" else [])
    assert b.label_names == ["click"] and b.labels.tolist() == [0, 1, 0, 1, 0, 1] and b.labels.shape == (6,)
    assert b.dense[:, b.dense_names.index("conversion")].tolist() == [0, 1, 2, 0, 1, 2]
    assert (b.labels_present is not None) == presence and (not presence or b.labels_present.shape == (6,))
    b = one(labeled, ["click", "conversion", "a"], labels=["dwell"], output=output, presence=presence)
    assert parts_of(b) == {"dwell": "labels", "click": "dense", "conversion": "dense", "a": "dense"}
    assert b.labels.shape == (6, 1)
    b = one(labeled, ["topics", "why", "conversion"], labels=["click"], output=output, presence=presence)
    assert parts_of(b) == {"topics": "sparse", "why": "keys", "conversion": "dense", "click": "labels"}
    assert b.sparse.values.tolist() == list(range(6))
    b = one(labeled, ["a", "conversion"], labels=["conversion", "click"], output=output, presence=presence)
    assert b.label_names == ["conversion", "click"] and b.dense_names == ["a"]
    assert b.labels[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    b = one(labeled, ["user", "a"], labels="user", output=output)
    assert parts_of(b) == {"user": "labels", "a": "dense"}


def test_without_labels_roles_decide(labeled):
    b = one(labeled, ["conversion", "click", "dwell", "why"])
    assert parts_of(b) == {"conversion": "labels", "click": "labels", "dwell": "dense", "why": "keys"}
    assert b.labels.shape == (6, 2) and b.label_names == ["conversion", "click"]
    assert parts_of(one(labeled, "conversion")) == {"conversion": "labels"}


def test_a_glob_makes_no_feature_of_a_label(labeled):
    """It may not have been meant, and a model would be given what it shall predict."""
    for features in ("@all", ["*", "conversion"], ["c*"], ["@labels"]):
        with pytest.raises(dsistore.UsageError, match="labels") as e:
            labeled.torch(features, labels="click")
        named = "conversion" in features if isinstance(features, list) else False
        assert ("conversion" in str(e.value)) != named or features in (["c*"], ["@labels"])
        if features != ["c*"]:
            assert "topics" in str(e.value) and "why" in str(e.value)  # all at once
    where = parts_of(one(labeled, ["*", "topics", "why"], labels=["click", "conversion"]))
    assert where == {
        "click": "labels", "conversion": "labels", "topics": "sparse", "why": "keys", "user": "keys", "a": "dense",
        "dwell": "dense", "list": "sparse", "shared": "sparse", "key": "dense"
    }


def test_a_label_that_is_no_number_is_refused_at_once(labeled):
    for options in ({}, {"output": "ikjt"}):
        with pytest.raises(dsistore.UsageError, match="topics.*labels="):
            labeled.torch(["topics", "a"], **options)
    with pytest.raises(dsistore.UsageError, match="topics"):
        labeled.torch(["a"], labels=["topics"])


def test_names_that_read_as_globs(tmp_path):
    """A label or an integer called a* is that feature, and brings no other along."""
    table = ingest(tmp_path,
                   {"a*": [1, 0], "ab": [5, 6], "?": [2**53 + 1, 8], "xy": [9, 9], "@s": [3, 4], "w\\": [1, 1]})
    b = one(table, "xy", labels="a\\*", integers=["\\?", "\\@s", "w\\\\"])
    assert parts_of(b) == {"a*": "labels", "?": "integers", "@s": "integers", "w\\": "integers", "xy": "dense"}
    assert b.labels.tolist() == [1, 0] and b.integers["?"].tolist() == [2**53 + 1, 8]


def test_labels_and_weights(labeled):
    b = one(labeled, ["a", "conversion"], labels="click", downsample="click = 0 AND sample(0.5, key=key, seed=1)")
    assert parts_of(b) == {"a": "dense", "conversion": "dense", "click": "labels"}
    assert b.labels.shape == (b.rows,) and set(b.sample_weight.tolist()) <= {1, 2}
