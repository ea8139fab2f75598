"""Overlays, held against joins by pyarrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dsistore
from conftest import make_rows


@pytest.fixture
def store(tmp_path) -> dsistore.Store:
    """A store of its own, since overlays are there for everybody."""
    store = dsistore.open(tmp_path / "store")
    store.ingest("ads", make_rows(), session_key="session_id", time_key="event_time")
    return store


def labels(keys: list[str], step: int = 1) -> pa.Table:
    return pa.table({
        "request_id": keys, "label": pa.array([i * step % 5 if i % 7 else None for i in range(len(keys))], pa.int16())
    })


def joined(store: dsistore.Store, source: pa.Table) -> list:
    """What the label is in each row of the table."""
    keys = store.table("ads").scan(["request_id"]).to_arrow()["request_id"]
    at = pc.index_in(keys, value_set=source["request_id"].combine_chunks())
    return source["label"].take(at).to_pylist()


@pytest.mark.parametrize("kind", ["table", "reader", "parquet", "files", "memory"])
def test_join(store, tmp_path, kind):
    source = labels([f"r{i}" for i in range(1200, 100, -1)])  # of rows 0 to 999
    given, memory = source, None
    if kind == "reader":
        given = pa.RecordBatchReader.from_batches(source.schema, source.to_batches(max_chunksize=100))
    elif kind != "table":
        given = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        pq.write_table(source.slice(0, 400), given[0])
        pq.write_table(source.slice(400), given[1])
        if kind == "parquet":
            pq.write_table(source, given[0])
            given = given[0]
        if kind == "memory":
            memory = 1
    seen = []
    report = store.table("ads").overlay(
        "labels", given, key="request_id", label=True, memory=memory, progress=lambda *now: seen.append(now))
    assert (report["rows"], report["covered"], report["file_rows"], report["unmatched"]) == (1000, 899, 1100, 201)
    assert [u["key"] for u in report["unknown"]][:2] == ['"r1200"', '"r1199"']
    assert report["partial"][0]["rows"] - report["partial"][0]["covered"] == 101
    assert (report["spills"] > 0) == (kind == "memory")
    table = store.table("ads")
    got = table.scan(["label", "request_id"], overlay="labels").to_arrow()
    assert got["label"].type == pa.int16()
    assert got["label"].to_pylist() == joined(store, source)
    assert [f.role for f in table.features("label", overlay="labels")] == ["label"]
    with pytest.raises(dsistore.NotFoundError):
        table.scan(["label"])


def test_expression(store):
    report = store.table("ads").overlay("e", expr=["y = click = 1 AND dense_a > 0.5", "long = len(user_history) > 3"])
    assert report["covered"] == report["rows"] == 1000 and report["partial"] == []
    got = store.table("ads").scan(["y", "long", "click", "dense_a", "user_history"], overlay="e").to_arrow()
    want = pc.and_kleene(pc.equal(got["click"], 1), pc.greater(got["dense_a"], pa.scalar(0.5, pa.float32()))).cast(
        pa.int8())
    assert got["y"].to_pylist() == want.to_pylist()
    assert None in got["y"].to_pylist()
    assert got["long"].to_pylist() == pc.greater(pc.list_value_length(got["user_history"]), 3).cast(
        pa.int8()).to_pylist()


def test_numbers(store):
    """What is computed, against DuckDB, of random expressions over what make_rows has."""
    import random

    duckdb = pytest.importorskip("duckdb")
    random.seed(7)

    features = {
        "click": "click::BIGINT", "dense_a": "dense_a::DOUBLE", "len(user_history)": "len(user_history)::BIGINT"
    }
    constants = {"2": "2", "0": "0", "3.5": "3.5::DOUBLE"}

    def draw(depth: int) -> tuple[str, str]:
        """An expression with a feature in it, and the same in SQL."""
        a = draw(depth - 1) if depth else random.choice(list(features.items()))
        if depth == 0:
            return a
        if random.random() < 0.15:
            return f"-({a[0]})", f"-({a[1]})"
        b = random.choice(list(constants.items())) if random.random() < 0.4 else draw(random.randrange(depth))
        a, b = random.sample([a, b], 2)
        op = random.choice("+-*/")
        sql = f"({a[1]})::DOUBLE / nullif(({b[1]})::DOUBLE, 0)" if op == "/" else f"({a[1]}) {op} ({b[1]})"
        return f"({a[0]}) {op} ({b[0]})", sql

    exprs = [draw(random.randrange(1, 4)) for _ in range(60)]
    report = store.table("ads").overlay("n", expr=[f"v{i} = {e}" for i, (e, _) in enumerate(exprs)], replace=True)
    assert report["covered"] == 1000
    got = store.table("ads").scan(["request_id", "click", "dense_a", "user_history", "v*"], overlay="n").to_arrow()
    with duckdb.connect() as db:
        db.register("rows", got)
        for i, (e, sql) in enumerate(exprs):
            want = [row[0] for row in db.execute(f"SELECT {sql} FROM rows").fetchall()]
            values = got[f"v{i}"].to_pylist()
            assert got[f"v{i}"].type == (pa.float64() if "/" in e or "dense_a" in e or "3.5" in e else pa.int64()), e
            assert len(want) == len(values)
            for v, w in zip(values, want):
                assert (v is None) == (w is None) and (v is None or v == w or v == pytest.approx(w, rel=1e-15)), (e, v,
                                                                                                                  w)


def test_extended(store):
    """What is ingested later is covered when the overlay is extended, and what was covered stays."""
    table = store.table("ads")
    table.overlay("labels", labels([f"r{i}" for i in range(400)]), key="request_id", label=True)
    store.ingest("ads", _renamed(make_rows(), 5000), session_key="session_id", time_key="event_time")
    late = labels([f"r{i}" for i in range(300, 5500)], step=3)
    report = store.table("ads").extend_overlay("labels", late, key="request_id")
    assert (report["before"]["covered"], report["before"]["rows"], report["covered"], report["rows"]) == (400, 2000,
                                                                                                          1500, 2000)
    got = store.table("ads").scan(["request_id", "label"], overlay="labels").to_arrow().to_pydict()
    was, is_now = (dict(zip(t["request_id"].to_pylist(), t["label"].to_pylist()))
                   for t in (labels([f"r{i}" for i in range(400)]), late))
    for key, value in zip(got["request_id"], got["label"]):
        assert value == (was[key] if key in was else is_now.get(key))
    with pytest.raises(dsistore.NotFoundError):
        store.table("ads").extend_overlay("label", late, key="request_id")
    with pytest.raises(dsistore.UsageError, match="give one of them"):
        store.table("ads").extend_overlay("labels")


def _renamed(rows: pa.Table, first: int) -> pa.Table:
    """The rows with other request ids."""
    at = rows.schema.get_field_index("request_id")
    return rows.set_column(at, rows.schema.field(at), pa.array([f"r{first + i}" for i in range(len(rows))]))


def test_replaced_feature(store):
    """Rows that are not covered are what they were, or null."""
    before = store.table("ads").scan(["request_id", "click"]).to_arrow()
    source = pa.table({"request_id": [f"r{i}" for i in range(0, 1000, 3)], "click": pa.array([7] * 334, pa.int8())})
    for missing_rows in ("fallthrough", "null"):
        store.table("ads").overlay("o", source, key=["request_id"], missing_rows=missing_rows, replace=True)
        got = store.table("ads").scan(["request_id", "click"], overlay="o").to_arrow()
        for key, old, new in zip(before["request_id"].to_pylist(), before["click"].to_pylist(),
                                 got["click"].to_pylist()):
            assert new == (7 if int(key[1:]) % 3 == 0 else old if missing_rows == "fallthrough" else None)
    assert store.table("ads").scan(["click"]).to_arrow()["click"].to_pylist() == before["click"].to_pylist()


def test_refused(store):
    table, source = store.table("ads"), labels(["r1", "r2", "r1"])
    number = table.snapshot.number
    with pytest.raises(dsistore.DsistoreError, match='key request_id "r1" is in -, row 0 and in -, row 2'):
        table.overlay("o", source, key="request_id")
    with pytest.raises(dsistore.DsistoreError, match="row 1: key request_id is null"):
        table.overlay("o", labels(["r1", None]), key="request_id")
    with pytest.raises(dsistore.UsageError, match="give one of them"):
        table.overlay("o")
    with pytest.raises(dsistore.UsageError, match="give one of them"):
        table.overlay("o", source, expr="y = click = 1")
    with pytest.raises(dsistore.NotFoundError, match='did you mean "request_id"'):
        table.overlay("o", source, key="request_di")
    with pytest.raises(dsistore.DsistoreError, match="clik.*did you mean"):
        table.overlay("o", expr="y = clik = 1")
    with pytest.raises(dsistore.UsageError, match="want fallthrough, null or refuse"):
        table.overlay("o", expr="y = click = 1", missing_layers="later")  # type: ignore[arg-type]
    table.overlay("o", expr="y = click = 1")
    with pytest.raises(dsistore.ExistsError, match="taken since snapshot"):
        table.overlay("o", expr="z = click = 1")
    assert store.table("ads").snapshot.number == number + 1


def test_interrupted(store):
    """What is raised while it is made ends it, and the table is as it was."""
    number = store.table("ads").snapshot.number

    def batches():
        yield labels([f"r{i}" for i in range(100)]).to_batches()[0]
        raise KeyboardInterrupt

    schema = labels([]).schema
    with pytest.raises(BaseException):
        store.table("ads").overlay("o", pa.RecordBatchReader.from_batches(schema, batches()), key="request_id")
    assert store.table("ads").snapshot.number == number
    store.table("ads").overlay("o", labels(["r1"]), key="request_id")
