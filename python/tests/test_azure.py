"""Stores in Azure Blob Storage: Azurite, started by the tests."""

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
from pyarrow import fs, parquet

import dsistore

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    """The environment of a server with the container tables."""
    for program, why in ("node", "run"), ("npm", "install"), ("go", "start"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} to {why} the server with")
    serve = subprocess.Popen(["go", "run", "./internal/objectserver/serve", "-service", "azure", "tables"], cwd=ROOT,
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert serve.stdin and serve.stdout and serve.stderr
    line = serve.stdout.readline()
    if not line:
        pytest.skip(f"no server of Azure: {serve.stderr.read()}")
    yield json.loads(line)
    serve.stdin.close()
    serve.wait()


def options(server: dict[str, str]) -> dict[str, str]:
    return {"endpoint_url": server["AZURE_STORAGE_ENDPOINT"], "account_name": server["AZURE_STORAGE_ACCOUNT_NAME"],
            "account_key": server["AZURE_STORAGE_ACCOUNT_KEY"]}


def rows(n: int) -> pa.Table:
    return pa.table({
        "session": pa.array([i // 4 for i in range(n)]), "time": pa.array(range(n)),
        "ids": pa.array([[i // 4, i % 7] for i in range(n)]), "x": pa.array([i / 8 for i in range(n)], pa.float32()),
    })


def test_a_table_there_is_as_one_here(server: dict[str, str], tmp_path: pathlib.Path) -> None:
    here = dsistore.open(tmp_path / "s")
    cached = {"cache_dir": str(tmp_path / "cache"), "cache_size": "64MiB"}
    there = dsistore.open("az://tables/a", storage_options={**options(server), **cached})
    assert there.uri == "az://tables/a"
    for store in here, there:
        store.ingest("t", rows(5000), session_key="session", time_key="time")
    assert there.tables() == ["t"]
    assert there.table("t").scan().to_arrow().equals(here.table("t").scan().to_arrow())
    a, b = (store.table("t").torch(["ids", "x"], batch_size=512, shuffle="session") for store in (here, there))
    for p, q in zip(a, b, strict=True):
        assert torch.equal(p.sparse.values, q.sparse.values) and torch.equal(p.dense, q.dense)
    assert (tmp_path / "cache").is_dir()


def test_in_other_processes(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is that of when a request is made, and not of when the engine was loaded."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    store = dsistore.open("abfs://tables/b")
    store.ingest("t", rows(3000), session_key="session", time_key="time")
    data = store.table("t").torch(["ids", "x"], batch_size=256)
    whole = [b.sparse.values.tolist() for b in data]
    assert [b.sparse.values.tolist() for b in pickle.loads(pickle.dumps(data))] == whole
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert sorted(b.sparse.values.tolist() for b in loader) == sorted(whole)


def test_secrets_are_not_pickled() -> None:
    for secret in "account_key", "sas_token", "connection_string", "client_secret":
        store: Any = dsistore.open("az://tables/never-made", {"account_name": "account", secret: "hush"})
        sent = pickle.dumps(store)
        assert b"hush" not in sent and b"account_name" in sent


def test_options_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME":
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(dsistore.UsageError, match="azure_storage_account_key") as e:
        dsistore.open("az://tables/c", {"azure_storage_acount_key": "hush"}).tables()
    assert "hush" not in str(e.value)
    with pytest.raises(dsistore.UsageError, match="credentials in a URI"):
        dsistore.open("az://key:hush@tables/d").tables()
    with pytest.raises(dsistore.UsageError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        dsistore.open("az://tables/e", {"anon": True}).tables()


def test_sources_there(server: dict[str, str], tmp_path: pathlib.Path) -> None:
    """What pyarrow wrote into a container is ingested, by the options of the store or of the sources."""
    address, account = server["AZURE_STORAGE_ENDPOINT"].removeprefix("http://").split("/")
    container = fs.SubTreeFileSystem("tables", fs.AzureFileSystem(
        account, account_key=server["AZURE_STORAGE_ACCOUNT_KEY"], blob_storage_authority=address,
        dfs_storage_authority=address, blob_storage_scheme="http", dfs_storage_scheme="http"))
    want = rows(5000)
    with container.open_output_stream("dump/ds=2026-11-01/part 0%3A.parquet") as f:
        parquet.write_table(want, f, row_group_size=1000)
    here = dsistore.open(tmp_path / "s")
    there = dsistore.open("az://tables/sources", storage_options=options(server))
    here.ingest("t", f"abfss://tables@{account}.dfs.core.windows.net/dump", storage_options=options(server))
    there.ingest("t", ["az://tables/dump/ds=2026-11-01/part 0%3A.parquet"])
    for table in here.table("t"), there.table("t"):
        assert table.scan(list(want.column_names)).to_arrow().to_pylist() == want.to_pylist()
    with pytest.raises(dsistore.DuplicateSourceError):
        there.ingest("t", "az://tables/dump/")
    with pytest.raises(dsistore.DsistoreError, match="az://tables/dmp.*dump"):
        there.ingest("t", "az://tables/dmp")
