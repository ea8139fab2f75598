"""What every measuring program here has in common: the machine, medians, alternating rounds, results as JSON."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
LABELS = ["click", "conversion"]  # of the tables that table makes


def machine() -> dict[str, Any]:
    """What a figure depends on."""
    import numpy
    import pyarrow
    import torch

    out: dict[str, Any] = {"cpu": "", "cores": os.cpu_count(), "memory_bytes": 0, "os": platform.system().lower()}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                out["cpu"] = line.partition(":")[2].strip()
                break
        out["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        pass
    out["load_before"] = os.getloadavg()[0]
    out |= {"python": platform.python_version(), "torch": torch.__version__, "numpy": numpy.__version__,
            "pyarrow": pyarrow.__version__}
    revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
    out["revision"] = revision.stdout.strip()
    return out


def write(directory: str, name: str, result: Any, machine: dict[str, Any]) -> None:
    """Writes directory/name.json in place of an earlier result, in the form of the Go programs'; no directory:
    nothing."""
    if not directory:
        return
    now = datetime.datetime.now(datetime.timezone.utc)
    path = pathlib.Path(directory) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({
        "benchmark": name, "time": now.isoformat(), "command": [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]],
        "machine": machine, "result": result}, indent=2) + "\n")
    print("results:", path, file=sys.stderr)


class Run(NamedTuple):
    """One run of an engine."""

    seconds: float
    cpu_seconds: float  # of all threads of this process
    answer: Any


def rounds(n: int, sides: dict[str, Callable[[], Any]]) -> dict[str, list[Run]]:
    """Runs every engine n times and once before that, in turns, forwards and backwards, and returns the runs that
    count."""
    out: dict[str, list[Run]] = {name: [] for name in sides}
    for i in range(n + 1):
        names = list(sides) if i % 2 == 0 else list(sides)[::-1]
        for name in names:
            begin, cpu = time.perf_counter(), time.process_time()
            answer = sides[name]()
            run = Run(time.perf_counter() - begin, time.process_time() - cpu, answer)
            if i > 0:
                out[name].append(run)
    return out


median = statistics.median


def dsi(*args: str) -> None:
    """Runs bin/dsi, silently."""
    subprocess.run([str(ROOT / "bin" / "dsi"), *args], check=True, stdout=subprocess.DEVNULL)


def table(directory: pathlib.Path, profile: str, rows: int | None = None) -> pathlib.Path:
    """Makes directory/store (table workload) and the Parquet that it is of, in the order of a log and clustered by
    session, as directory/interleaved and directory/clustered; what is there whole is used."""
    done = directory / "done"
    if done.exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    size = ["--rows", str(rows)] if rows else []
    for order in ("interleaved", "clustered"):
        dsi("generate", str(directory / order), "--profile", profile, "--order", order, "--force", *size)
    dsi("ingest", str(directory / "store"), "workload", str(directory / "interleaved"),
        "--session-key", "session_id", "--time-key", "event_time")
    done.touch()
    return directory


_NOT_PROJECTED = ("session_id", "request_id", "user_id", "event_time", *LABELS, "user_embedding")


def projection(columns: list[str], share: float) -> list[str]:
    """About a share of the sparse and dense features, spread over all families: every 1/share-th one."""
    columns = [c for c in columns if c not in _NOT_PROJECTED]
    want = max(round(share * len(columns)), 1)
    return [columns[int(i * len(columns) / want)] for i in range(want)]
