"""the make target, or: PYTHONPATH=bench python -m baselines --help."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from typing import Any

from . import goals, page, report
from .harness import ROOT, Engines, log
from .measures import MEASURES, Run
from .engines import ENGINES
from .workload import Workload


def main() -> int:
    p = argparse.ArgumentParser(
        prog="baselines", description="Measures dsistore beside other formats: the same rows, in turns, in one run.")
    p.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES), help="measures; default: all")
    p.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES), help="engines; default: all")
    p.add_argument("--rows", type=int, default=100_000, help="rows of the table")
    p.add_argument("--long-rows", type=int, default=10_000_000, help="rows of the table of many rows")
    p.add_argument("--rounds", type=int, default=5, help="rounds that count; what takes long has half as many")
    p.add_argument("--dir", type=pathlib.Path, default=ROOT / "out" / "baselines",
                   help="where the data lies; dumps and baselines' files that are there are used")
    p.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results",
                   help="where the results go, as JSON")
    p.add_argument("--no-results", action="store_true", help="write no results")
    p.add_argument("--page", action="store_true", help="fill docs/benchmarks.md and draw its plots")
    p.add_argument("--page-of", type=pathlib.Path, help="measure nothing: do that with the results of an earlier run")
    a = p.parse_args()
    if a.page_of:
        earlier = json.loads(a.page_of.read_text())
        page.fill(earlier["result"], earlier["machine"])
        return 0
    began = time.perf_counter()
    errors: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {}
    engines = Engines(a.engines, errors)
    run = Run(engines, Workload(a.dir, "small", a.rows), Workload(a.dir, "long", a.long_rows), a.dir,
              max(a.rounds, 1), max(a.rounds // 2, 1),
              [("narrow", min(a.rows, 256)), ("wide", min(a.rows, 256)), ("metawide", min(a.rows, 256))],
              min(1000, a.rows))
    machine = report.machine()
    if "write" not in a.only:  # what an older engine wrote is not what is measured
        run.renew("dsistore")
    try:
        for name in (m for m in MEASURES if m in a.only):
            begin = time.perf_counter()
            found[name] = MEASURES[name](run)
            log(f"{name}: {time.perf_counter() - begin:.0f} s")
            report.show(name, found[name])
    finally:
        engines.close()
    result = {
        "rows": a.rows, "rounds": a.rounds, "seconds": time.perf_counter() - began, "measures": found, "errors": errors,
        "goals": goals.outcomes(found)
    }
    report.show_goals(result["goals"])
    if not a.no_results:
        whole = a.only == list(MEASURES) and a.engines == list(ENGINES)
        report.write(a.results, "baselines" if whole else "baselines-part", result, machine)
    if a.page:
        page.fill(result, machine)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
