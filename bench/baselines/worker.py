"""The process of one engine: it reads a command a line and answers each with a line of JSON.

    python -m baselines.worker ENGINE THREADS PACKAGE

The package, such as baselines.engines, has ENGINES with the engine's name.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tensors import Projection


def environment(threads: int) -> dict[str, str]:
    """What the libraries read when they are loaded: how many threads they may have. Python keeps what it compiles:
    without that, each new process would spend most of its time, and memory, on compiling."""
    n = str(threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS",
             "LANCE_CPU_THREADS", "TOKIO_WORKER_THREADS")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **{name: n for name in names}, "LANCE_IO_THREADS": str(max(threads, 4)), "PYTHONHASHSEED": "0"}


def pin(threads: int) -> None:
    """Keeps this process on as many cores as it has threads, whatever its libraries start."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def io_counts() -> dict[str, int]:
    """Bytes that this process has asked system calls for (rchar) and that were fetched from a disk for it
    (read_bytes)."""
    with open("/proc/self/io") as f:
        return {k: int(v) for k, _, v in (line.partition(": ") for line in f.read().splitlines())}


def collect_garbage() -> None:
    """Collects garbage, and lets later calls leave out what is left: to look at all objects that a library has takes up
    to 0.1 s, after which the processor's caches hold nothing of what is measured."""
    gc.collect()
    gc.freeze()


def memory(field: str) -> int:
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    return 0


