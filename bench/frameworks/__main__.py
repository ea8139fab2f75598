"""the make target, or: PYTHONPATH=bench python -m frameworks --help."""

from __future__ import annotations

import sys
import time
from typing import Any

from baselines import report
from baselines.command import Command
from baselines.harness import Engines, log
from baselines.workload import Workload

from . import page
from .engines import ENGINES
from .measures import MEASURES, PACKAGE, Run


def main() -> int:
    command = Command("frameworks", "Measures what TensorFlow, JAX and Grain read from dsistore, and from the files "
                      "that their users choose otherwise: the same rows, in turns, in one run.",
                      MEASURES, ENGINES, page.fill)
    command.parser.add_argument("--grain-rows", type=int, default=20_000,
                                help="rows of the table for Grain, at most --rows")
    command.parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="cores of each engine")
    if (a := command.options()) is None:
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
    return command.finish(a, result, machine)


if __name__ == "__main__":
    sys.exit(main())
