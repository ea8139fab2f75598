"""What the programs that compare engines have in common: their options, and where their results go."""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from . import report
from .harness import ROOT

Fill = Callable[[dict[str, Any], dict[str, Any]], None]  # fills a page with a result, measured on a machine


class Command:
    """A program that runs measures of engines. fill fills its page. The program adds options of its own to
    ``parser``."""

    def __init__(self, name: str, description: str, measures: Iterable[str], engines: Iterable[str], fill: Fill):
        self._name, self._measures, self._engines, self._fill = name, list(measures), list(engines), fill
        p = self.parser = argparse.ArgumentParser(prog=name, description=description)
        p.add_argument("--only", nargs="+", choices=self._measures, default=self._measures,
                       help="measures; default: all")
        p.add_argument("--engines", nargs="+", choices=self._engines, default=self._engines,
                       help="engines; default: all")
        p.add_argument("--rows", type=int, default=100_000, help="rows of the table")
        p.add_argument("--rounds", type=int, default=5, help="rounds that count; what takes long has at most 3")
        p.add_argument("--dir", type=pathlib.Path, default=ROOT / "out" / "baselines",
                       help="where the data lies; dumps and baselines' files that are there are used")
        p.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results",
                       help="where the results go, as JSON")
        p.add_argument("--no-results", action="store_true", help="write no results")
        p.add_argument("--page", action="store_true", help="fill the tables of its page in docs/guide")
        p.add_argument("--page-of", type=pathlib.Path,
                       help="measure nothing: do that with the results of an earlier run")

    def options(self) -> argparse.Namespace | None:
        """The options that were given; None: they asked for a page of earlier results, which is filled."""
        a = self.parser.parse_args()
        if a.page_of:
            earlier = json.loads(a.page_of.read_text())
            self._fill(earlier["result"], earlier["machine"])
            return None
        return a

    def want_disk(self, a: argparse.Namespace, needed: int, tables: Iterable[pathlib.Path]) -> None:
        """Ends the program if it measures everything, and a.dir does not have so many bytes, what the tables'
        directories hold among them: a full disk ends a run late."""
        if a.only != self._measures or a.engines != self._engines:
            return
        a.dir.mkdir(parents=True, exist_ok=True)
        there = sum(p.stat().st_size for t in tables for p in t.rglob("*") if p.is_file())
        if (free := shutil.disk_usage(a.dir).free) + there < needed:
            raise SystemExit(f"{a.dir}: {free / 1e9:.0f} GB are free, and its tables hold {there / 1e9:.0f}: they take "
                             f"{needed / 1e9:.0f} GB; --dir names another disk, --long-rows and --rows make it less")

    def keep(self, a: argparse.Namespace, result: dict[str, Any], machine: dict[str, Any]) -> None:
        """Writes what was measured before a run failed, for ``earlier``."""
        if not a.no_results:
            report.write(a.results, f"{self._name}-part", result, machine)

    def earlier(self, a: argparse.Namespace, machine: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What ``keep`` wrote, of this revision and as many rows and rounds, and the machine that it was measured
        on."""
        path = a.results / f"{self._name}-part.json"
        if not path.exists():
            raise SystemExit(f"--resume: there is no {path}")
        kept = json.loads(path.read_text())
        result, was = kept["result"], kept["machine"]
        if (was["revision"], result["rows"], result["rounds"]) != (machine["revision"], a.rows, a.rounds):
            raise SystemExit(f"--resume: {path} is of revision {was['revision']}, {result['rows']} rows and "
                             f"{result['rounds']} rounds")
        return result, was

    def finish(self, a: argparse.Namespace, result: dict[str, Any], machine: dict[str, Any]) -> int:
        """Writes the result, and fills the page, as the options say. Returns the program's exit code: 1 where engines
        failed."""
        if not a.no_results:
            whole = a.only == self._measures and a.engines == self._engines
            report.write(a.results, self._name if whole else f"{self._name}-part", result, machine)
        if a.page:
            self._fill(result, machine)
        return 1 if result["errors"] else 0
