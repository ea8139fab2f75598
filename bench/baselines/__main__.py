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

# The most that the tables' files take while they are made and measured, all engines together.
BYTES_PER_ROW, BYTES_PER_LONG_ROW = 130_000, 2_300
SLOW_ROUNDS = 3  # of what takes long, at most


def main() -> int:
    command = Command("baselines", "Measures dsistore beside other formats: the same rows, in turns, in one run.",
                      MEASURES, ENGINES, page.fill)
    command.parser.add_argument("--long-rows", type=int, default=10_000_000, help="rows of the table of many rows")
    command.parser.add_argument("--resume", action="store_true",
                                help="take what a run of the same revision measured before it ended early")
    if (a := command.options()) is None:
        return 0
    small, many = Workload(a.dir, "small", a.rows), Workload(a.dir, "long", a.long_rows)
    if not a.resume:
        command.want_disk(a, BYTES_PER_ROW * a.rows + BYTES_PER_LONG_ROW * a.long_rows,
                          [small.directory, many.directory])
    began = time.perf_counter()
    machine = report.machine()
    errors: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {}
    engines = Engines(a.engines, errors)
    run = Run(engines, small, many, a.dir, max(a.rounds, 1), min(max(a.rounds, 1), SLOW_ROUNDS),
              [("narrow", min(a.rows, 256)), ("wide", min(a.rows, 256)), ("metawide", min(a.rows, 256))],
              min(1000, a.rows))
    before = 0.0
    if a.resume:
        earlier, machine = command.earlier(a, machine)
        found, before = earlier["measures"], earlier["seconds"]
        errors += (e for e in earlier["errors"] if e["measure"] in found)  # the others are measured again
    elif "write" not in a.only:  # what an older engine wrote is not what is measured
        run.renew("dsistore")

    def result() -> dict[str, Any]:
        return {
            "rows": a.rows, "rounds": a.rounds, "slow_rounds": run.slow_rounds,
            "seconds": before + time.perf_counter() - began, "measures": found, "errors": errors,
            "goals": goals.outcomes(found)
        }

    try:
        for name in (m for m in MEASURES if m in a.only and m not in found):
            begin = time.perf_counter()
            found[name] = MEASURES[name](run)
            log(f"{name}: {time.perf_counter() - begin:.0f} s")
            report.show(name, found[name])
    except BaseException:
        command.keep(a, result(), machine)
        raise
    finally:
        engines.close()
    measured = result()
    report.show_goals(measured["goals"])
    return command.finish(a, measured, machine)


if __name__ == "__main__":
    sys.exit(main())
