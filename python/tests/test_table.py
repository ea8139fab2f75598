import datetime
import pickle

import duckdb
import pyarrow as pa
import pytest

import dsistore
from conftest import ROWS, make_rows


def test_scan_equals_the_source(table, source):
    got = table.scan().to_arrow()
    assert got.num_rows == ROWS
    assert got.select(source.column_names).combine_chunks().equals(source.combine_chunks())


@pytest.mark.parametrize("batch_size", [1, 7, 4096])
def test_scan_in_batches(table, source, batch_size):
    batches = list(table.scan(["click", "user_history", "dense_a"], batch_size=batch_size))
    assert max(b.num_rows for b in batches) <= batch_size
    got = pa.Table.from_batches(batches).combine_chunks()
    assert got.equals(source.select(["click", "user_history", "dense_a"]).combine_chunks())


def test_a_scan_is_read_many_times_and_by_others(table, source):
    scan = table.scan(["click", "dense_b"])
    assert duckdb.sql("select sum(click), sum(dense_b) from scan").fetchall() == [(
        sum(source["click"].to_pylist()), sum(source["dense_b"].to_pylist()))]
    assert scan.to_arrow().num_rows == scan.rows == ROWS


def test_a_scan_that_nobody_consumes_and_one_that_is_left(table):
    table.scan(["click"]).__arrow_c_stream__()
    reader = table.scan(["click"], batch_size=10).reader()
    reader.read_next_batch()
    del reader


def test_records_outlive_the_scan(table, source):
    first = next(iter(table.scan(["item_list"], batch_size=100)))
    assert first["item_list"].to_pylist() == source["item_list"].to_pylist()[:100]


def test_features(table):
    by_name = {f.name: f for f in table.features()}
    assert by_name["user_list"].kind == "sparse" and by_name["scored"].kind == "weighted"
    assert by_name["vector"].dim == 4 and by_name["session_id"].role == "session key"
    assert [f.name for f in table.features("dense_*")] == ["dense_a", "dense_b"]


def test_versions(tmp_path):
    store = dsistore.open(tmp_path)
    store.ingest("t", make_rows(1, 80))
    middle = datetime.datetime.now(datetime.timezone.utc)
    store.ingest("t", make_rows(2, 160))
    assert [len(store.table("t", v)) for v in (1, 2, None, middle)] == [80, 240, 240, 80]
    assert [s.rows for s in store.table("t").snapshots()] == [80, 240]
    assert len(pickle.loads(pickle.dumps(store.table("t", 1)))) == 80
    assert store.tables() == ["t"]


def test_errors_name_what_is_wrong(table, tmp_path):
    with pytest.raises(dsistore.NotFoundError, match='"adz".*did you mean "ads"'):
        table.store.table("adz")
    with pytest.raises(dsistore.NotFoundError, match='did you mean "user_history"'):
        table.features("user_histroy")
    with pytest.raises(dsistore.NotFoundError, match="snapshot 9"):
        table.store.table("ads", 9)
    with pytest.raises(dsistore.DsistoreError, match="no-such-file"):
        dsistore.open(tmp_path).ingest("t", tmp_path / "no-such-file.parquet")
    with pytest.raises(dsistore.UsageError, match="on.bad.row"):
        dsistore.open(tmp_path).ingest("t", make_rows(1, 8), on_bad_row="ignore")
    assert dsistore.open(tmp_path).tables() == []


def test_a_source_that_fails_leaves_nothing(tmp_path):
    good = make_rows(1, 80)

    def batches():
        yield from good.to_batches(max_chunksize=16)
        raise OSError("the source broke")

    reader = pa.RecordBatchReader.from_batches(good.schema, batches())
    with pytest.raises(dsistore.DsistoreError, match="the source broke"):
        dsistore.open(tmp_path).ingest("t", reader)
    assert dsistore.open(tmp_path).tables() == []


def test_progress_and_duplicate_source(tmp_path, table):
    phases = []
    path = tmp_path / "s"
    import pyarrow.parquet as pq

    pq.write_table(make_rows(3, 800), tmp_path / "d.parquet")
    dsistore.open(path).ingest("t", [tmp_path / "d.parquet"], progress=lambda phase, *_: phases.append(phase))
    with pytest.raises(dsistore.DuplicateSourceError):
        dsistore.open(path).ingest("t", [tmp_path / "d.parquet"])


def test_corrupt_bytes_say_where(tmp_path):
    store = dsistore.open(tmp_path / "s")
    store.ingest("t", make_rows(1, 800))
    packs = [p for p in (tmp_path / "s").rglob("pack-*")]
    for p in packs:
        data = bytearray(p.read_bytes())
        for i in range(0, len(data) * 3 // 4, 64):
            data[i] ^= 0x55
        p.chmod(0o644)
        p.write_bytes(data)
    with pytest.raises(dsistore.CorruptError) as e:
        for _ in store.table("t").torch(["user_list", "dense_a"]):
            pass
    assert any(n in e.value.feature for n in ("user_list", "dense_a")) and e.value.object and e.value.offset is not None
    with pytest.raises(Exception, match="corrupt data"):
        store.table("t").scan().to_arrow()
