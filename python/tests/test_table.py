import contextlib
import datetime
import gc
import pickle
import sys
import weakref

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import dsistore
from conftest import ROWS, make_rows
from dsistore import _engine
from programs import dsi


def tables_of(store):
    """The tables of a store; none where an ingest that failed has not made one."""
    try:
        return store.tables()
    except dsistore.NotFoundError:
        return []


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
    assert [len(store.table("t", s.time)) for s in store.table("t").snapshots()] == [80, 240]
    assert len(pickle.loads(pickle.dumps(store.table("t", 1)))) == 80
    assert store.tables() == ["t"]


def test_names_of_versions(tmp_path):
    """A text that is no time is a branch, or is not found: it is never taken for a time."""
    store = dsistore.open(tmp_path)
    store.ingest("t", make_rows(1, 80))
    dsi("branch", "create", tmp_path, "t", "v1")
    dsi("branch", "create", tmp_path, "t", "Training")  # has a T
    store.ingest("t", make_rows(2, 160))
    for table in (store.table("t", "v1"), store.table("t", version="Training"), store.table("t@v1")):
        assert len(table) == 80 and table.branch in ("v1", "Training")
    today = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    assert len(store.table("t", f"{today:%Y-%m-%d}")) == len(store.table("t", f"{today:%Y-%m-%dT%H:%M:%SZ}")) == 240
    for name, similar in (("v2", "v1"), ("Trainin", "Training"), ("vT1", "v1"), ("2026-1-1", ""), ("20260101", ""),
                          ("1", "v1")):
        with pytest.raises(dsistore.NotFoundError, match=f"no time.*{name}.*{similar}"):
            store.table("t", name)
    for odd in ("2026-01-01T25:00:00Z", "2026-13-01", "2026-01-01T"):
        with pytest.raises(dsistore.UsageError, match="RFC 3339"):
            store.table("t", odd)
    with pytest.raises(dsistore.UsageError, match="want one"):
        store.table("t", "v1", branch="Training")
    with pytest.raises(dsistore.NotFoundError, match="\"u\"") as e:
        store.table("u", "v1")
    assert "branch" not in str(e.value).partition("\"u\"")[2]


@pytest.mark.parametrize("version", [0, -1, 2**70, True, 1.5, ""])
def test_versions_that_make_no_sense(table, version):
    with pytest.raises(dsistore.UsageError, match="version|snapshot"):
        table.store.table("ads", version=version)


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
    assert tables_of(dsistore.open(tmp_path)) == []


def test_a_source_that_fails_leaves_nothing(tmp_path):
    good = make_rows(1, 80)

    def batches():
        yield from good.to_batches(max_chunksize=16)
        raise OSError("the source broke")

    reader = pa.RecordBatchReader.from_batches(good.schema, batches())
    with pytest.raises(dsistore.DsistoreError, match="the source broke"):
        dsistore.open(tmp_path).ingest("t", reader)
    assert tables_of(dsistore.open(tmp_path)) == []


def test_progress_and_duplicate_source(tmp_path, table):
    phases = []
    path = tmp_path / "s"
    pq.write_table(make_rows(3, 800), tmp_path / "d.parquet")
    dsistore.open(path).ingest("t", [tmp_path / "d.parquet"], progress=lambda phase, *_: phases.append(phase))
    with pytest.raises(dsistore.DuplicateSourceError, match="new_only=True leaves .* out; overwrite=True rep"):
        dsistore.open(path).ingest("t", [tmp_path / "d.parquet"])
    pq.write_table(make_rows(4, 400), tmp_path / "e.parquet")
    both = [tmp_path / "d.parquet", tmp_path / "e.parquet"]
    report = dsistore.open(path).ingest("t", both, new_only=True)
    assert (report["rows"], report["files"], report["files_known"], report["snapshot"]) == (400, 1, 1, 2)
    assert report["committed"]
    report = dsistore.open(path).ingest("t", both, new_only=True)
    assert (report["rows"], report["files"], report["files_known"], report["snapshot"]) == (0, 0, 2, 2)
    assert not report["committed"]


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
    scan = store.table("t").scan()
    for read in scan.to_arrow, lambda: list(scan), lambda: store.table("t").take([1, 2]):
        with pytest.raises(dsistore.CorruptError, match="^corrupt data.*dsi repair") as e:
            read()
        assert e.value.feature and e.value.object and e.value.offset is not None
    with pytest.raises(OSError, match="corrupt data"):  # pyarrow's, which knows the text alone
        scan.reader().read_all()


