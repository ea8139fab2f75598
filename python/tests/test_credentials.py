"""Credentials of S3 that a function gives, and that change: a versitygw behind a proxy that refuses older ones."""

from __future__ import annotations

import ctypes
import datetime
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dsistore

ROOT = pathlib.Path(__file__).resolve().parents[2]
# How long a table is read, and how long credentials last: `make rotation` reads for longer.
SECONDS = float(os.environ.get("DSISTORE_ROTATION_SECONDS", "5"))
EVERY = float(os.environ.get("DSISTORE_ROTATION_EVERY", "1"))


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    """The environment of a server with the bucket tables, and where its newest credentials are."""
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain to build the server with")
    serve = subprocess.Popen(["go", "run", "./internal/objectserver/serve", "-rotate", f"{EVERY}s", "tables"], cwd=ROOT,
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert serve.stdin and serve.stdout and serve.stderr
    line = serve.stdout.readline()
    if not line:
        pytest.skip(f"no server of S3: {serve.stderr.read()}")
    yield json.loads(line)
    serve.stdin.close()
    serve.wait()


class Provider:
    """Gives the server's newest credentials, in obstore's form, and remembers them."""

    def __init__(self, server: dict[str, str], expires: bool = True):
        self.url, self.expires, self.gave = server["AWS_CONTAINER_CREDENTIALS_FULL_URI"], expires, list[str]()

    def __call__(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url) as answer:
            got = json.load(answer)
        self.gave.append(got["AccessKeyId"])
        end = datetime.datetime.fromisoformat(got["Expiration"])
        return {"access_key_id": got["AccessKeyId"], "secret_access_key": got["SecretAccessKey"], "token": None,
                "expires_at": end if self.expires else None}


def options(server: dict[str, str], provider: Any) -> dict[str, Any]:
    return {"endpoint_url": server["AWS_ENDPOINT_URL"], "aws_region": server["AWS_REGION"],
            "credential_provider": provider}


def rows(n: int) -> pa.Table:
    return pa.table({
        "session": pa.array([i // 4 for i in range(n)]), "time": pa.array(range(n)),
        "ids": pa.array([[i // 4, i % 7] for i in range(n)]), "x": pa.array([i / 8 for i in range(n)], pa.float32()),
    })


@pytest.mark.parametrize("expires", [True, False])
def test_epochs_while_credentials_change(server: dict[str, str], expires: bool,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the function says when they expire: what is refused is asked for again."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")  # it does not count
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nor does it")
    provider = Provider(server, expires)
    store = dsistore.open(f"s3://tables/{expires}", options(server, provider))
    store.ingest("t", rows(20_000), session_key="session", time_key="time")
    data = store.table("t").torch(["ids", "x"], batch_size=1024)
    want, epochs, end = None, 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        got = [(b.sparse.values.sum().item(), b.dense.sum().item()) for b in data]
        want = want or got
        assert got == want
        epochs += 1
    store.ingest("u", rows(100), session_key="session", time_key="time")
    used = len(set(provider.gave))
    print(f"{epochs} epochs, {used} credentials, asked {len(provider.gave)} times")
    assert used >= SECONDS / EVERY - 2


def test_workers_that_are_forked(server: dict[str, str]) -> None:
    store = dsistore.open("s3://tables/forked", options(server, Provider(server)))
    store.ingest("t", rows(3000), session_key="session", time_key="time")
    data = store.table("t").torch(["ids", "x"], batch_size=256)
    whole = [b.sparse.values.tolist() for b in data]
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert sorted(b.sparse.values.tolist() for b in loader) == sorted(whole)


class Stream(ctypes.Structure):
    """struct ArrowArrayStream, as a reader has it that keeps the GIL while it asks for a batch (PYFUNCTYPE)."""


NEXT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)
Stream._fields_ = [("get_schema", ctypes.c_void_p), ("get_next", NEXT), ("others", ctypes.c_void_p * 3)]


def test_a_reader_that_keeps_the_gil(server: dict[str, str]) -> None:
    """The engine waits for the function while the reader waits for the engine: the reader's lock is given back."""
    provider = Provider(server)
    store = dsistore.open("s3://tables/gil", options(server, provider))
    random = np.random.default_rng(1)
    for i in range(3):
        n = 200_000
        store.ingest("t", pa.table({"session": np.arange(n) + i * n, "time": np.arange(n),
                                    **{name: random.random(n) for name in "xyz"}}), session_key="session",
                     time_key="time")
    capsule = store.table("t").scan(workers=1, memory=8 << 20, batch_size=4096).__arrow_c_stream__()
    time.sleep(2 * EVERY + 1)  # what it has read ahead of the reader is not all, and the credentials are no longer good
    asked, begin = len(provider.gave), time.monotonic()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = ctypes.cast(get(capsule, b"arrow_array_stream"), ctypes.POINTER(Stream))
    rows = 0
    while True:
        array = (ctypes.c_int64 * 10)()  # struct ArrowArray: the length is first, the function that releases it ninth
        assert stream.contents.get_next(stream, ctypes.addressof(array)) == 0
        if not array[8]:
            break
        rows += array[0]
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(array[8])(ctypes.addressof(array))
    assert rows == 3 * n and len(provider.gave) > asked and time.monotonic() - begin < 60


def test_sources(server: dict[str, str], tmp_path: pathlib.Path) -> None:
    with pytest.raises(dsistore.DsistoreError, match="s3://tables/none"):
        dsistore.open(tmp_path).ingest("t", "s3://tables/none", storage_options=options(server, Provider(server)))


def test_nothing_of_it_is_pickled_or_shown(server: dict[str, str]) -> None:
    store: Any = dsistore.open("s3://tables/sent", options(server, Provider(server)))
    sent = pickle.dumps(store)
    assert b"provider" not in sent.lower() and server["AWS_ENDPOINT_URL"].encode() in sent
    assert "rovider" not in repr(store)


def test_functions_that_give_none(server: dict[str, str]) -> None:
    def closed() -> Any:
        raise OSError("the vault is closed")

    async def later() -> Any:
        return {}

    whole = {"access_key_id": "a", "secret_access_key": "hush"}
    for i, (function, says) in enumerate((
        (closed, "OSError: the vault is closed"), (later, "async function"), (lambda: "hush", "str: want a dict"),
        (lambda: {"access_key_id": "a"}, "secret_access_key is of type NoneType"),
        (lambda: {**whole, "expires_at": "hush"}, "expires_at is of type str"),
        (lambda: {**whole, "expires_at": datetime.datetime(2026, 1, 1)}, "time zone"),
        (lambda: whole, "access denied"),
    )):
        with pytest.raises(dsistore.DsistoreError, match=says) as e:
            dsistore.open(f"s3://tables/none-{i}", options(server, function)).tables()
        assert "hush" not in str(e.value)
    with pytest.raises(dsistore.UsageError, match="want a function"):
        dsistore.open("s3://tables/none", options(server, "hush"))
    with pytest.raises(dsistore.UsageError, match="credential_provider"):
        dsistore.open("gs://tables/none", {"credential_provider": closed}).tables()


def test_methods_are_one_function_and_exits_are_told(server: dict[str, str]) -> None:
    from dsistore import _credentials

    class Provider:
        def get(self) -> dict[str, str]:
            return {}

    p = Provider()
    assert _credentials.number(p.get) == _credentials.number(p.get) != _credentials.number(Provider().get)

    def ends() -> None:
        raise SystemExit(3)

    for name in "once", "again":  # its thread goes on
        with pytest.raises(dsistore.DsistoreError, match="SystemExit"):
            dsistore.open(f"s3://tables/{name}", options(server, ends)).tables()