class Commands:
    """What an engine can be told. Each returns what is answered."""

    def __init__(self, name: str, threads: int, package: str):
        begin = time.perf_counter()
        from . import engines

        self._engine: Any = engines.make(name, threads, package)  # some can do more than Engine says
        self._import_seconds = time.perf_counter() - begin
        self._tables: dict[str, Any] = {}
        self._written = 0

    def _source(self, path: str, rows: int | None) -> Any:
        """A table that an IPC file holds uncompressed, mapped: all engines share its memory."""
        import pyarrow as pa

        table = self._tables.get(path)
        if table is None:
            table = self._tables[path] = pa.ipc.open_file(pa.memory_map(path)).read_all()
        return table if rows is None else table.slice(0, rows)

    def write(self, source: str, path: str, clustered: bool, rows: int | None = None,
              columns: list[str] | None = None) -> dict[str, Any]:
        """Writes a table anew, or some columns: under a name of its own, since what a library has open stays where it
        is."""
        table = self._source(source, rows)
        if columns is not None:
            table = table.select(columns)
        self._written += 1
        fresh = f"{path}.{os.getpid()}.{self._written}"
        collect_garbage()
        cpu, begin = time.process_time(), time.perf_counter()
        self._engine.write(table, fresh, clustered)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        self._engine.drop(path)
        os.rename(fresh, path)
        begin = time.perf_counter()
        os.sync()
        return {"seconds": seconds, "cpu_seconds": cpu, "sync_seconds": time.perf_counter() - begin,
                "bytes": self._engine.size(path), "rows": table.num_rows}

    def read(self, path: str, projection: list[list[str]], groups: list[list[str]] | None = None) -> dict[str, Any]:
        """An epoch, opening included. cpu_seconds are of all threads."""
        p = _projection(projection)
        collect_garbage()
        rows, first = 0, 0.0
        cpu, begin = time.process_time(), time.perf_counter()
        opened = self._engine.open(path)
        for b in self._engine.batches(opened, p, groups):
            if not rows:
                first = time.perf_counter() - begin
            rows += b.rows
        self._engine.close(opened)
        return {
            "seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu, "first_seconds": first,
            "rows": rows
        }

    def remote(self, server: dict[str, str], bucket: str, key: str, projection: list[list[str]], tiny: dict[str, Any],
               digest: bool = False) -> dict[str, Any]:
        """An epoch from a server of S3, opening included, after one of a small local table: a library may load late
        what it needs."""
        from .tensors import Digest

        self.read(**tiny)
        collect_garbage()
        d = Digest(self._engine.exact_order)
        begin = time.perf_counter()
        rows = 0
        opened = self._engine.open_remote(server, bucket, key)
        for b in self._engine.batches(opened, _projection(projection), None):
            rows += b.rows
            if digest:
                d.add(b)
        self._engine.close(opened)
        seconds = time.perf_counter() - begin
        return d.result() if digest else {"seconds": seconds, "rows": rows}

    def limits(self, path: str) -> list[dict[str, Any]]:
        return self._engine.limits(path)

    def first(self, path: str, projection: list[list[str]]) -> dict[str, Any]:
        """From opening to the first batch."""
        collect_garbage()
        begin = time.perf_counter()
        opened = self._engine.open(path)
        batches = self._engine.batches(opened, _projection(projection), None)
        rows = next(iter(batches)).rows
        seconds = time.perf_counter() - begin
        batches.close()
        self._engine.close(opened)
        return {"seconds": seconds, "rows": rows}

    def partial(self, path: str, projection: list[list[str]], digest: bool = False) -> dict[str, Any]:
        """An epoch with partial duplicates, opening included; with digest, that of it. bytes are those of its
        tensors."""
        from .tensors import Digest

        collect_garbage()
        d = Digest() if digest else None
        begin = time.perf_counter()
        opened = self._engine.open(path)
        rows, size = self._engine.partial(opened, _projection(projection), d)
        self._engine.close(opened)
        seconds = time.perf_counter() - begin
        return d.result() if d else {"seconds": seconds, "rows": rows, "bytes": size}

    def digest(self, path: str, projection: list[list[str]], groups: list[list[str]] | None = None) -> dict[str, Any]:
        from .tensors import Digest

        opened = self._engine.open(path)
        d = Digest(self._engine.exact_order and not groups)
        for b in self._engine.batches(opened, _projection(projection), groups):
            d.add(b)
        self._engine.close(opened)
        return d.result()

    def groups(self, path: str, projection: list[list[str]]) -> list[list[str]]:
        return self._engine.groups(self._engine.open(path), _projection(projection))

    def copy(self, bytes: int, batches: int) -> dict[str, Any]:
        return {"seconds": self._engine.copy(bytes, batches)}

    def take(self, path: str, rows: list[int], columns: list[str]) -> dict[str, Any]:
        """Rows at row positions, as Arrow. Opening is not counted: a job takes many times. asked_bytes are those of
        files that are not mapped."""
        opened = self._engine.open(path)
        collect_garbage()
        asked = io_counts()["rchar"]
        begin = time.perf_counter()
        table = self._engine.take(opened, rows, columns)
        seconds = time.perf_counter() - begin
        asked = io_counts()["rchar"] - asked
        self._engine.close(opened)
        return {"seconds": seconds, "rows": table.num_rows, "asked_bytes": asked}

    def take_digest(self, path: str, rows: list[int], columns: list[str]) -> dict[str, Any]:
        """The digest of the rows taken, and of the same rows of a table read whole where an engine has an order of its
        own."""
        opened = self._engine.open(path)
        out = {"got": table_digest(self._engine.take(opened, rows, columns))}
        if not self._engine.exact_order:
            out["want"] = table_digest(self._engine.table(opened, columns).take(rows))
        self._engine.close(opened)
        return out

    def keep_rows(self, path: str, name: str, rows: list[int], keys: list[str]) -> None:
        self._engine.keep_rows(path, name, rows, keys)

    def select(self, path: str, projection: list[list[str]], how: dict[str, Any],
               digest: bool = False) -> dict[str, Any]:
        """The rows that a filter or a list selects as tensors, opening included; with digest, that of them."""
        from .tensors import Digest

        collect_garbage()
        d, rows, asked = Digest(), 0, io_counts()["rchar"]
        cpu, begin = time.process_time(), time.perf_counter()
        opened = self._engine.open(path)
        for b in self._engine.selected(opened, _projection(projection), how):
            rows += b.rows
            if digest:
                d.add(b)
        self._engine.close(opened)
        seconds = time.perf_counter() - begin
        return d.result() if digest else {"seconds": seconds, "cpu_seconds": time.process_time() - cpu, "rows": rows,
                                          "asked_bytes": io_counts()["rchar"] - asked}

    def open(self, path: str, columns: list[str]) -> dict[str, Any]:
        """In a process of its own: what it takes to load the library, to open, and to read all rows of some columns."""
        begin = time.perf_counter()
        opened = self._engine.open(path)
        plan = self._engine.plan(opened, columns)
        planned = time.perf_counter()
        table = self._engine.table(opened, columns, plan)
        read = time.perf_counter()
        return {"import_seconds": self._import_seconds, "open_seconds": planned - begin, "read_seconds": read - planned,
                "digest": table_digest(table)}

    def cold(self, warm: dict[str, Any], path: str, projection: list[list[str]]) -> dict[str, Any]:
        """In a process of its own: an epoch of files that the page cache does not hold, and what was read for it."""
        self.read(**warm)  # loads what the library loads at its first use
        self._engine.mapped = False
        evict(path)
        before = io_counts()
        out = self.read(path, projection)
        after = io_counts()
        return out | {k: after[k] - before[k] for k in ("rchar", "read_bytes", "syscr")}

    def memory(self, warm: dict[str, Any], path: str, projection: list[list[str]]) -> dict[str, Any]:
        """In a process of its own: how far resident memory rose in an epoch above where it was after one of a small
        table."""
        self.read(**warm)
        collect_garbage()
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # the peak begins anew
        before = memory("VmRSS")
        mapped = memory("RssFile")
        out = self.read(path, projection)
        return out | {"grown_bytes": memory("VmHWM") - before, "mapped_bytes": memory("RssFile") - mapped}


def evict(path: str) -> None:
    """Asks the system to forget what it has cached of files."""
    for directory, _, names in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [],
                                                                           [os.path.basename(path)])]:
        for name in names:
            fd = os.open(os.path.join(directory, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def _projection(parts: list[list[str]]) -> Projection:
    from .tensors import Projection

    return Projection(*(tuple(p) for p in parts))


def table_digest(table: Any) -> dict[str, Any]:
    """The digest of a table's lists and numbers."""
    from .tensors import Digest, Maker, Projection, plain

    table = plain(table)
    digest = Digest()
    make = Maker(Projection.of(table.schema, table.column_names))
    for b in table.combine_chunks().to_batches():
        digest.add(make(b))
    return digest.result()


def main() -> None:
    name, threads, package = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    pin(threads)
    # Libraries may print: the answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    commands: Commands | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            commands = commands or Commands(name, threads, package)
            answer = {"result": getattr(commands, asked["command"])(**asked["with"])}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}", "traceback": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
