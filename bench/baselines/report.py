"""The results: tables for people, JSON, and the page docs/guide/benchmarks.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

from .harness import ROOT
from .engines import label

_PACKAGES = ("duckdb", "mosaicml-streaming", "numpy", "polars", "pyarrow", "pylance", "torch", "vortex-data")


def _busy() -> float | None:
    """How many cores were busy in the last second. (The load of a minute has what was built just before.)"""
    stat = pathlib.Path("/proc/stat")
    if not stat.exists():
        return None

    def ticks() -> int:  # user, nice, system, idle, iowait, irq, softirq, steal
        t = [int(n) for n in stat.read_text().splitlines()[0].split()[1:9]]
        return sum(t) - t[3] - t[4]

    before, begin = ticks(), time.perf_counter()
    time.sleep(1)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - begin)


def machine(packages: Iterable[str] = _PACKAGES) -> dict[str, Any]:
    """What a figure depends on."""
    out: dict[str, Any] = {"cpu": "", "cores": len(os.sched_getaffinity(0)),
                           "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
                           "os": f"{platform.system().lower()}/{platform.machine()}", "busy_before": _busy()}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            out["cpu"] = line.partition(":")[2].strip()
            break
    out["python"] = platform.python_version()
    go = subprocess.run(["go", "version"], capture_output=True, text=True).stdout.split()
    out["go"] = go[2] if len(go) > 2 else ""
    for p in packages:
        try:
            out[p] = importlib.metadata.version(p)
        except importlib.metadata.PackageNotFoundError:
            out[p] = ""
    out["revision"] = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True,
                                     text=True).stdout.strip()
    return out


def write(directory: pathlib.Path, name: str, result: Any, on: dict[str, Any]) -> None:
    """Writes directory/name.json in place of an earlier result, in the form of the Go programs'."""
    now = datetime.datetime.now(datetime.timezone.utc)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(
        json.dumps(
            {
                "benchmark": name, "time": now.isoformat(),
                "command": [pathlib.Path(sys.argv[0]).parent.name, *sys.argv[1:]], "machine": on, "result": result
            }, indent=1) + "\n")
    print("results:", path, file=sys.stderr)


def show(name: str, rows: list[dict[str, Any]]) -> None:
    """Prints a line per row: what tells rows apart, then medians."""
    for row in rows:
        cells = [f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}"
                 for k, v in row.items() if not isinstance(v, list) and k != "engine" and v is not None]
        print(f"{name:8} {label(row['engine']):26} " + "  ".join(cells), flush=True)


def show_goals(rows: list[dict[str, Any]]) -> None:
    """Prints each goal beside what was measured."""
    for g in rows:
        print(
            f"{'reached' if g['met'] else 'SHORT':8} {g['goal']:50} {g['figure']:.4g} {g['unit']}, {g['against']} "
            f"{g['theirs']:.4g}: "
            f"{g['ratio']:.3g}, wanted {g['wanted']}", flush=True)
