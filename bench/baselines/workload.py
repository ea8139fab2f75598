"""The rows: dumps by `dsi generate`, as Arrow for writers, and digests of what readers must give."""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .harness import HERE, ROOT, log
from .tensors import BATCH, Digest, Maker, Projection

# Columns that are neither sparse nor dense features.
OTHERS = ("session_id", "request_id", "user_id", "event_time", "click", "conversion", "user_embedding")


class Workload:
    """One table of the generator, in a directory of its own; what is there is used."""

    def __init__(self, directory: pathlib.Path, profile: str, rows: int):
        self.profile, self.rows = profile, rows
        self.directory = directory / f"{profile}-{rows}"
        self._schema: pa.Schema | None = None
        self._digests: dict[str, Any] | None = None

    def dump(self, order: str) -> pathlib.Path:
        """The generated Parquet."""
        path = self.directory / order / "dump"
        if not (path / "done").exists():
            log(f"generating {path}")
            subprocess.run([
                str(ROOT / "bin" / "dsi"), "generate",
                str(path), "--profile", self.profile, "--rows",
                str(self.rows), "--order", order, "--force"
            ], check=True, stdout=subprocess.DEVNULL)
            (path / "done").touch()
        return path / "part-00000.parquet"

    def arrow(self, order: str) -> str:
        """The rows as uncompressed record batches of BATCH rows: what writers are given, mapped."""
        path = self.directory / order / "rows.arrow"
        if not path.exists():
            half = path.with_suffix(".half")
            file = pq.ParquetFile(self.dump(order))
            with pa.ipc.new_file(str(half), self.schema) as w:
                for batch in file.iter_batches(BATCH):  # not at once: it may be larger than memory
                    w.write_batch(batch)
            half.rename(path)
        return str(path)

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = pq.read_schema(self.dump("clustered"))
        return self._schema

    def projection(self, share: float) -> Projection:
        """About a share of the sparse and dense features, spread over all families: every 1/share-th one."""
        columns = [n for n in self.schema.names if n not in OTHERS]
        want = max(round(share * len(columns)), 1)
        return Projection.of(self.schema, [columns[i * len(columns) // want] for i in range(want)])

    def file(self, order: str, engine: str) -> str:
        """Where an engine's file or directory lies."""
        return str(self.directory / order / engine)

    def digest(self, order: str, projection: Projection, rows: int | None = None) -> dict[str, Any]:
        """The digest of all rows, or the first ones, by pyarrow's reading of the generated Parquet. It is
        remembered."""
        rows = self.rows if rows is None else rows
        remembered = self.directory / "digests.json"
        if self._digests is None:
            self._digests = json.loads(remembered.read_text()) if remembered.exists() else {}
        code = (HERE / "tensors.py").read_bytes()
        key = hashlib.sha256(code + repr((order, projection, rows)).encode()).hexdigest()
        if key not in self._digests:
            log(f"truth of {len(projection.columns)} features, {order}")
            digest, make = Digest(), Maker(projection)
            for b in pq.ParquetFile(self.dump(order)).iter_batches(BATCH, columns=projection.columns):
                if digest.rows < rows:
                    digest.add(make(b.slice(0, rows - digest.rows)))
            self._digests[key] = digest.result()
            remembered.write_text(json.dumps(self._digests))
        return self._digests[key]
