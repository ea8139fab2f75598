"""Ingests that meet others, a full disk, or a store that is gone: what is there stays whole, and errors say what is
wrong."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pyarrow as pa
import pytest

import dsistore
from programs import finish, open_gate, start

BESIDE_ANOTHER = """
    import sys
    import pyarrow as pa
    import dsistore
    path, gate, me, overwrite = sys.argv[1:]
    store = dsistore.open(path)  # which both will make
    open(gate).close()  # until the other is there too
    done = 0
    for i in range(8):
        first = int(me) * 1000 + i * 10
        rows = pa.table({"id": list(range(first, first + 10)), "list": [[n, n] for n in range(first, first + 10)]})
        try:
            report = store.ingest("t", rows, session_key="id", overwrite=bool(int(overwrite)))
            assert report["rows"] == 10
            done += 1
        except dsistore.ConflictError as e:
            assert "t" in str(e) and "\\n" not in str(e), e
    print(done)
"""


def tables_of(store):
    """The tables of a store; none where an ingest that failed has not made one."""
    try:
        return store.tables()
    except dsistore.NotFoundError:
        return []


@pytest.mark.parametrize("overwrite", [False, True])
def test_two_processes_ingest_into_one_table(tmp_path, overwrite):
    """The commit that comes second is retried where both fit. Of two that overwrite the same rows one may end with a
    conflict."""
    gates = [tmp_path / "gate0", tmp_path / "gate1"]
    for gate in gates:
        os.mkfifo(gate)
    running = [start(BESIDE_ANOTHER, tmp_path / "store", gate, me, int(overwrite)) for me, gate in enumerate(gates)]
    for gate, p in zip(gates, running, strict=True):
        open_gate(gate, p)
    done = []
    for p in running:
        status, out, err = finish(p)
        assert (status, err) == (0, ""), err
        done.append(int(out))
    table = dsistore.open(tmp_path / "store").table("t")
    assert [s.number for s in table.snapshots()] == list(range(1, sum(done) + 1))
    got = table.scan().to_arrow()
    ids = got["id"].to_pylist()
    assert got["list"].to_pylist() == [[n, n] for n in ids]
    if overwrite:
        # Who is slower may lose each time, but each time to a commit of the other.
        assert sum(done) >= 8 and sorted(ids) == list(range(ids[0], ids[0] + 10))
    else:
        assert done == [8, 8]
        assert sorted(ids) == [me * 1000 + n for me in range(2) for n in range(80)]


ON_A_FULL_DISK = """
    import os, sys
    import numpy as np
    import pyarrow as pa
    import dsistore
    path = sys.argv[1]
    r = np.random.default_rng(1)
    store = dsistore.open(path)
    def rows(first, n):
        ids = pa.array(r.integers(1 << 62, size=20 * n))
        lists = pa.ListArray.from_arrays(pa.array(range(0, 20 * n + 1, 20), pa.int32()), ids)
        return pa.table({"id": range(first, first + n), "list": lists})
    def whole(end):
        table = store.table("t")
        assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == list(range(end))
        assert sum(b.rows for b in table.torch(["list"], batch_size=100)) == end
    store.ingest("t", rows(0, 1000), session_key="id")
    for memory in (None, 1 << 20):  # the second spills
        try:
            store.ingest("t", rows(1000, 40_000), session_key="id", memory=memory)
            raise SystemError("the disk is not full")
        except dsistore.DsistoreError as e:
            assert "no space left on device" in str(e) and "\\n" not in str(e) and len(str(e)) < 300, e
        assert [s.number for s in store.table("t").snapshots()] == [1]
        whole(1000)
        left = os.listdir(os.path.join(path, "_tmp"))
        assert left == [], left
    store.ingest("t", rows(1000, 1000), session_key="id")  # for which there is room: a failed ingest keeps none
    whole(2000)
