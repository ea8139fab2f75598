"""Runs programs of their own: what is tested of them is how they end."""

from __future__ import annotations

import errno
import importlib.util
import os
import pathlib
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from functools import cache

import pytest

import dsistore

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 120  # after which a program hangs
TAGS = "invariants,pebblegozstd,grpcnotrace"  # of make test, so that what that compiled is linked


def start(program: str, *args: object, under: Sequence[object] = ()) -> subprocess.Popen[str]:
    """A Python process that runs the text of a program, under a command that runs the rest of its arguments."""
    path = [str(pathlib.Path(dsistore.__file__).parent.parent), str(pathlib.Path(__file__).parent)]
    return subprocess.Popen([*map(str, under), sys.executable, "-c",
                             textwrap.dedent(program), *map(str, args)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})


def open_gate(gate: pathlib.Path, p: subprocess.Popen[str]) -> None:
    """Lets a process go on that opens a named pipe to read; an error when it ends without doing so."""
    for _ in range(10 * SECONDS):
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            return
        except OSError as e:  # nobody reads
            if e.errno != errno.ENXIO:
                raise
        if p.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError("it did not come to the gate: {}\n{}".format(*finish(p)[1:]))


def finish(p: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    try:
        out, err = p.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGQUIT)  # Go says where its goroutines are
        time.sleep(1)
        p.kill()
        raise AssertionError("it hangs: {}\n{}".format(*p.communicate())) from None
    return p.returncode, out, err


def run(program: str, *args: object) -> str:
    """The standard output of a program that ends well and says nothing else."""
    status, out, err = finish(start(program, *args))
    assert (status, err) == (0, ""), err
    return out


def torchrec_first() -> None:
    """Imports torchrec, if it is there. What it imports (tensordict 0.15) ends a process that has TensorFlow 2.21."""
    if importlib.util.find_spec("torchrec") is not None:
        importlib.import_module("torchrec")


@cache
def program(name: str) -> str:
    """A command of this checkout: dsi or dsistat."""
    go = shutil.which(os.environ.get("GO", "go"))
    if go is None:
        pytest.skip(f"no go: {name} cannot be built")
    out = tempfile.mkdtemp()
    subprocess.run([go, "build", "-tags", TAGS, "-o", out, f"./tools/cmd/{name}"], cwd=CHECKOUT, check=True)
    return os.path.join(out, name)


def dsi_program() -> str:
    """The command dsi of this checkout."""
    return program("dsi")


def dsi(*args: object) -> str:
    """Runs dsi: what Python has no call for."""
    done = subprocess.run([dsi_program(), *map(str, args)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dsi_fails(code: int, message: str, *args: object) -> None:
    """Runs dsi, which exits with a code, and says one line that matches message."""
    done = subprocess.run([dsi_program(), *map(str, args)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stderr.startswith("dsi: ") and done.stderr.count("\n") == 1, done.stderr
    assert re.search(message, done.stderr), done.stderr
