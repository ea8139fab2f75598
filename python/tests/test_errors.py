"""The exceptions of the package."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

import pyarrow as pa
import pytest

import dsistore
from dsistore import errors
from programs import torchrec_first


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(dsistore.__path__, "dsistore.") if "lib" not in m.name]


def classes() -> list[type[BaseException]]:
    """Every exception class that a module of the package defines."""
    pytest.importorskip("torch")
    torchrec_first()
    found = set()
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ImportError as e:  # an output of a framework that is not here
            assert not (e.name or "").startswith("dsistore"), e
            continue
        found.update(x for x in vars(module).values()
                     if isinstance(x, type) and issubclass(x, BaseException) and x.__module__.startswith("dsistore"))
    assert len(found) >= 9
    return sorted(found, key=lambda c: c.__name__)


def test_no_exception_asks_to_be_skipped():
    """TorchRec's pipelines skip the batch at an exception, or a cause, that has is_retryable: rows would be missing."""
    for kind in classes():
        e = kind("for the test")
        assert not hasattr(kind, "is_retryable") and not hasattr(e, "is_retryable"), kind
        assert issubclass(kind, dsistore.DsistoreError)
    for kind in [*errors._KINDS, "corrupt", "internal"]:
        e = errors.from_wire({"kind": kind, "message": "for the test", "is_retryable": True})
        assert not hasattr(e, "is_retryable") and not hasattr(e.__cause__, "is_retryable"), kind
        assert type(pickle.loads(pickle.dumps(e))) is type(e)
        utils = pytest.importorskip("torchrec.distributed.train_pipeline.utils")
        assert not utils._is_data_loading_retriable(e)


def test_a_newer_store_is_unsupported(tmp_path):
    """What a later version wrote is no damage: the exception says that a newer program is needed."""
    store = dsistore.open(tmp_path)
    for rows in ([1, 2], [3]):
        store.ingest("t", pa.table({"a": rows}))
    newest = min((tmp_path / "tables" / "t" / "snapshots").glob("*/*"))  # names sort newest first
    written = bytearray(newest.read_bytes())
    written[7] += 1  # the version
    written[176:184] = bytes(8)  # its checksum is of its own kind: with that of version 1 the byte would be damaged
    newest.write_bytes(written)
    with pytest.raises(dsistore.UnsupportedError, match="version 2.*use a newer program"):
        store.table("t")
    with pytest.raises(dsistore.UnsupportedError, match="use a newer program"):
        store.ingest("t", pa.table({"a": [4]}))
    assert store.table("t", version=1).scan(["a"]).to_arrow()["a"].to_pylist() == [1, 2]
