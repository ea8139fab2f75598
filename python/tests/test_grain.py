"""Table.grain: rows of the source by position, through Grain's own datasets and loaders."""

from __future__ import annotations

import pathlib
import pickle
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import dsistore

grain = pytest.importorskip("grain")

FEATURES = ["user_list", "scored", "numbers", "vector", "dense_a", "dense_b", "country", "event_time"]


def plain(row):
    """A row as pyarrow gives it."""
    out = {}
    for name, x in row.items():
        if isinstance(x, tuple):
            ids, scores = x
            assert ids.dtype == np.int64 and scores.dtype == np.float32
            x = [{"id": i, "score": s} for i, s in zip(ids.tolist(), scores.tolist(), strict=True)]
        out[name] = x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x
    return out


@pytest.fixture
def rows(source):
    return source.select(FEATURES).to_pylist()


def test_rows_are_those_of_the_source(table, rows):
    source = table.grain(FEATURES)
    assert isinstance(source, grain.sources.RandomAccessDataSource) and len(source) == len(rows)
    some = [5, 0, 999, 5, 31, -1]
    assert list(map(plain, source.take(some))) == [rows[i] for i in some]
    assert plain(source[17]) == rows[17] and plain(source[np.int64(18)]) == rows[18]
    assert source.take([]) == []
    for beyond in (1000, -1001):
        with pytest.raises(IndexError, match=f"row {beyond} of 1000"):
            source[beyond]
    other = pickle.loads(pickle.dumps(source))
    assert plain(other[3]) == rows[3] and repr(other) == repr(source)
    with pytest.raises(dsistore.NotFoundError, match="user_list"):
        table.grain("user_lits")
    assert list(table.grain()[0]) == table.scan().to_arrow().column_names


def test_rows_that_are_read_ahead(table, rows, monkeypatch):
    """In order, also by threads and in shards, few takes give all rows; a row is its caller's, and its arrays cannot
    be written."""
    source = table.grain(FEATURES)
    takes = []
    take = type(source).take
    monkeypatch.setattr(type(source), "take", lambda self, at: takes.append(at) or take(self, at))
    assert [plain(source[i]) for i in range(len(rows))] == rows
    assert len(takes) <= 1 + -(-len(rows) // (256 - 32))
    takes.clear()
    assert [plain(source[i]) for i in range(1, len(rows), 4)] == rows[1::4] and len(takes) <= 7
    takes.clear()
    data = grain.MapDataset.source(source).to_iter_dataset(grain.ReadOptions(num_threads=8, prefetch_buffer_size=64))
    assert list(map(plain, data)) == rows and len(takes) <= 20
    row = [source[i] for i in (3, 4)][1]  # the second is read ahead, with those around it
    source[3].clear()
    with pytest.raises(ValueError, match="read-only"):
        row["vector"][...] = 0
    assert plain(source[3]) == rows[3]
    takes.clear()
    assert [plain(source[i]) for i in (900, 400, 600, -1)] == [rows[i] for i in (900, 400, 600, -1)] and len(takes) == 4
    assert plain(pickle.loads(pickle.dumps(source))[9]) == rows[9]


AT = [500, 0, 900, 250, 700, 400]  # not near each other: nothing is read ahead


@pytest.fixture
def held(table, monkeypatch):
    """A source whose calls of take wait until they are let go on; and what came of the rows at AT, where all are asked
    for while the first one is taken."""

    class Held:
        def __init__(self):
            self.source = table.grain(FEATURES)
            self.take, self.source.take = self.source.take, self.taken
            self.takes, self.goes_on, self.bad, self.interrupted = [], threading.Event(), set(), False

        def taken(self, positions):
            self.takes.append(list(positions))
            assert self.goes_on.wait(60)
            if len(positions) > 1 and self.interrupted:
                self.interrupted = False
                raise KeyboardInterrupt
            if self.bad & set(positions):
                raise OSError(f"of {positions}")
            return self.take(positions)

        def asked(self):
            self.takes.clear()
            self.goes_on.clear()
            with ThreadPoolExecutor(len(AT)) as threads:
                try:
                    asked = [threads.submit(lambda: self.source[AT[0]])]
                    until(lambda: self.takes)
                    asked += [threads.submit(lambda i=i: self.source[i]) for i in AT[1:]]
                    until(lambda: len(self.source._threads._next.at) == len(AT) - 1)
                finally:
                    self.goes_on.set()
                return [repr(f.exception()) if f.exception() else plain(f.result()) for f in asked]

    monkeypatch.setattr("dsistore.grain._PATIENCE", 60)
    return Held()


def test_rows_that_threads_ask_for_at_once(held, rows):
    """While a thread takes rows, others join the next call, which takes the rows of all of them. Who asks for a row
    that cannot be read gets its error, and no one else does."""
    assert held.asked() == [rows[i] for i in AT]
    assert held.takes[0] == AT[:1] and sorted(held.takes[1]) == sorted(AT[1:]) and len(held.takes) == 2
    for bad in {900}, {500, 400}, set(AT):
        held.bad = bad
        assert held.asked() == [repr(OSError(f"of [{i}]")) if i in bad else rows[i] for i in AT]
    held.bad = set()
    assert held.asked() == [rows[i] for i in AT]


def test_a_thread_that_is_interrupted_costs_no_other_its_row(held, rows):
    held.interrupted = True
    got = held.asked()
    at = got.index("KeyboardInterrupt()")
    assert at > 0 and got[:at] + got[at + 1:] == [rows[i] for i in AT[:at] + AT[at + 1:]]


def test_slow_calls_run_at_the_same_time(held, rows, monkeypatch):
    """A call waits for another one only for a moment: an object store serves both."""
    monkeypatch.setattr("dsistore.grain._PATIENCE", 0.002)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(lambda i=i: held.source[i]) for i in AT[:2]]
        try:
            until(lambda: len(held.takes) == 2)
        finally:
            held.goes_on.set()
        assert [plain(f.result()) for f in asked] == [rows[i] for i in AT[:2]]


