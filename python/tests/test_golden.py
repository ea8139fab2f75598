"""The stores that releases wrote (internal/golden) are read by the package: every value, against the model's rows."""

import base64
import gzip
import json
import pathlib
import shutil

import pyarrow as pa
import pytest

import dsistore

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "internal" / "golden" / "testdata"
STORES = sorted(GOLDEN.glob("*/golden.json"))


def expected(rows, field):
    """The values of a column as the model has them, in the type that was read."""
    values = [row.get(field.name) for row in rows]
    if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
        values = [None if v is None else base64.b64decode(v) for v in values]
    elif pa.types.is_map(field.type):
        values = [None if v is None else [(int(k), x) for k, x in v.items()] for v in values]
    elif pa.types.is_floating(field.type):
        values = [None if v is None else float(v) for v in values]
    return pa.array(values, field.type)


@pytest.mark.parametrize("golden", STORES, ids=[p.parent.name for p in STORES])
def test_a_golden_store_is_read(golden, tmp_path):
    store = dsistore.open(shutil.copytree(golden.parent / "store", tmp_path / "store"))
    views = json.loads(golden.read_text())["views"]
    for view in views:
        with gzip.open(golden.parent / f"{view['name']}.jsonl.gz", "rt") as lines:
            rows = [json.loads(line) for line in lines]
        table = store.table(view["table"], version=view.get("at"))
        read = table.scan(overlay=view.get("overlays", ()), sample_list=view.get("list")).to_arrow().sort_by("row")
        assert len(read) == len(rows)
        for field in read.schema:
            want = expected(rows, field)
            assert read[field.name].combine_chunks().equals(want), (view["name"], field.name)
    assert len(views) >= 9
