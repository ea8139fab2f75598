"""the make target, or: PYTHONPATH=bench python -m frameworks --help."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from typing import Any

from baselines import report
from baselines.harness import ROOT, Engines, log
from baselines.workload import Workload

from . import page
from .engines import ENGINES
from .measures import MEASURES, PACKAGE, Run


def main() -> int:
    p = argparse.ArgumentParser(
        prog="frameworks", description="Measures what TensorFlow, JAX and Grain read from dsistore, and from the files "
        "that their users choose otherwise: the same rows, in turns, in one run.")
    p.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES), help="measures; default: all")
    p.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES), help="engines; default: all")
    p.add_argument("--rows", type=int, default=100_000, help="rows of the table")
    p.add_argument("--grain-rows", type=int, default=20_000, help="rows of the table for Grain, at most --rows")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="cores of each engine")
    p.add_argument("--rounds", type=int, default=5, help="rounds that count")
    p.add_argument("--dir", type=pathlib.Path, default=ROOT / "out" / "baselines",
                   help="where the data lies; dumps and baselines' files that are there are used")
    p.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results",
                   help="where the results go, as JSON")
    p.add_argument("--no-results", action="store_true", help="write no results")
    p.add_argument("--page", action="store_true", help="fill docs/benchmarks.md")
    p.add_argument("--page-of", type=pathlib.Path, help="measure nothing: do that with the results of an earlier run")
    a = p.parse_args()
    if a.page_of:
        earlier = json.loads(a.page_of.read_text())
        page.fill(earlier["result"], earlier["machine"])
        return 0
    began = time.perf_counter()
    errors: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {}
    rows = Workload(a.dir, "small", a.rows)
    grain_rows = rows if a.grain_rows >= a.rows else Workload(a.dir, "small", a.grain_rows)
    machine = report.machine(page.PACKAGES)
    engines = Engines(a.engines, errors, PACKAGE)
    run = Run(engines, rows, grain_rows, max(a.rounds, 1))
    run.renew()
    try:
        for name in (m for m in MEASURES if m in a.only):
            begin = time.perf_counter()
            found[name] = [row for t in a.threads for row in run.measure(name, t)]
            log(f"{name}: {time.perf_counter() - begin:.0f} s")
    finally:
        engines.close()
    print(page.tables(found))
    result = {"rows": a.rows, "rounds": a.rounds, "seconds": time.perf_counter() - began, "measures": found,
              "errors": errors}
    if not a.no_results:
        whole = a.only == list(MEASURES) and a.engines == list(ENGINES)
        report.write(a.results, "frameworks" if whole else "frameworks-part", result, machine)
    if a.page:
        page.fill(result, machine)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
