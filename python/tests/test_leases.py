"""Leases of readers: a process that ends leaves none, however it ends."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import sys
import textwrap

import pytest

from programs import dsi, finish, start

# Each reads a branch, whose snapshots are leased at once, and ends with a status.
ENDINGS = {
    "numpy": ("for batch in table.numpy('user_list', batch_size=100): pass", 0),
    "torch": ("for batch in table.torch('user_list', batch_size=100): pass", 0),
    "jax": ("for batch in table.jax('click', batch_size=100): pass", 0),
    "tensorflow": ("for batch in table.tensorflow('user_list', batch_size=100): pass", 0),
    "scan": ("left = iter(table.scan('user_list', batch_size=100)); next(left)", 0),
    "take": ("table.take([3, 1], 'user_list')", 0),
    "grain": ("source = table.grain('user_list'); source[3]", 0),
    "sys.exit": ("""
        for batch in table.numpy('user_list', batch_size=100):
            sys.exit(3)
    """, 3),
    "exception": ("""
        for batch in table.numpy('user_list', batch_size=100):
            raise RuntimeError("for the test")
    """, 1),
    "generator": ("""
        def rows():
            for batch in table.numpy('user_list', batch_size=100):
                yield batch
        left = rows()
        next(left)
    """, 0),
    "cycle": ("""
        left = [iter(table.numpy('user_list', batch_size=100))]
        left.append(left)
        next(left[0])
    """, 0),
    "daemon thread": ("""
        begun = threading.Event()
        def read():
            while True:
                for batch in table.numpy('user_list', batch_size=100):
                    begun.set()
        threading.Thread(target=read, daemon=True).start()
        begun.wait()
    """, 0),
    "workers": ("for batch in loader(): pass", 0),
    "workers, persistent": ("""
        left = loader(persistent_workers=True)
        for batch in left: pass
    """, 0),
    "workers, exception": ("""
        for batch in loader():
            raise RuntimeError("for the test")
    """, 1),
    "workers, left": ("left = iter(loader()); next(left)", 0),
    "pool": ("""
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(read, range(4))
            pool.close()
            pool.join()
    """, 0),
    "pool, left": ("""
        left = multiprocessing.get_context("fork").Pool(2)
        left.map(read, range(4))
    """, 0),
}

# Whose workers are killed: it is their parent that ends their leases.
KILLED = ("workers, persistent", "workers, exception", "workers, left", "pool, left")

HEAD = """
    import multiprocessing, sys, threading, warnings
    import dsistore
    warnings.simplefilter("ignore")
    table = dsistore.open(sys.argv[1]).table("ads", branch="exp")
    def read(_):
        for batch in table.numpy('user_list', batch_size=100):
            pass
    def loader(**options):
        from torch.utils.data import DataLoader
        return DataLoader(table.torch('user_list', batch_size=20), batch_size=None, num_workers=2,
                          multiprocessing_context="fork", **options)
"""


@pytest.fixture(scope="module")
def branch(store_path, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("leases") / "store"
    shutil.copytree(store_path, path)
    dsi("branch", "create", path, "ads", "exp")
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_that_ends_leaves_no_lease(branch, ending):
    if ending in ("jax", "tensorflow") and importlib.util.find_spec(ending) is None:
        pytest.skip(f"no {ending}")
    if sys.platform != "linux" and ending in KILLED:
        pytest.skip("which machine a process is of is known on Linux only")
    program, wanted = ENDINGS[ending]
    before = leases(branch)
    status, _, err = finish(start(textwrap.dedent(HEAD) + textwrap.dedent(program), branch))
    assert status == wanted, err
    assert leases(branch) <= before, err


def leases(store: pathlib.Path) -> set[str]:
    return {p.name for p in (store / "tables" / "ads" / "leases").glob("*")}