def until(done):
    """Waits for what other threads do."""
    for _ in range(60_000):
        if done():
            return
        time.sleep(0.001)
    raise AssertionError("it did not come")


def test_a_map_dataset(table, rows):
    """Shuffled by Grain, each row once in an epoch, and slices are shards; a batch's rows are the same taken together.
    """
    data = grain.MapDataset.source(table.grain(columns=FEATURES)).shuffle(seed=3)
    order = [row["event_time"] for row in data]
    by_time = {row["event_time"]: row for row in rows}
    assert sorted(order) == sorted(by_time) and order != sorted(order)
    batches = list(data.batch(64, batch_fn=list))
    source = table.grain(columns=FEATURES)
    together = list(grain.MapDataset.range(len(source)).shuffle(seed=3).batch(64).map(source.take))
    assert [[plain(row) for row in batch] for batch in together] == [[plain(row) for row in b] for b in batches]
    assert [row["event_time"] for batch in batches for row in batch] == order
    assert all(plain(row) == by_time[int(row["event_time"])] for batch in batches for row in batch)
    shards = [[row["event_time"] for row in data[s::3]] for s in range(3)]
    assert [shards[i % 3][i // 3] for i in range(len(order))] == order


def test_the_block_of_the_readme_runs(tmp_path):
    pytest.importorskip("grain")
    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"click": [1, 0, 1], "user_dense_0": [0.5, 1.5, 2.5]}))
    readme = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text()
    (block,) = re.findall(r"^```python\n(import grain\n.*?)^```$", readme, re.M | re.S)
    names = {"table": store.table("t")}
    exec(compile(block, "README.md", "exec"), names)
    assert sorted(r["click"] for r in names["rows"]) == [0, 1, 1]


def test_resume(table):
    """Grain's own state goes on exactly."""
    def times(batches):
        return [[int(row["event_time"]) for row in batch] for batch in batches]

    def loader():
        return iter(grain.MapDataset.source(table.grain("event_time")).shuffle(seed=3).batch(
            100, batch_fn=list).to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=4)))

    whole = times(loader())
    running = loader()
    head = [next(running) for _ in range(3)]
    state = running.get_state()
    other = loader()
    other.set_state(state)
    assert times(head) + times(other) == whole and len(whole) == 10


def test_a_data_loader(table, rows):
    """Grain's DataLoader, with shards by a sampler."""
    source = table.grain(FEATURES)
    got = {}
    for shard in range(2):
        sampler = grain.samplers.IndexSampler(
            len(source), shard_options=grain.sharding.ShardOptions(shard, 2), shuffle=True, num_epochs=1, seed=1)
        for row in grain.DataLoader(data_source=source, sampler=sampler):
            assert int(row["event_time"]) not in got
            got[int(row["event_time"])] = plain(row)
    assert got == {row["event_time"]: row for row in rows}


def test_dates_and_times(tmp_path):
    """Each is a NumPy scalar of the column's unit, also of nanoseconds without pandas, and of years that datetime has
    not."""
    times = [1_700_000_000_000_000_001, None, -(1 << 62)]
    data = pa.table({
        "id": pa.array([1, 2, 3], pa.int64()),
        "ns": pa.array(times, pa.timestamp("ns")),
        "utc": pa.array([1, None, 1 << 62], pa.timestamp("us", "UTC")),
        "day": pa.array([0, None, -3], pa.date32()),
        "span": pa.array([1, None, 3], pa.duration("ns")),
        "clock": pa.array([1, None, 3], pa.time64("ns")),
    })
    store = dsistore.open(tmp_path / "store")
    store.ingest("t", data)
    source = store.table("t").grain()
    got = {row["id"].item(): row for row in (source[i] for i in range(3))}
    assert got[1]["ns"] == np.datetime64(times[0], "ns") and got[3]["ns"] == np.datetime64(times[2], "ns")
    assert got[1]["utc"] == np.datetime64(1, "us") and got[3]["utc"] == np.datetime64(1 << 62, "us")
    assert got[1]["day"] == np.datetime64(0, "D") and got[3]["day"] == np.datetime64(-3, "D")
    assert got[1]["span"] == np.timedelta64(1, "ns") and got[1]["clock"] == 1
    assert all(got[2][name] is None for name in ("ns", "utc", "day", "span", "clock"))
    assert "pandas" not in {type(v).__module__.split(".")[0] for row in got.values() for v in row.values()}
