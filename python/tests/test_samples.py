"""Sample lists and deletes, beside the same done to the source with pyarrow."""

import pathlib
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dsistore
from conftest import ROWS, make_rows

COLUMNS = ["request_id", "session_id", "user_history", "click"]


@pytest.fixture
def store(tmp_path: pathlib.Path) -> dsistore.Store:
    """A store of its own, with the same rows in two ingests: two segments or more."""
    store, rows = dsistore.open(tmp_path / "store"), make_rows()
    for part in (rows.slice(0, ROWS // 2), rows.slice(ROWS // 2)):
        store.ingest("ads", part, session_key="session_id", time_key="event_time")
    return store


def same(got: dsistore.Scan, want: pa.Table) -> None:
    """The rows are the same, in whatever order."""
    assert got.rows == want.num_rows
    rows = got.to_arrow().sort_by("request_id").combine_chunks()
    assert rows.equals(want.select(rows.column_names).sort_by("request_id").combine_chunks())


def test_a_sample_list_is_the_rows_it_was_made_of(store, source):
    samples = store.table("ads").samples
    report = samples.create("clicked", "click = 1")
    clicked = source.filter(pc.equal(source["click"], 1))
    assert (report["rows"], report["table_rows"], report["replaced"]) == (clicked.num_rows, ROWS, False)
    samples.create("long", "len(user_history) > 4")
    samples.create("both", lists="clicked AND NOT long", filter="dense_b < 50")
    long = pc.greater(pc.list_value_length(source["user_history"]), 4)
    both = source.filter(pc.and_(pc.and_(pc.equal(source["click"], 1), pc.invert(long)), pc.less(source["dense_b"],
                                                                                                 50)))
    table = store.table("ads")
    same(table.scan(COLUMNS, sample_list="clicked"), clicked)
    same(table.scan(COLUMNS, sample_list="both"), both)
    same(table.scan(COLUMNS, sample_list=samples.show("clicked"), filter="session_id < 40"),
         clicked.filter(pc.less(clicked["session_id"], 40)))
    assert [(s.name, s.rows, s.deleted) for s in samples.list()] == [
        ("both", both.num_rows, 0), ("clicked", clicked.num_rows, 0), ("long", pc.sum(long).as_py(), 0)]
    assert samples.show("both").definition == "dense_b < 50; lists clicked AND NOT long"
    assert samples.show("clicked").share == clicked.num_rows / ROWS
    with pytest.raises(dsistore.ExistsError, match="taken"):
        samples.create("both", "click = 0")
    assert samples.create("both", "click = 0", replace=True)["replaced"]
    same(store.table("ads").scan(COLUMNS, sample_list="both"), source.filter(pc.equal(source["click"], 0)))
    same(table.scan(COLUMNS, sample_list="both"), both)  # at the version that it is at
    samples.drop("both")
    with pytest.raises(dsistore.NotFoundError, match='did you mean "long"'):
        samples.show("lon")
    with pytest.raises(dsistore.NotFoundError):
        store.table("ads").scan(COLUMNS, sample_list="both")


@pytest.mark.parametrize("kind", ["list", "list of numpy", "numpy", "pyarrow", "parquet", "text"])
def test_rows_are_named_by_keys(store, source, tmp_path, kind):
    wanted = [3, 5, 17, 90, 100_000]
    keys = {
        "list": wanted, "list of numpy": list(np.array(wanted)), "numpy": np.array(wanted),
        "pyarrow": pa.array(wanted), "parquet": tmp_path / "keys.parquet",
        "text": [tmp_path / "keys.txt"],
    }[kind]
    pq.write_table(pa.table({"other": [0] * 5, "session_id": wanted}), tmp_path / "keys.parquet")
    (tmp_path / "keys.txt").write_text("".join(f"{k}\n" for k in wanted))
    report = store.table("ads").delete(keys=keys, key="session_id")
    gone = pc.is_in(source["session_id"], pa.array(wanted, pa.int64()))
    assert report["rows_deleted"] == pc.sum(gone).as_py() == sum(s["rows_deleted"] for s in report["segments"])
    assert (report["keys"]["missing"], report["keys"]["missing_examples"]) == (1, ["100000"])
    same(store.table("ads").scan(COLUMNS), source.filter(pc.invert(gone)))


def test_keys_that_name_no_row(store):
    table = store.table("ads")
    for keys, says in [([1, None], "None"), ([1.5], "integers or strings"), ([True], "integers or strings"),
                       (17, "want a path"), (["x"], "no integer"), (pa.array([1, None]), "None")]:
        with pytest.raises(dsistore.DsistoreError, match=says):
            table.delete(keys=keys, key="session_id")
    with pytest.raises(dsistore.UsageError, match="no request key"):
        table.delete(keys=[1])
    with pytest.raises(dsistore.UsageError, match="without keys"):
        table.delete(key="session_id")
    assert table.delete(keys=[], key="session_id")["rows_deleted"] == 0


def test_what_changes_the_newest_snapshot_is_not_asked_of_another(store):
    """A table that was opened at a version shows that one's lists, and refuses what would be done to the newest."""
    store.table("ads").samples.create("clicked", "click = 1")
    number = store.table("ads").snapshot.number
    old, new = store.table("ads", version=number - 1), store.table("ads", version=number)
    assert [s.name for s in new.samples.list()] == ["clicked"] and old.samples.list() == []
    with pytest.raises(dsistore.NotFoundError):
        old.samples.show("clicked")
    for table in (old, pickle.loads(pickle.dumps(new))):
        for change in (lambda: table.delete("click = 1"), lambda: table.samples.create("x", "click = 1"),
                       lambda: table.samples.drop("clicked")):
            with pytest.raises(dsistore.UsageError, match="newest snapshot, and this is snapshot"):
                change()
    assert store.table("ads").snapshot.number == number
    assert new.scan(["click"], sample_list="clicked", lease=False).rows == len(
        new.scan(["click"], filter="click = 1").to_arrow())


def test_lookup(store, source):
    table = store.table("ads")
    table.delete("country = 'de'")
    table = store.table("ads")
    wanted = [source["request_id"][i].as_py() for i in range(0, ROWS, 37)]
    found = table.lookup(wanted, key="request_id")
    left = source.filter(pc.invert(pc.fill_null(pc.equal(source["country"], "de"), False)))
    rows = left.filter(pc.is_in(left["request_id"], pa.array(wanted)))
    positions = [p for s in found["segments"] for p in s["positions"]]
    assert found["rows"] == len(positions) == rows.num_rows and found["keys"]["missing"] == len(wanted) - rows.num_rows
    assert sorted(table.take(positions, ["request_id"])["request_id"].to_pylist()) == sorted(
        rows["request_id"].to_pylist())
    sessions = table.lookup(pa.array([source["session_id"][0].as_py()]), key="session_id")
    assert sessions["rows"] == left.filter(pc.equal(left["session_id"], source["session_id"][0])).num_rows
    assert table.lookup([], key="request_id")["rows"] == 0
    with pytest.raises(dsistore.UsageError, match="want integers, strings or bytes"):
        table.lookup([1], key="user_list")
    with pytest.raises(dsistore.NotFoundError):
        table.lookup([1], key="nobody")


def test_deleted_rows_are_seen_by_nobody_new(store, source):
    old = store.table("ads")
    scan = old.scan(COLUMNS)
    dry = old.delete("country = 'de'", dry_run=True)
    report = old.delete("country = 'de'")
    gone = pc.fill_null(pc.equal(source["country"], "de"), False)
    left = source.filter(pc.invert(gone))
    assert dry["rows_deleted"] == report["rows_deleted"] == ROWS - left.num_rows
    assert report["rows_left"] == left.num_rows and dry["snapshot"] == old.snapshot.number < report["snapshot"]
    table = store.table("ads")
    assert len(table) == left.num_rows and len(old) == ROWS
    same(table.scan(COLUMNS), left)
    same(scan, source)
    same(old.scan(COLUMNS), source)
    positions = [0, left.num_rows - 1, 7]
    assert table.take(positions, COLUMNS).to_pylist() == table.scan(COLUMNS).to_arrow().take(
        pa.array(positions)).to_pylist()
    assert set(table.take(range(len(table)), ["request_id"])["request_id"].to_pylist()) == set(
        left["request_id"].to_pylist())
    assert table.delete("country = 'de'")["snapshot"] == table.snapshot.number  # nothing left to delete
    with pytest.raises(dsistore.UsageError, match="no row is named"):
        table.delete()
    with pytest.raises(dsistore.NotFoundError, match="countr"):
        table.delete("countri = 'de'")
    # A list goes on without them.
    table.samples.create("clicked", "click = 1")
    table.delete("session_id < 20", sample_list="clicked")
    clicked = left.filter(pc.equal(left["click"], 1))
    shown = store.table("ads").samples.show("clicked")
    kept = clicked.filter(pc.greater_equal(clicked["session_id"], 20))
    assert (shown.rows, shown.deleted) == (kept.num_rows, clicked.num_rows - kept.num_rows)
    same(store.table("ads").scan(COLUMNS, sample_list="clicked"), kept)


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("labels", ["click", ["click", "dense_b"], []])
def test_downsampling_keeps_the_weighted_sum(store, source, output, labels):
    pytest.importorskip("torch")
    text = "click = 0 AND sample(0.25, key=request_id, seed=5)"
    table = store.table("ads")
    scan = table.scan(["request_id", "click"], downsample=text)
    rows = scan.to_arrow()
    assert rows.column_names == ["request_id", "click", "sample_weight"]
    sampled = set(table.scan(["request_id"], filter=text).to_arrow()["request_id"].to_pylist())
    clicked = set(source.filter(pc.equal(source["click"], 1))["request_id"].to_pylist())
    want = {**dict.fromkeys(clicked, 1.0), **dict.fromkeys(sampled, 4.0)}
    assert dict(zip(rows["request_id"].to_pylist(),
                    rows["sample_weight"].to_pylist())) == want and scan.rows == len(want)
    assert 0.7 * ROWS < sum(want.values()) < 1.3 * ROWS
    ds = table.torch(["request_id", "user_history"], labels=labels, downsample=text, batch_size=64, shuffle="session",
                     output=output, presence=True, world_size=1, rank=0)
    got = {}
    for b in pickle.loads(pickle.dumps(ds)):
        got.update(zip(b.keys["request_id"], b.sample_weight.tolist(), strict=True))
        assert b.label_names == ([labels]
                                 if isinstance(labels, str) else labels) and "sample_weight" not in b.dense_names
        assert tuple(b.labels.shape) == ((b.rows,) if isinstance(labels, str) else (b.rows, len(labels)))
    assert got == want
    assert next(iter(table.torch(["user_history"], world_size=1, rank=0))).sample_weight is None
    with pytest.raises(dsistore.UsageError, match="one sample"):
        table.scan(["click"], downsample=text + " AND sample(0.5, key=click)")


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("shuffle", [None, "session", "row"])
def test_batches_of_a_sample_list(store, source, output, shuffle):
    pytest.importorskip("torch")
    table = store.table("ads")
    table.samples.create("some", "sample(0.3, key=request_id, seed=1)")
    table.delete("click = 1 AND dense_b < 30")
    table = store.table("ads")
    ds = table.torch(["user_history", "request_id"], labels="click", sample_list="some", batch_size=32, shuffle=shuffle,
                     output=output, world_size=1, rank=0)
    want = table.scan(["request_id"], filter="sample(0.3, key=request_id, seed=1)").to_arrow()["request_id"].to_pylist()
    assert len(ds) == -(-len(want) // 32)
    got = [k for b in pickle.loads(pickle.dumps(ds)) for k in b.keys["request_id"]]
    assert sorted(got) == sorted(want) and 0 < len(want) < ROWS // 2
