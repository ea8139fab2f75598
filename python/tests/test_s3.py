"""Stores in an object store: a real server of S3, started by the tests."""

from __future__ import annotations

import contextlib
import copy
import json
import pathlib
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import torch
from pyarrow import orc, parquet

import dsistore
from programs import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = {"AWS_ENDPOINT_URL": "endpoint_url", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
           "AWS_REGION": "region"}


@contextlib.contextmanager
def started() -> Iterator[dict[str, str]]:
    """The environment by which a server with the bucket tables is reached."""
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain to build the server of S3 with")
    serve = subprocess.Popen(["go", "run", "./internal/objectserver/serve", "tables"], cwd=ROOT, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert serve.stdin and serve.stdout and serve.stderr
    line = serve.stdout.readline()
    if not line:
        pytest.skip(f"no server of S3: {serve.stderr.read()}")
    yield json.loads(line)
    serve.stdin.close()
    serve.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with started() as s:
        yield s


@pytest.fixture(scope="module")
def bucket(server: dict[str, str]) -> Any:
    """pyarrow's own view of the bucket."""
    fs = pytest.importorskip("pyarrow.fs")
    return fs.SubTreeFileSystem("tables", fs.S3FileSystem(
        access_key=server["AWS_ACCESS_KEY_ID"], secret_key=server["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=server["AWS_ENDPOINT_URL"].removeprefix("http://"), scheme="http",
        region=server["AWS_REGION"]))


def options_of(server: dict[str, str]) -> dict[str, Any]:
    return {OPTIONS[k]: v for k, v in server.items() if k in OPTIONS}


def rows(n: int) -> pa.Table:
    return pa.table({
        "session": pa.array([i // 4 for i in range(n)]), "time": pa.array(range(n)),
        "ids": pa.array([[i // 4, i % 7] for i in range(n)]), "x": pa.array([i / 8 for i in range(n)], pa.float32()),
    })


def test_a_table_there_is_as_one_here(server: dict[str, str], tmp_path: pathlib.Path) -> None:
    options = options_of(server)
    here, there = dsistore.open(tmp_path / "s"), dsistore.open("s3://tables/a", storage_options=options)
    assert there.uri == "s3://tables/a" and "secret" not in repr(there)
    for store in here, there:
        store.ingest("t", rows(5000), session_key="session", time_key="time")
    assert there.tables() == ["t"]
    assert there.table("t").scan().to_arrow().equals(here.table("t").scan().to_arrow())
    a, b = (store.table("t").torch(["ids", "x"], batch_size=512, shuffle="session", output="ikjt")
            for store in (here, there))
    for p, q in zip(a, b, strict=True):
        assert torch.equal(p.sparse.values, q.sparse.values) and torch.equal(p.dense, q.dense)
        assert torch.equal(p.inverses, q.inverses)
    rows_of = there.table("t").take([4999, 3, 77], ["x"])
    assert rows_of.equals(here.table("t").take([4999, 3, 77], ["x"]))


def test_stats_have_what_was_sent(server: dict[str, str], tmp_path: pathlib.Path) -> None:
    options = options_of(server)
    sent = []
    for uri, extra in {
        "s3://tables/sent": {}, "s3://tables/cached": {"cache_dir": str(tmp_path / "cache"), "cache_size": "64MiB"},
    }.items():
        store = dsistore.open(uri, storage_options=options | extra)
        store.ingest("t", rows(5000), session_key="session", time_key="time")
        data = store.table("t").torch(["ids", "x"], batch_size=512)
        for _ in range(2):
            assert sum(1 for _ in data) == 10
            sent.append(data.stats())
    first, again, cold, warm = sent
    assert first.sent_reads >= first.requests >= 1 and first.sent_lists == 0
    assert first.bytes_down >= first.bytes_needed + first.bytes_unneeded > 0
    assert again.bytes_down <= first.bytes_down and again.requests == first.requests
    assert first.bytes_cached == 0 == warm.sent_reads == warm.bytes_down
    assert cold.bytes_down > 0 and warm.bytes_cached >= warm.bytes_needed and warm.requests == again.requests


def test_resume_in_another_process(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    store = dsistore.open("s3://tables/b")
    store.ingest("t", rows(3000), session_key="session", time_key="time")
    data = store.table("t").torch(["ids", "x"], batch_size=256)
    whole = [b.sparse.values.tolist() for b in data]
    left = iter(data)
    first = [next(left).sparse.values.tolist() for _ in range(5)]
    state = data.state_dict()
    again = pickle.loads(pickle.dumps(data))
    again.load_state_dict(state)
    assert first + [b.sparse.values.tolist() for b in again] == whole
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    data.set_epoch(1)
    assert sorted(b.sparse.values.tolist() for b in loader) == sorted(whole)


def test_secrets_are_not_pickled(server: dict[str, str]) -> None:
    options = {"aws_endpoint": server["AWS_ENDPOINT_URL"], "aws_access_key_id": "id-of-a-key",
               "aws_secret_access_key": "hush", "aws_session_token": "hush-hush", "aws_region": "us-east-1"}
    store: Any = dsistore.open("s3://tables/never-made", options)
    sent = pickle.dumps(store)
    assert b"hush" not in sent and b"id-of-a-key" not in sent and server["AWS_ENDPOINT_URL"].encode() in sent
    with pytest.raises(dsistore.DsistoreError) as e:
        store.tables()
    assert "hush" not in str(e.value) and "denied" in str(e.value)


CACHED = """
    import sys, dsistore
    table = dsistore.open(sys.argv[1]).table("t")
    print(sum(int(b.sparse.values.sum()) for b in table.torch(["ids"], batch_size=512)))
"""


def test_a_cache_on_the_local_disk(server: dict[str, str], monkeypatch: pytest.MonkeyPatch,
                                   tmp_path: pathlib.Path) -> None:
    """Processes share it, by the environment and by storage options; a value that is no size is said."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    store = dsistore.open("s3://tables/c")
    store.ingest("t", rows(3000), session_key="session", time_key="time")
    want = sum(map(sum, rows(3000)["ids"].to_pylist()))
    monkeypatch.setenv("DSISTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DSISTORE_CACHE_SIZE", "64MiB")
    for _ in range(2):
        assert int(run(CACHED, "s3://tables/c")) == want
    held = sum(f.stat().st_size for f in (tmp_path / "cache").iterdir())
    assert 0 < held <= 64 << 20 and {f.name for f in (tmp_path / "cache").iterdir()} == {
        "dsistore-cache", "index", "blocks-0000"}
    options = options_of(server)
    with pytest.raises(dsistore.DsistoreError, match="size of a cache"):
        dsistore.open("s3://tables/elsewhere", storage_options={**options, "cache_dir": tmp_path / "other",
                                                          "cache_size": "large"}).tables()


def test_two_services_with_the_same_bucket(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each store is where its own options say, also one that was pickled; what was wrong before is forgotten."""
    uri = "s3://tables/same"
    wrong = dsistore.open(uri, {**options_of(server), "secret": "hush"})
    with pytest.raises(dsistore.DsistoreError, match="denied"):
        wrong.tables()
    with started() as other:
        staging, production = (dsistore.open(uri, options_of(s)) for s in (server, other))
        for store, n in (staging, 1000), (production, 3000):
            store.ingest("t", rows(n), session_key="session", time_key="time")
        assert staging.table("t").delete(filter="x < 10")["rows_deleted"] == 80
        for store, n in (staging, 920), (production, 3000):
            table = store.table("t")
            data = table.torch(["x"], batch_size=100)
            for again, t, d in (store, table, data), pickle.loads(pickle.dumps((store, table, data))), copy.deepcopy(
                    (store, table, data)):
                assert again.tables() == ["t"] and len(again.table("t")) == len(t) == n
                assert len(t.scan(["x"]).to_arrow()) == sum(len(b.dense) for b in d) == n
                assert t.take([n - 1], ["x"])["x"].to_pylist() == [(n - 1 if n == 3000 else 999) / 8]
        by_environment = dsistore.open(uri)
        for s, n in (server, 920), (other, 3000):
            for name, value in s.items():
                monkeypatch.setenv(name, value)
            assert len(by_environment.table("t")) == n
        for bad in wrong, copy.deepcopy(wrong), pickle.loads(pickle.dumps(wrong)):
            with pytest.raises(dsistore.DsistoreError, match="denied"):
                bad.tables()
        dsistore.open(uri, {**options_of(other), "secret": "hush"})
        for good in copy.copy(production), copy.deepcopy(production), pickle.loads(pickle.dumps(production)):
            assert good.tables() == ["t"]
    with pytest.raises(dsistore.UsageError, match="storage option 1: want a string"):
        dsistore.open(uri, {1: "a"})  # type: ignore[dict-item]
    with pytest.raises(dsistore.UsageError, match="keyy"):
        dsistore.open(uri, {**options_of(server), "keyy": "a"}).tables()


def test_options_that_are_wrong() -> None:
    with pytest.raises(dsistore.UsageError, match="aws_secret_access_key") as e:
        dsistore.open("s3://tables/c", {"aws_secret_acces_key": "hush"}).tables()
    assert "hush" not in str(e.value)
    with pytest.raises(dsistore.UsageError, match="credentials in a URI"):
        dsistore.open("s3://key:hush@tables/d").tables()
    with pytest.raises(dsistore.UsageError, match="ftp:// stores"):
        dsistore.open("ftp://tables/d").tables()


def test_sources_there(server: dict[str, str], bucket: Any, tmp_path: pathlib.Path) -> None:
    """What pyarrow wrote into a bucket is ingested, by the options of the store or of the sources."""
    options = options_of(server)
    want = rows(5000)
    with bucket.open_output_stream("dump/ds=2026-11-01/part 0.parquet") as f:
        parquet.write_table(want, f, row_group_size=1000)
    here, there = dsistore.open(tmp_path / "s"), dsistore.open("s3://tables/sources", storage_options=options)
    here.ingest("t", "s3://tables/dump", storage_options=options)
    there.ingest("t", ["s3://tables/dump/ds=2026-11-01/part 0.parquet"])
    for table in here.table("t"), there.table("t"):
        assert table.scan(list(want.column_names)).to_arrow().to_pylist() == want.to_pylist()
    with pytest.raises(dsistore.DuplicateSourceError):
        there.ingest("t", "s3://tables/dump/")
    with pytest.raises(dsistore.DsistoreError, match="s3://tables/dmp.*dump"):
        there.ingest("t", "s3://tables/dmp")


ORC = """
    import sys, dsistore
    dsistore.open(sys.argv[1]).ingest("o", "s3://tables/orc")
"""


def test_orc_there(server: dict[str, str], bucket: Any, monkeypatch: pytest.MonkeyPatch,
                   tmp_path: pathlib.Path) -> None:
    """By an interpreter that has pyarrow: the engine looks for it in the environment that the process began with."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DSISTORE_PYTHON", sys.executable)
    want = rows(5000)
    with bucket.open_output_stream("orc/part-0.orc") as f:
        orc.write_table(want, f, stripe_size=64 << 10)
    run(ORC, tmp_path)
    table = dsistore.open(tmp_path).table("o")
    assert table.scan(list(want.column_names)).to_arrow().to_pylist() == want.to_pylist()
