"""A store with every kind of feature, and the rows that it was made of."""

from __future__ import annotations

import os
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dsistore

# Tests look at what there is in stores; those of usage records ask for them, in processes of their own.
os.environ["DSISTORE_USAGE"] = "off"

ROWS = 1000


def make_rows(seed: int = 7, rows: int = ROWS) -> pa.Table:
    """Sessions whose user features repeat, with nulls and empty lists, in the order in which logs arrive."""
    r = random.Random(seed)
    sessions = [i for i in range(rows // 8) for _ in range(8)]
    r.shuffle(sessions)
    history: dict[int, list[int]] = {}
    columns: dict[str, list] = {
        k: []
        for k in ("session_id", "event_time", "request_id", "user_list", "user_history", "item_list", "scored",
                  "dense_a", "dense_b", "vector", "numbers", "country", "click")
    }
    for i in range(rows):
        s = sessions[i % len(sessions)]
        seen = history.setdefault(s, [s * 1000 + k for k in range(s % 5)])
        if r.random() < 0.2:
            seen.insert(0, r.getrandbits(62))
        columns["session_id"].append(s)
        columns["event_time"].append(i)
        columns["request_id"].append(f"r{i}")
        columns["user_list"].append(None if s % 7 == 0 else [s, s + 1, -s][: s % 4])
        columns["user_history"].append(list(seen[:10]))
        columns["item_list"].append([r.getrandbits(60) for _ in range(r.randrange(4))] if r.random() < 0.8 else None)
        columns["scored"].append([{"id": r.getrandbits(40), "score": r.random()} for _ in range(r.randrange(3))])
        columns["dense_a"].append(r.random() if r.random() < 0.9 else None)
        columns["dense_b"].append(s % 100)
        columns["vector"].append([s / 8, 1.0, -2.5, r.random()])
        columns["numbers"].append([0.5 * s, 1.5][: s % 3])
        columns["country"].append(r.choice(["de", "fr", None]))
        columns["click"].append(int(r.random() < 0.3))
    return pa.table({
        "session_id": pa.array(columns["session_id"], pa.int64()),
        "event_time": pa.array(columns["event_time"], pa.int64()),
        "request_id": pa.array(columns["request_id"], pa.string()),
        "user_list": pa.array(columns["user_list"], pa.list_(pa.int64())),
        "user_history": pa.array(columns["user_history"], pa.list_(pa.int64())),
        "item_list": pa.array(columns["item_list"], pa.list_(pa.int64())),
        "scored": pa.array(columns["scored"], pa.list_(pa.struct([("id", pa.int64()), ("score", pa.float32())]))),
        "dense_a": pa.array(columns["dense_a"], pa.float32()),
        "dense_b": pa.array(columns["dense_b"], pa.int32()),
        "vector": pa.array(columns["vector"], pa.list_(pa.float32(), 4)),
        "numbers": pa.array(columns["numbers"], pa.list_(pa.float32())),
        "country": pa.array(columns["country"], pa.string()),
        "click": pa.array(columns["click"], pa.int8()),
    })


@pytest.fixture(scope="session")
def source() -> pa.Table:
    """The rows as the store has them: clustered by session, then by time."""
    return make_rows().sort_by([("session_id", "ascending"), ("event_time", "ascending")])


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("store")
    dump = tmp_path_factory.mktemp("dump") / "rows.parquet"
    pq.write_table(make_rows(), dump)
    report = dsistore.open(path).ingest("ads", dump, session_key="session_id", time_key="event_time")
    assert report["rows"] == ROWS
    return path


@pytest.fixture
def table(store_path: pathlib.Path) -> dsistore.Table:
    return dsistore.open(store_path).table("ads")


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every batch that a test was given is back when it is over."""
    yield
    import gc

    from dsistore import _engine

    # Collecting takes seconds where torch and torchrec are loaded: only where a cycle may hold something.
    if _engine.usable() and _engine.call("held"):
        gc.collect()
        assert _engine.call("held") == 0
