"""Stores in Google Cloud Storage: fake-gcs-server, started by the tests."""

from __future__ import annotations

import json
import pathlib
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import torch

import dsistore

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The endpoint of a server with the bucket tables."""
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain to build the server with")
    serve = subprocess.Popen(["go", "run", "./internal/objectserver/serve", "-service", "gcs", "tables"], cwd=ROOT,
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert serve.stdin and serve.stdout and serve.stderr
    line = serve.stdout.readline()
    if not line:
        pytest.skip(f"no server of Google Cloud Storage: {serve.stderr.read()}")
    yield json.loads(line)["STORAGE_EMULATOR_HOST"]
    serve.stdin.close()
    serve.wait()


def rows(n: int) -> pa.Table:
    return pa.table({
        "session": pa.array([i // 4 for i in range(n)]), "time": pa.array(range(n)),
        "ids": pa.array([[i // 4, i % 7] for i in range(n)]), "x": pa.array([i / 8 for i in range(n)], pa.float32()),
    })


def test_a_table_there_is_as_one_here(server: str, tmp_path: pathlib.Path) -> None:
    here = dsistore.open(tmp_path / "s")
    there = dsistore.open("gs://tables/a", storage_options={"endpoint_url": server, "anon": True})
    assert there.uri == "gs://tables/a"
    for store in here, there:
        store.ingest("t", rows(5000), session_key="session", time_key="time")
    assert there.tables() == ["t"]
    assert there.table("t").scan().to_arrow().equals(here.table("t").scan().to_arrow())
    a, b = (store.table("t").torch(["ids", "x"], batch_size=512, shuffle="session") for store in (here, there))
    for p, q in zip(a, b, strict=True):
        assert torch.equal(p.sparse.values, q.sparse.values) and torch.equal(p.dense, q.dense)


def test_in_other_processes(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is that of when a request is made, and not of when the engine was loaded."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server)
    store = dsistore.open("gcs://tables/b")
    store.ingest("t", rows(3000), session_key="session", time_key="time")
    data = store.table("t").torch(["ids", "x"], batch_size=256)
    whole = [b.sparse.values.tolist() for b in data]
    assert [b.sparse.values.tolist() for b in pickle.loads(pickle.dumps(data))] == whole
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert sorted(b.sparse.values.tolist() for b in loader) == sorted(whole)


def test_secrets_are_not_pickled(server: str) -> None:
    options = {"google_base_url": server, "google_service_account_key": '{"type": "hush"}'}
    store: Any = dsistore.open("gs://tables/never-made", options)
    sent = pickle.dumps(store)
    assert b"hush" not in sent and server.encode() in sent


def test_options_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dsistore.UsageError, match="google_service_account_key") as e:
        dsistore.open("gs://tables/c", {"google_service_acount_key": "hush"}).tables()
    assert "hush" not in str(e.value)
    with pytest.raises(dsistore.UsageError, match="credentials in a URI"):
        dsistore.open("gs://key:hush@tables/d").tables()
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")
    with pytest.raises(dsistore.UsageError, match="/no/such/file"):
        dsistore.open("gs://tables/e").tables()
