"""On a CUDA device: values, page-locked memory, and memory that lives as long as a copy of it. Other tests of devices
need none (test_pages.py, test_torchrec.py)."""

import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import dsistore
from dsistore import _engine
from dsistore.torch import pages
from test_torch import ALL
from test_torchrec import tensors_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device")

ROWS, LENGTH = 60_000, 30


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Rows that take more than a few blocks of memory, with ids that tell where they belong."""
    path = tmp_path_factory.mktemp("cuda") / "store"
    ids = pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * LENGTH)), LENGTH).cast(pa.list_(pa.int64()))
    dsistore.open(path).ingest("t", pa.table({"ids": ids}))
    return dsistore.open(path).table("t")


def equal(a, b):
    return a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu())


def kjt_tensors(kjt):
    _, inverse = kjt.inverse_indices_or_none() or (None, None)
    return [t for t in (kjt.values(), kjt.lengths(), kjt.offsets(), kjt.weights_or_none(), inverse) if t is not None]


@pytest.mark.parametrize("pin_memory", [None, False])
@pytest.mark.parametrize("presence", [False, True])
@pytest.mark.parametrize("output", ["kjt", "ikjt", "partial"])
def test_values(table, output, presence, pin_memory):
    """Everything that a batch has, as on the CPU; with output="kjt" the device expands."""
    options = dict(output=output, labels=["click"], batch_size=130, shuffle="session", presence=presence)
    here = list(table.torch(ALL, **options))
    there = list(table.torch(ALL, **options, device="cuda", pin_memory=pin_memory))
    assert len(there) == len(here) > 5
    for a, b in zip(here, there, strict=True):
        assert a.index == b.index and a.rows == b.rows
        x, y = tensors_of(a), tensors_of(b)
        assert len(x) == len(y) and all(map(equal, x, y)) and {t.device.type for t in y} == {"cuda"}
        if output == "partial":
            continue
        for p, q in ((a.sparse_features, b.sparse_features), (a.weighted_features, b.weighted_features)):
            assert p.keys() == q.keys() and p.stride_per_key() == q.stride_per_key()
            assert p.length_per_key() == q.length_per_key()
            assert all(map(equal, kjt_tensors(p), kjt_tensors(q)))


def test_blocks_are_page_locked(large):
    """The device reads them by itself: what CUDA says of the memory. Without being asked for they are not."""
    locked = [b.sparse.values.is_pinned() for b in large.torch(["ids"], batch_size=20_000, pin_memory=True)]
    assert locked and all(locked)
    assert not any(b.sparse.values.is_pinned() for b in large.torch(["ids"], batch_size=20_000))


def busy():
    """Gives the current stream work for some milliseconds."""
    torch.cuda._sleep(20_000_000)


def ids_of(batch, first):
    return torch.arange(first * LENGTH, (first + batch.rows) * LENGTH, device=batch.sparse.values.device)


@pytest.mark.parametrize(("stream", "pin_memory"), [(False, False), (True, False), (False, True)])
def test_memory_outlives_its_copies(large, stream, pin_memory):
    """Copies are behind when the loader wants its memory back: the device is kept busy before each. Batches let go at
    once, so that the loader fills their memory anew as soon as it may."""
    wrong, held, first = [], 0, 0
    other = torch.cuda.Stream()
    for batch in large.torch(["ids"], batch_size=2000, pin_memory=True):
        if stream:
            with torch.cuda.stream(other):
                busy()
            moved = batch.to("cuda", non_blocking=True, data_copy_stream=other)
            del batch
            torch.cuda.current_stream().wait_stream(other)
            moved.record_stream(torch.cuda.current_stream())
        else:
            if pin_memory:  # as a DataLoader's pin_memory does; the pages are locked already
                batch = batch.pin_memory()
            busy()
            moved = batch.to("cuda", non_blocking=True)
            del batch
        held = max(held, _engine.call("held"))
        wrong.append((moved.sparse.values != ids_of(moved, first)).sum())
        first += moved.rows
    assert first == ROWS and held > 1 and int(torch.stack(wrong).sum()) == 0
    del moved
    torch.cuda.synchronize()
    pages.forget_copied()


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_a_loader_with_a_device(large, output):
    """The dataset moves batches itself; epochs follow each other while the device is behind."""
    data = large.torch(["ids"], batch_size=2000, output=output, device="cuda")
    sums = []
    for _ in range(3):
        first = 0
        for batch in data:
            busy()
            sums.append((batch.sparse_features.values() != ids_of(batch, first)).sum())
            first += batch.rows
        assert first == ROWS
    assert int(torch.stack(sums).sum()) == 0
    del batch
    pages.forget_copied()


def test_workers(table):
    """DataLoader's workers copy batches to shared memory; the parent locks pages and moves them."""
    want = [b.sparse.values.sum() for b in table.torch(ALL, batch_size=100)]
    loader = DataLoader(table.torch(ALL, batch_size=100), batch_size=None, num_workers=1, pin_memory=True,
                        multiprocessing_context="spawn")
    got = []
    for batch in loader:
        assert batch.sparse.values.is_pinned() and batch.sparse_features.values().is_pinned()
        got.append(batch.to("cuda", non_blocking=True).sparse.values.sum().cpu())
    assert got == want
