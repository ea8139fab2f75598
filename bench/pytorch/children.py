"""The frame of the programs here that measure processes of their own: a child of each kind at a time, in turns.

A program that has this frame calls itself with --child KIND for each process, with the request as JSON on standard
input, and reads the child's answer as JSON from its standard output.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import measure

def arguments(doc: str, processes: int) -> argparse.ArgumentParser:
    """What all of these programs take."""
    p = argparse.ArgumentParser(description=doc.partition("\n\n")[0])
    p.add_argument("--processes", type=int, default=processes,
                   help="processes of each kind that count; one more runs before")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--dir", default="out/pytorch", help="where the data lies; what is there already is used")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    p.add_argument("--child", help=argparse.SUPPRESS)
    return p


def parse(p: argparse.ArgumentParser, child: Callable[[str, dict[str, Any]], dict[str, Any]]) -> argparse.Namespace:
    """The arguments. In a child it gives child(kind, request) as the answer, and ends the process."""
    a = p.parse_args()
    if a.child:
        print(json.dumps(child(a.child, json.load(sys.stdin))))
        sys.exit()
    return a


def _run(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of one child, which is told in "begun" when it was started, as seconds of the clock."""
    out = subprocess.run([sys.executable, sys.argv[0], "--child", kind], input=json.dumps(
        {**request, "begun": time.time()}), capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    answer: dict[str, Any] = json.loads(out.stdout)
    return answer


def rounds(processes: int, kinds: dict[str, str], request: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The answers of so many children of each kind, which kinds names, in turns; one of each that runs before does not
    count."""
    sides: dict[str, Callable[[], Any]] = {name: functools.partial(_run, kind, request) for name, kind in kinds.items()}
    return {name: [r.answer for r in runs] for name, runs in measure.rounds(processes, sides).items()}
