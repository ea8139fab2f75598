"""Metrics of a process that reads: docs/reference/metrics.md."""

import re
import subprocess
import sys
import textwrap

PROGRAM = """
import sys, urllib.request
import pyarrow as pa
import dsistore

url = dsistore.serve_metrics()
assert url.startswith("http://127.0.0.1:"), url
assert dsistore.serve_metrics() == url
try:
    dsistore.serve_metrics("127.0.0.1:1")
    raise SystemExit("two addresses")
except dsistore.UsageError as e:
    assert url in str(e), e
store = dsistore.open(sys.argv[1])
rows = pa.table({"session_id": [i // 3 for i in range(300)], "x": [float(i // 3) for i in range(300)]})
store.ingest("ads", rows, session_key="session_id")
scan = store.table("ads").scan(["x"])
assert sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(scan)) == 300
print(urllib.request.urlopen(url, timeout=10).read().decode())
"""


def test_metrics_are_those_of_the_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM),
         str(tmp_path / "store")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

    def value(series):
        found = re.search("^" + re.escape(series) + r" (\S+)$", done.stdout, re.M)
        assert found, series
        return float(found[1])

    assert value("dsi_ingest_rows_total") == 300
    assert value("dsi_reader_rows_total") == 300
    assert value('dsi_reader_bytes_read_total{class="needed"}') > 0
    assert value('dsi_reader_requests_total{code="ok",op="read",store="file"}') > 0
    assert value('dsi_commit_conflicts_total{outcome="refused"}') == 0
