"""The blocks of the guide and the README run from top to bottom, over a small table with the names of the demo's."""

import pathlib
import random
import re

import pyarrow as pa
import pytest

import dsistore

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize("page, store, table, count", [("docs/guide/pytorch.md", "out/demo/store", "workload", 10),
                                                       ("README.md", "store", "ads", 1)])
def test_the_blocks_run(tmp_path, monkeypatch, capsys, page, store, table, count):
    pytest.importorskip("torchrec")
    (tmp_path / store).mkdir(parents=True)
    dsistore.open(tmp_path / store).ingest(table, demo_rows(8000), session_key="session_id", time_key="event_time")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    assert len(blocks) == count
    names: dict = {"__name__": "__main__"}
    for i, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {i + 1}", "exec"), names)
        assert capsys.readouterr().out or i == 0, block
