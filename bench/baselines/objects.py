"""A server of S3 on this machine (versitygw), behind a proxy that makes every request slower and counts."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pyarrow.fs as fs

from .harness import ROOT

BUCKET = "tables"


def filesystem(server: dict[str, str]) -> fs.S3FileSystem:
    """pyarrow's client of a server, by the environment that it is reached by."""
    return fs.S3FileSystem(access_key=server["AWS_ACCESS_KEY_ID"], secret_key=server["AWS_SECRET_ACCESS_KEY"],
                           endpoint_override=server["AWS_ENDPOINT_URL"], region=server["AWS_REGION"])


class Server:
    def __init__(self, directory: pathlib.Path):
        """directory is where the program may lie."""
        program = str(directory / "serve")
        subprocess.run(["go", "build", "-tags", "pebblegozstd", "-o", program, "./internal/objectserver/serve"],
                       cwd=ROOT, check=True)
        self._process = subprocess.Popen([program, "-proxy", BUCKET], cwd=ROOT, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, preexec_fn=_on_last_core)
        self.environment: dict[str, str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the server of S3 ended with {self._process.wait()}")
        return json.loads(line)

    def slow(self, milliseconds: int) -> dict[str, int]:
        """Lets every request from now on take so much longer. Returns requests and bytes since this was last
        called."""
        assert self._process.stdin
        self._process.stdin.write(f"{milliseconds}ms\n")
        self._process.stdin.flush()
        return self._answer()

    def put(self, path: str, key: str) -> None:
        """Uploads a file, or all files of a directory, and nothing for the directories themselves."""
        to, top = filesystem(self.environment), pathlib.Path(path)
        for file in (f for f in [top, *top.rglob("*")] if f.is_file()):
            name = "/".join([BUCKET, key, *file.relative_to(top).parts])
            with open(file, "rb") as source, to.open_output_stream(name) as out:
                while block := source.read(8 << 20):
                    out.write(block)

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def _on_last_core() -> None:
    """A core that the engines do not use, where there is one: it is the network."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