def test_a_scan_that_fails_keeps_no_batches(tmp_path):
    """What its reader held goes with the exception, and not with the next collection of garbage."""
    store = dsistore.open(tmp_path / "s")
    store.ingest("t", make_rows(1, 800))
    whole = set((tmp_path / "s").rglob("pack-*"))
    store.ingest("t", make_rows(2, 800))
    for p in set((tmp_path / "s").rglob("pack-*")) - whole:
        p.unlink()
    scan, held = store.table("t").scan(batch_size=100), []

    class Batches(list):
        pass

    def read():
        batches = Batches()
        held.append(weakref.ref(batches))
        for b in scan:
            batches.append(b)

    gc.disable()
    try:
        with contextlib.suppress(dsistore.CorruptError):
            read()
        assert held[0]() is None
    finally:
        gc.enable()


SOURCES = {
    "table": lambda rows, path: rows,
    "batch": lambda rows, path: rows.combine_chunks().to_batches()[0],
    "reader": lambda rows, path: rows.to_reader(max_chunksize=7),
    "dataset": lambda rows, path: pyarrow.dataset.dataset(path),
    "scanner": lambda rows, path: pyarrow.dataset.dataset(path).scanner(columns=rows.column_names),
    "duckdb": lambda rows, path: duckdb.sql("select * from rows"),
    "polars": lambda rows, path: polars.from_arrow(rows),
    "path": lambda rows, path: path,
    "text": lambda rows, path: str(path),
    "paths": lambda rows, path: [path],
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_table(tmp_path, name):
    rows = make_rows(5, 80)
    pq.write_table(rows, tmp_path / "rows.parquet")
    store = dsistore.open(tmp_path / "s")
    report = store.ingest("t", SOURCES[name](rows, tmp_path / "rows.parquet"))
    assert report["rows"] == 80
    assert store.table("t").scan(rows.column_names).to_arrow().combine_chunks().equals(rows.combine_chunks())


def test_a_scan_ingested_is_the_same_table(table, source, tmp_path):
    store = dsistore.open(tmp_path)
    store.ingest("copy", table.scan(source.column_names, batch_size=100))
    copy = store.table("copy").scan(source.column_names).to_arrow()
    assert copy.combine_chunks().equals(source.combine_chunks())


def test_options_of_an_ingest(tmp_path):
    """Hive directories, partitions by a column, a mapping, and text with a schema."""
    store = dsistore.open(tmp_path / "s")
    for ds, value in (("x", 1), ("y", 2)):
        (tmp_path / "hive" / f"ds={ds}").mkdir(parents=True)
        pq.write_table(pa.table({"a": [value]}), tmp_path / "hive" / f"ds={ds}" / "0.parquet")
    store.ingest("hive", tmp_path / "hive")
    store.ingest("column", pa.table({"a": [2, 1], "ds": ["y", "x"]}), partition_by="ds")
    for name in ("hive", "column"):
        t = store.table(name)
        assert t.scan(["a", "ds"]).to_arrow().to_pydict() == {"a": [1, 2], "ds": ["x", "y"]}
        assert t.scan(["a"], partitions="ds = 'y'").to_arrow().to_pydict() == {"a": [2]}
    (tmp_path / "m.json").write_text('{"columns": {"a": {"rename": "b", "role": "label"}}}')
    store.ingest("mapped", pa.table({"a": [1]}), mapping=tmp_path / "m.json")
    assert [(f.name, f.role) for f in store.table("mapped").features()] == [("b", "label")]
    (tmp_path / "t.sql").write_text("CREATE TABLE `t`(`a` bigint, `l` array<bigint>) ROW FORMAT DELIMITED "
                                    "FIELDS TERMINATED BY '|' COLLECTION ITEMS TERMINATED BY ','")
    (tmp_path / "rows.txt").write_text("7|1,2\n8|\\N\n")
    store.ingest("text", tmp_path / "rows.txt", format="text", ddl=tmp_path / "t.sql")
    assert store.table("text").scan(["a", "l"]).to_arrow().to_pydict() == {"a": [7, 8], "l": [[1, 2], None]}


@pytest.mark.parametrize("source", [None, 7, {"a": [1]}, [], [pa.table({"a": [1]})], iter(())])
def test_what_is_no_source(tmp_path, source):
    with pytest.raises(dsistore.UsageError, match="want a path, a list of paths or an Arrow stream"):
        dsistore.open(tmp_path).ingest("t", source)
    assert tables_of(dsistore.open(tmp_path)) == []


def test_readers_of_a_scan(table, source):
    scan = table.scan(source.column_names, batch_size=300)
    assert pa.table(scan).combine_chunks().equals(source.combine_chunks())
    frame = polars.DataFrame(scan)
    assert frame.height == ROWS and frame["user_history"].to_list() == source["user_history"].to_pylist()
    got = duckdb.sql("select session_id, len(item_list) from scan order by event_time").fetchall()
    want = sorted(source.to_pylist(), key=lambda r: r["event_time"])
    assert got == [(r["session_id"], None if r["item_list"] is None else len(r["item_list"])) for r in want]
    # A wish for other types is only a wish.
    assert pa.RecordBatchReader.from_stream(scan, schema=scan.reader().schema).read_all().num_rows == ROWS
    with pytest.raises(dsistore.UsageError, match="batch_size 0"):
        table.scan(batch_size=0)
    with pytest.raises(dsistore.UsageError, match="batch_size 0"):
        table.torch(["click"], batch_size=0)


def test_corrupt_bytes_in_the_middle_reach_every_reader(tmp_path):
    """Damage in either partition ends the stream, and the exception says what and where."""
    store = dsistore.open(tmp_path / "s")
    store.ingest("t", pa.table({"n": range(2000), "ds": ["a"] * 1000 + ["b"] * 1000}), partition_by="ds")
    packs = list((tmp_path / "s").rglob("pack-*"))
    for p in packs:
        whole = p.read_bytes()
        p.chmod(0o644)
        p.write_bytes(bytes(b ^ 0x55 if i < len(whole) // 2 else b for i, b in enumerate(whole)))
        scan = dsistore.open(tmp_path / "s").table("t").scan(["n"], batch_size=100)
        for read in (pa.table, polars.DataFrame, lambda scan: duckdb.sql("select sum(n) from scan").fetchall()):
            with pytest.raises(Exception, match="corrupt") as e:
                read(scan)
            assert '"n"' in str(e.value) or "pack-" in str(e.value)
        p.write_bytes(whole)
    assert packs and pa.table(scan).num_rows == 2000


def test_without_pyarrow_a_scan_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read in (table.scan().to_arrow, table.scan().reader, lambda: iter(table.scan())):
        with pytest.raises(ImportError, match=r"pip install 'dsistore\[arrow\]'"):
            read()
    opened = _engine.call("open_counts")["records"]
    with pytest.raises(ImportError, match=r"pip install 'dsistore\[arrow\]'"):
        table.take([0])
    assert _engine.call("open_counts")["records"] == opened


def test_a_profile_is_remembered(tmp_path):
    store = dsistore.open(tmp_path)
    whole = [make_rows(seed, 400) for seed in (1, 2, 3)]
    reports = [
        store.ingest("t", whole[0], profile="size"),
        store.ingest("t", whole[1]),
        store.ingest("t", whole[2], profile="speed")
    ]
    assert [r["profile"] for r in reports] == ["size", "size", "speed"]
    assert store.table("t").scan().to_arrow().num_rows == sum(t.num_rows for t in whole)
    with pytest.raises(dsistore.errors.UsageError, match="speed"):
        store.ingest("t", whole[0], profile="fast", overwrite=True)
