"""Usage records: what a process read is written when it ends, and before."""

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
    return sorted(p for p in (store / "tables" / "ads" / "usage").glob("*/*"))


def text(paths: list[pathlib.Path]) -> bytes:
    return b"".join(p.read_bytes() for p in paths)


@pytest.fixture
def own_store(store_path, tmp_path, monkeypatch):
    shutil.copytree(store_path, tmp_path / "store")
    monkeypatch.delenv("DSISTORE_USAGE")
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
    monkeypatch.setenv("DSISTORE_USAGE", "off")
    run(READ, own_store)
    assert objects(own_store) == []
    run(
        "import os\nos.environ['DSISTORE_USAGE'] = ''\n" +
        "import dsistore, sys\ndsistore.open(sys.argv[1]).tables()\n", own_store)
    assert objects(own_store) == []


def test_off_after_the_engine_was_loaded(own_store):
    run("""
        import os, sys
        import dsistore
        table = dsistore.open(sys.argv[1]).table("ads")
        os.environ["DSISTORE_USAGE"] = "off"
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
    run(f"import runpy, sys\nsys.argv[0] = {str(program)!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')",
        own_store)
    assert b"workers" in text(objects(own_store)), objects(own_store)


def test_a_job_is_a_string(store_path):
    table = dsistore.open(store_path).table("ads")
    with pytest.raises(dsistore.UsageError, match="want a string"):
        table.scan(["click"], job=7)


PROCESSES = """
    import sys, warnings
    import dsistore
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info
    warnings.simplefilter("ignore")  # that there are more workers than processors

    # The table is opened where it is iterated: a process that forks its workers has not loaded the engine.
    class Own(IterableDataset):
        def __init__(self, path):
            self.path = path

        def __iter__(self):
            data = dsistore.open(self.path).table("ads").torch(["user_list"], batch_size=100,
            job=f"worker {get_worker_info().id}")
            for batch in data:
                yield batch.rows

    def main(path, method):
        loader = DataLoader(Own(path), batch_size=None, num_workers=2, multiprocessing_context=method)
        for epoch in range(2):
            print(sum(loader))
        if method == "fork":  # this process reads, too, now that no other is started
            print(sum(b.rows for b in dsistore.open(path).table("ads").torch(["user_list"], batch_size=100,
            job="parent")))

    if __name__ == "__main__":
        main(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_process_has_its_own_record(own_store, tmp_path, method):
    """Workers of a DataLoader, whichever way they begin, write what they read when they end: each once, and nobody for
    another."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROCESSES))
    out = run(
        f"import runpy, sys\nsys.argv = [{str(program)!r}, *sys.argv[1:]]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')",
        own_store, method)
    read = [int(line) for line in out.split()]
    written = objects(own_store)
    assert len(written) == 4 + (method == "fork"), written  # two an epoch
    assert len({p.name.split("-")[0] for p in written}) == len(written)
    assert sum(rows for _, rows in recorded(written)) == sum(read), read
    by_job: dict[str, int] = {}
    for job, rows in recorded(written):
        by_job[job] = by_job.get(job, 0) + rows
    assert set(by_job) == {"worker 0", "worker 1"} | ({"parent"} if method == "fork" else set())


PERSISTENT = """
    import sys, warnings
    import dsistore
    from torch.utils.data import DataLoader
    warnings.simplefilter("ignore")
    if __name__ == "__main__":
        data = dsistore.open(sys.argv[1]).table("ads").torch(["user_list"], batch_size=100, job="persistent")
        loader = DataLoader(data, batch_size=None, num_workers=2,
        multiprocessing_context="spawn", persistent_workers=True)
        for epoch in range(3):
            for batch in loader:
                pass
        # The loader is there to the end: multiprocessing kills its workers, which wait for another epoch.
"""


def test_workers_that_are_killed_while_they_wait_have_written(own_store, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PERSISTENT))
    run(f"import runpy, sys\nsys.argv[0] = {str(program)!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')", own_store)
    written = recorded(objects(own_store))
    assert {job for job, _ in written} == {"persistent"}
    assert sum(rows for _, rows in written) == 3 * 1000, written


def test_a_child_that_was_forked_writes_nothing_of_its_parent(own_store):
    """The child has the engine's memory, and what is not written yet in it: only the parent writes that."""
    run("""
        import os, signal, sys
        import dsistore
        table = dsistore.open(sys.argv[1]).table("ads")
        table.scan(["click"], job="parent").to_arrow()
        for ending in (sys.exit, os._exit):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                ending(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        table.scan(["click"], job="parent").to_arrow()
    """, own_store)
    assert recorded(objects(own_store)) == [("parent", 2000)]


def recorded(paths: list[pathlib.Path]) -> list[tuple[str, int]]:
    """The job and the rows of each record, as usage/SPEC.md has them."""
    out = []
    for path in paths:
        b = path.read_bytes()
        assert b[:8] == b"DSIUSGE\x02"
        at = 8

        def number() -> int:
            nonlocal at
            v = shift = 0
            while True:
                byte = b[at]
                at += 1
                v |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return v

        def take(n: int) -> bytes:
            nonlocal at
            at += n
            return b[at - n : at]

        assert take(1) == b"\x01"  # records of a process
        number(), number()
        assert number() == 0
        strings = [take(number()).decode() for _ in range(number())]
        for _ in range(number()):
            take(8)
            take(number())
        for _ in range(number()):
            job = strings[number()]
            for _ in range(6):
                number()
            take(8)
            for _ in range(4):
                number()
            readers, rows = number(), number()
            assert readers > 0
            out.append((job, rows))
            for _ in range(4 + 4 + 4 + 4):
                number()
            for _ in range(number()):
                for _ in range(7):
                    number()
        assert at == len(b) - 8
    return out


def test_lookup_is_recorded_as_a_count(own_store):
    """As dsi lookup is: looking for rows reads a key, and is no training."""
    run("import dsistore, sys\ndsistore.open(sys.argv[1]).table('ads').lookup([1, 2], 'click', job='where')\n",
        own_store)
    written = objects(own_store)
    assert b"where" in text(written)
    assert b"count" in text(written) and b"read" not in text(written)
