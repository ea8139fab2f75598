"""Page-locked memory, without a CUDA device: what would be called on it, and what is kept meanwhile."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import types

import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import dsistore
from dsistore import _engine
from dsistore.torch import pages
from programs import run

CUDA = """
#include <pthread.h>
#include <stddef.h>
static char *from[1000]; static size_t size[1000]; static int n, calls;
static _Thread_local int device;  /* as CUDA has it: 0 at first, and a call makes a context there */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int cudaSetDevice(int d) { device = d; return 0; }
static int lock(char *p, size_t s) {
    if (++calls % 5 == 0) return 2;  /* out of memory, say */
    for (int i = 0; i < n; i++)
        if (from[i] && p < from[i] + size[i] && from[i] < p + s) return 3;
    from[n] = p; size[n++] = s;
    return 0;
}
int cudaHostRegister(void *p, size_t s, unsigned flags) {
    if (device != 3 || flags != 1) __builtin_trap();
    pthread_mutex_lock(&mutex);
    int status = lock(p, s);
    pthread_mutex_unlock(&mutex);
    return status;
}
int cudaHostUnregister(void *p) {
    if (device != 3) __builtin_trap();
    pthread_mutex_lock(&mutex);
    int i = 0;
    while (i < n && from[i] != p) i++;
    if (i == n) __builtin_trap();
    from[i] = 0;
    pthread_mutex_unlock(&mutex);
    return 0;
}
int covers(char *p, size_t s) {
    for (int i = 0; i < n; i++)
        if (from[i] && p >= from[i] && p + s <= from[i] + size[i]) return 1;
    return 0;
}
int locked(void) { int out = 0; for (int i = 0; i < n; i++) out += from[i] != 0; return out; }
int made(void) { return calls; }
int current(void) { return device; }
"""

PROGRAM = """
    import ctypes, sys
    import torch
    import dsistore
    from dsistore import _engine
    from dsistore.torch import pages
    cuda = ctypes.CDLL(sys.argv[2])
    pages.ctypes = type("ctypes", (), {"CDLL": lambda name: cuda, "cast": ctypes.cast, "c_void_p": ctypes.c_void_p})
    torch.cuda.is_available, torch.cuda.current_device = lambda: True, lambda: 3
    table = dsistore.open(sys.argv[1]).table("t")
    plain = [b.sparse.values.sum() for b in table.torch(["ids"], batch_size=20_000)]
    assert cuda.made() == 0
    data = table.torch(["ids"], batch_size=20_000, pin_memory=True, workers=2)
    held = []
    for epoch in range(4):
        for b in data:
            held.append(b)
    at = [b._block.bytes() for b in held]
    covered = [cuda.covers(ctypes.c_void_p(t.data_ptr()), ctypes.c_size_t(len(t))) for t in at]
    # one in five mappings is refused, and serves as it is
    assert 0.5 < sum(covered) / len(covered) < 1, covered
    assert [b.sparse.values.sum() for b in held] == plain * 4
    most = cuda.locked()
    del at, held, b
    assert 0 < cuda.locked() < most, (cuda.locked(), most)  # the others wait for the next loader
    made = cuda.made()
    assert [b.sparse.values.sum() for b in data] == plain and cuda.made() <= made + 1
    assert cuda.current() == 0  # this thread's device is the program's, which may be another
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "store"
    n = 160_000
    ids = pa.FixedSizeListArray.from_arrays(pa.array(range(30 * n)), 30).cast(pa.list_(pa.int64()))
    dsistore.open(path).ingest("t", pa.table({"ids": ids}))
    return path


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_blocks_are_locked_while_they_are_mapped(store, tmp_path):
    (tmp_path / "cuda.c").write_text(CUDA)
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", tmp_path / "cuda.so", tmp_path / "cuda.c"], check=True)
    run(PROGRAM, store, tmp_path / "cuda.so")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
def test_without_cuda(table):
    with pytest.raises(dsistore.UsageError, match="pin_memory.*no CUDA"):
        next(iter(table.torch(["dense_a"], pin_memory=True)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
def test_a_device_without_the_functions_of_cuda(table, monkeypatch):
    """A build of PyTorch for another device, or one that keeps CUDA's functions to itself."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(pages, "ctypes", types.SimpleNamespace(
        CDLL=lambda name: types.SimpleNamespace(), cast=ctypes.cast, c_void_p=ctypes.c_void_p))
    with pytest.raises(dsistore.UsageError, match="cudaSetDevice.*pin_memory=False"):
        next(iter(table.torch(["dense_a"], device="cuda")))


def test_workers_lock_no_pages(table):
    """They copy batches to shared memory, and would each make a context on the device."""
    data = table.torch(["dense_a"], batch_size=500, pin_memory=True)
    loader = DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="forkserver")
    assert sum(b.rows for b in loader) == 1000


def test_a_block_stays_while_it_is_copied(table, monkeypatch):
    """A copy that does not block reads the engine's memory after it has returned."""
    class Event:
        done = False

        def record(self, stream):
            assert stream == "current"

        def query(self):
            return Event.done

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "current")
    on_device = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda"))
    block = next(iter(table.torch(["dense_a"], batch_size=100)))._block
    block._locked = True
    copy = block.map(lambda t: on_device)
    assert copy.bytes() is on_device
    del block
    pages.forget_copied()
    assert _engine.call("held") == 1
    Event.done = True
    pages.forget_copied()
    assert _engine.call("held") == 0


def test_all_copies_are_begun_before_memory_is_kept(table, monkeypatch):
    """Keys and assigned parts are copied beside the block, of the same memory: the event that it is kept for comes
    last."""
    happened = []
    monkeypatch.setattr(pages, "keep_until_copied", lambda memory, device, stream: happened.append("kept"))
    batch = next(iter(table.torch(["dense_a", "dense_b", "event_time"], labels="click", batch_size=100)))
    batch._block._locked = True
    batch.dense = batch.dense[:, :1]

    class OnDevice(torch.Tensor):
        device = types.SimpleNamespace(type="cuda")

    def copy(t):
        happened.append("copied")
        return t.clone().as_subclass(OnDevice)

    moved = batch._moved(copy)
    assert happened == ["copied"] * 3 + ["kept"] and moved.dense.shape == (100, 1)
    assert torch.equal(moved.labels, batch.labels)


def test_a_block_that_is_locked_already_is_not_copied(table):
    """pin_memory gives such memory back as it is, and `to` what is there already. It is the engine's still: without a
    note that it is locked, a later copy to a device would not keep it."""
    batch = next(iter(table.torch(["dense_a"], batch_size=100)))
    batch._block._locked = True
    for same in (batch.to("cpu"), batch._moved(lambda t: t)):
        assert same._block._locked and same._block.bytes().data_ptr() == batch._block.bytes().data_ptr()
    copy = batch._moved(lambda t: t.clone())
    assert not copy._block._locked and torch.equal(copy.dense, batch.dense)
