"""The guide's blocks run from top to bottom, over a small table with the names of the demo's."""

import pathlib
import random
import re

import pyarrow as pa
import pytest

import dsistore

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "pytorch.md"


def demo_rows(rows: int) -> pa.Table:
    r = random.Random(1)
    user = {s: [[r.getrandbits(62) for _ in range(r.randrange(30))] for _ in range(4)] for s in range(rows // 16)}
    session = [r.randrange(len(user)) for _ in range(rows)]
    lists = pa.list_(pa.int64())
    return pa.table({
        "session_id": pa.array(session, pa.int64()), "event_time": pa.array(range(rows), pa.int64()),
        "click": pa.array([r.randrange(2) for _ in range(rows)], pa.int32()),
        "user_history_00000": pa.array([user[s][0] for s in session], lists),
        "user_history_00001": pa.array([user[s][1] for s in session], lists),
        "user_list_00000": pa.array([user[s][2][:5] for s in session], lists),
        "item_list_00000": pa.array([[r.getrandbits(40)] for _ in range(rows)], lists),
        "user_dense_00000": pa.array([s / 7 for s in session], pa.float32()),
    })


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torchrec")
    store = tmp_path / "out" / "demo" / "store"
    store.mkdir(parents=True)
    dsistore.open(store).ingest("workload", demo_rows(8000), session_key="session_id", time_key="event_time")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert len(blocks) == 10
    names: dict = {"__name__": "__main__"}
    for i, block in enumerate(blocks):
        exec(compile(block, f"{GUIDE.name}, block {i + 1}", "exec"), names)
        assert capsys.readouterr().out or i == 0, block
