"""Access records: what a process read is written when it ends, and before."""

from __future__ import annotations

import os
import pathlib
import shutil
import textwrap

import pytest

import dsistore
from programs import run

READ = """
    import os, sys
    import dsistore
    table = dsistore.open(sys.argv[1]).table("ads")
    for batch in table.torch(["user_list", "dense_a"], labels="click", batch_size=100, job="train"):
        pass
    table.scan(["click"], job="look").to_arrow()
    table.take([3, 1, 3], ["click", "user_list"], job="some")
    left = iter(table.torch(["user_list"], batch_size=100))  # is open when the process ends
    next(left)
"""


def objects(store: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for p in (store / "tables" / "ads" / "access").glob("*/*"))


def text(paths: list[pathlib.Path]) -> bytes:
    return b"".join(p.read_bytes() for p in paths)


@pytest.fixture
def own_store(store_path, tmp_path, monkeypatch):
    shutil.copytree(store_path, tmp_path / "store")
    monkeypatch.delenv("DSISTORE_ACCESS")
    return tmp_path / "store"


def test_what_is_read_is_written_at_the_end(own_store, monkeypatch):
    monkeypatch.setenv("DSISTORE_JOB", "nightly")
    run(READ, own_store)
    written = objects(own_store)
    assert len(written) == 1, written
    for name in (b"train", b"look", b"some", b"nightly", b"python", b"click", b"user_list", b"dense_a"):
        assert name in text(written), name
    assert b"item_list" not in text(written)


def test_off(own_store, monkeypatch):
    monkeypatch.setenv("DSISTORE_ACCESS", "off")
    run(READ, own_store)
    assert objects(own_store) == []
    run("import os\nos.environ['DSISTORE_ACCESS'] = ''\n" + "import dsistore, sys\ndsistore.open(sys.argv[1]).tables()\n", own_store)
    assert objects(own_store) == []


def test_off_after_the_engine_was_loaded(own_store):
    run("""
        import os, sys
        import dsistore
        table = dsistore.open(sys.argv[1]).table("ads")
        os.environ["DSISTORE_ACCESS"] = "off"
        table.scan(["click"]).to_arrow()
    """, own_store)
    assert objects(own_store) == []


def test_a_store_that_may_not_be_written_to_is_read(own_store):
    if os.geteuid() == 0:
        pytest.skip("root may do everything")
    for directory, _, _ in os.walk(own_store):
        os.chmod(directory, 0o555)
    try:
        run(READ, own_store)
        assert objects(own_store) == []
    finally:
        for directory, _, _ in os.walk(own_store):
            os.chmod(directory, 0o755)


WORKERS = """
    import sys
    import dsistore
    from torch.utils.data import DataLoader
    if __name__ == "__main__":
        data = dsistore.open(sys.argv[1]).table("ads").torch(["user_list"], batch_size=100, job="workers")
        for batch in DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="spawn"):
            pass
"""


def test_workers_write_theirs(own_store, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(WORKERS))
    run(f"import runpy, sys\nsys.argv[0] = {str(program)!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')", own_store)
    assert b"workers" in text(objects(own_store)), objects(own_store)


def test_a_job_is_a_string(store_path):
    table = dsistore.open(store_path).table("ads")
    with pytest.raises(dsistore.UsageError, match="want a string"):
        table.scan(["click"], job=7)