"""


def test_a_full_disk(tmp_path):
    """A file system of 4 MiB of its own."""
    own = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "sh", "-c",
           'mount -t tmpfs -o size=4m none "$0" && exec "$@"', tmp_path]
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        pytest.skip("no file system may be mounted here: a full disk was left out")
    status, _, err = finish(start(ON_A_FULL_DISK, tmp_path, under=own))
    assert (status, err) == (0, ""), err


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": list(values)})


def test_a_store_that_is_removed_and_made_again(tmp_path):
    root = tmp_path / "store"
    store = dsistore.open(root)
    store.ingest("t", numbers(1, 2, 3))
    table = store.table("t")
    data, scan = table.torch(["id"]), table.scan(["id"])
    shutil.rmtree(root)
    assert tables_of(store) == []
    uses = [
        lambda: store.table("t"), lambda: table.features(), lambda: next(iter(data)), lambda: table.torch(["id"]),
        scan.reader
    ]
    for use in uses:
        with pytest.raises(dsistore.NotFoundError) as e:
            use()
        assert "'t'" in str(e.value).replace('"', "'") and str(root) in str(e.value)
        assert "\n" not in str(e.value) and len(str(e.value)) < 120 + len(str(root)), e.value
    store.ingest("t", numbers(4, 5))
    assert store.table("t").snapshot.number == 1 and store.table("t").scan().to_arrow()["id"].to_pylist() == [4, 5]


def test_a_relative_path_is_where_it_was_opened(tmp_path, monkeypatch):
    tables = []
    for name, values in (("a", [1]), ("b", [2, 3])):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        dsistore.open("store").ingest("t", numbers(*values))
        tables.append(dsistore.open(pathlib.Path("store")).table("t"))
    monkeypatch.chdir(tmp_path)
    assert [t.scan().to_arrow()["id"].to_pylist() for t in tables] == [[1], [2, 3]]
    assert [sum(b.rows for b in t.torch(["id"])) for t in tables] == [1, 2]
    state = tables[0].torch(["id"]).state_dict()
    assert (state["store"], state["table"]) == ("store", "t")
    with pytest.raises(dsistore.NotFoundError):
        dsistore.open("store").table("t")


@pytest.mark.parametrize("wrong, said", [
    (pa.record_batch({"id": pa.array([3], pa.int64()), "price": pa.array([10], pa.int64())}),
     "batch 1 has 'price' of type int64 as column 1, and the schema .* has 'price' of type double"),
    (pa.record_batch({"price": pa.array([1.0]), "id": pa.array([3], pa.int64())}),
     "batch 1 has 'price' of type double"),
    (pa.record_batch({"id": pa.array([3], pa.int32()), "price": pa.array([1.0])}), "batch 1 has 'id' of type int32"),
    (pa.record_batch({"id": pa.array([3], pa.int64())}), "batch 1 has no column as column 1"),
    (pa.record_batch({"id": pa.array([3], pa.int64()), "price": pa.array([[1.0]])}),
     "batch 1 has 'price' of type list<item: double> as column 1"),
])
def test_batches_that_are_not_of_the_schema(tmp_path, wrong, said):
    """pyarrow does not compare them: int64 would be read as float64, int32 beyond the buffer's end."""
    right = pa.record_batch({"id": pa.array([1, 2], pa.int64()), "price": pa.array([0.5, 1.5])})
    store = dsistore.open(tmp_path / "store")
    with pytest.raises(dsistore.UsageError, match=said):
        store.ingest("t", pa.RecordBatchReader.from_batches(right.schema, iter([right, wrong])))
    with pytest.raises(dsistore.NotFoundError):
        store.table("t").scan()
    store.ingest("t", pa.RecordBatchReader.from_batches(right.schema, iter([right, right.slice(1)])))
    assert store.table("t").scan().to_arrow()["price"].to_pylist() == [0.5, 1.5, 1.5]
    # Spark and Iceberg say of items that they are never null, and batches made of Python's lists do not.
    never = pa.schema([("ids", pa.list_(pa.field("element", pa.int64(), nullable=False)))])
    lists = pa.record_batch({"ids": pa.array([[1, 2], []], pa.list_(pa.int64()))})
    store.ingest("lists", pa.RecordBatchReader.from_batches(never, iter([lists])))
    assert store.table("lists").scan().to_arrow()["ids"].to_pylist() == [[1, 2], []]
