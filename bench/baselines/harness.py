"""Runs engines in their processes, in turns, and keeps what they answer."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .worker import environment

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

_MOST_RUNS = 9  # of one engine in one turn


class EngineError(Exception):
    """An engine could not do what it was told."""


class Wrong(Exception):
    """An engine gave other rows than the truth."""


def log(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Worker:
    """A process of one engine."""

    def __init__(self, engine: str, threads: int, package: str, first: str = ""):
        """first is a directory whose packages go before all others."""
        self.engine, self.threads = engine, threads
        self._process = subprocess.Popen([sys.executable, "-m", "baselines.worker", engine,
                                          str(threads), package], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, env={**environment(threads), "PYTHONPATH": _path(first)}, cwd=ROOT)

    def __call__(self, command: str, **given: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"command": command, "with": given}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EngineError(f"{self.engine}: {command}: the process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            print(answer["traceback"], file=sys.stderr)
            raise EngineError(f"{self.engine}: {command}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _path(first: str) -> str:
    """Where a worker finds this package, and dsistore where it is not installed."""
    return os.pathsep.join(p for p in [first, str(HERE.parent), os.environ.get("PYTHONPATH", "")] if p)


class Engines:
    """Processes of several engines of a package, kept from one measure to the next. An engine that fails is left out,
    and it is noted why."""

    def __init__(self, names: Iterable[str], errors: list[dict[str, Any]], package: str = "baselines.engines"):
        self.names = list(names)
        self.errors = errors
        self._package = package
        self._workers: dict[tuple[str, int], Worker] = {}

    def worker(self, engine: str, threads: int) -> Worker:
        key = (engine, threads)
        if key not in self._workers:
            self._workers[key] = Worker(engine, threads, self._package)
        return self._workers[key]

    def fresh(self, engine: str, threads: int, command: str, first: str = "", **given: Any) -> Any:
        """A command in a new process, of which Worker has first. process_seconds are from before it was started to
        after it ended."""
        begin = time.perf_counter()
        with Worker(engine, threads, self._package, first) as w:
            answer = w(command, **given)
        return answer | {"process_seconds": time.perf_counter() - begin}

    def failed(self, measure: str, engine: str, error: Exception) -> None:
        log(f"{measure}: {engine} is left out: {error}")
        self.errors.append(
            {"measure": measure, "engine": engine, "error": str(error), "wrong": isinstance(error, Wrong)})
        # It may be in any state.
        for key in [k for k in self._workers if k[0] == engine]:
            self._workers.pop(key).close()

    def close(self) -> None:
        for w in self._workers.values():
            w.close()
        self._workers.clear()

    def rounds(self, measure: str, n: int, of: Mapping[str, Callable[[], dict[str, Any]]],
               warm: int = 1, turn: float = 0) -> dict[str, list[dict[str, Any]]]:
        """Runs every engine n times, and warm times before that, in turns forwards and backwards; the answers that
        count.

        With turn, what takes less than so many seconds is run again until that many are over, and of the runs after the
        first the one of the median counts: other engines have had the processor's caches since its last turn, and a job
        that reads for hours has them itself.
        """
        out: dict[str, list[dict[str, Any]]] = {name: [] for name in of}
        for i in range(n + warm):
            for name in list(out) if i % 2 == 0 else list(out)[::-1]:
                try:
                    answers = [of[name]()]
                    while turn and len(answers) < _MOST_RUNS and sum(a["seconds"] for a in answers) < turn:
                        answers.append(of[name]())
                except EngineError as e:
                    self.failed(measure, name, e)
                    del out[name]
                    continue
                if i >= warm:
                    counted = answers[1:] or answers
                    if turn:
                        counted.sort(key=lambda a: a["seconds"])
                    out[name].append(counted[len(counted) // 2])
        return out


def summary(answers: list[dict[str, Any]], field: str = "seconds") -> dict[str, Any]:
    """The median of what was measured, and all of it."""
    values = [a[field] for a in answers]
    return {f"median_{field}": statistics.median(values), field: values}
