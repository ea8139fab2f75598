"""the make target, or: PYTHONPATH=bench python -m baselines --help."""

from __future__ import annotations

import sys
import time
from typing import Any

from . import goals, page, report
from .command import Command
from .engines import ENGINES
from .harness import Engines, log
from .measures import MEASURES, Run
from .workload import Workload


def main() -> int:
    command = Command("baselines", "Measures dsistore beside other formats: the same rows, in turns, in one run.",
                      MEASURES, ENGINES, page.fill)
    command.parser.add_argument("--long-rows", type=int, default=10_000_000, help="rows of the table of many rows")
    if (a := command.options()) is None:
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
    return command.finish(a, result, machine)


if __name__ == "__main__":
    sys.exit(main())
