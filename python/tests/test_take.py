"""Rows at row positions, compared with the same rows of the source."""

import gc
import random
import shutil
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import dsistore
from conftest import ROWS, make_rows
from dsistore import _engine, errors


@pytest.mark.parametrize("n", [0, 1, 2, 40, 700, 3 * ROWS])
def test_take_equals_the_source(table, source, n):
    r = random.Random(n)
    for rows in ([r.randrange(ROWS) for _ in range(n)], sorted(r.sample(range(ROWS), min(n, ROWS)))):
        for _ in range(3):  # the third time from memory
            got = table.take(rows)
            assert got.select(source.column_names).combine_chunks().equals(
                source.take(pa.array(rows, pa.int64())).combine_chunks())


@pytest.mark.parametrize("rows", [
    [3, 999, 3], (3, 999, 3), np.array([3, 999, 3]), np.array([3, 999, 3], np.uint16),
    pa.array([3, 999, 3]), pa.chunked_array([[3, 999], [3]]), pd.Series([3, 999, 3]),
    torch.tensor([3, 999, 3]), [np.int32(3), 999, 3], range(3, 4, 1)])
def test_rows_may_be_any_integers(table, source, rows):
    got = table.take(rows, ["click", "user_history"])
    assert got.column_names == ["click", "user_history"]
    positions = [int(x) for x in (rows.to_pylist() if hasattr(rows, "to_pylist") else rows)]
    assert got["user_history"].to_pylist() == [source["user_history"][p].as_py() for p in positions]


@pytest.mark.parametrize("rows", [
    [ROWS], [-1], [0, 2**62], [2**64], [1.0], ["1"], "1",
    [True], np.array([True]), np.array([1.5]), pa.array([1, None]), 7])
def test_what_is_no_row(table, rows):
    with pytest.raises(errors.UsageError, match="rows: "):
        table.take(rows, "click")


def test_errors_of_take(table):
    with pytest.raises(errors.UsageError, match=f"1000, at index 1: want 0 to {ROWS - 1}"):
        table.take([5, ROWS], "click")
    with pytest.raises(errors.NotFoundError, match="clik"):
        table.take([5], "clik")


def test_takes_of_many_threads_and_selections(table, source):
    wrong = []

    def take(seed):
        r = random.Random(seed)
        for _ in range(20):
            column = r.choice(["click", "user_history", "country", "vector"])
            rows = [r.randrange(ROWS) for _ in range(5)]
            if table.take(rows, column)[column].to_pylist() != source[column].take(pa.array(rows)).to_pylist():
                wrong.append((column, rows))

    threads = [threading.Thread(target=take, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_takes_are_of_their_snapshot(tmp_path):
    store = dsistore.open(tmp_path)
    store.ingest("t", make_rows(1, 80), session_key="session_id")
    first = store.table("t")
    store.ingest("t", make_rows(2, 160), session_key="session_id", overwrite=True)
    second = store.table("t")
    assert first.take([79], "request_id").num_rows == 1
    with pytest.raises(errors.UsageError):
        first.take([80], "request_id")
    assert second.take([100], "request_id").equals(second.scan("request_id").to_arrow().slice(100, 1).combine_chunks())


def test_rows_taken_outlive_their_table_and_are_given_back(store_path, source):
    before = _engine.call("open_counts")["records"]
    got = dsistore.open(store_path).table("ads").take([1, 2], "item_list")
    for column in ("click", "country", "vector", "scored"):
        dsistore.open(store_path).table("ads").take([0], column)
    gc.collect()
    assert got["item_list"].to_pylist() == source["item_list"].to_pylist()[1:3]
    assert _engine.call("open_counts")["records"] == before


def test_a_store_made_anew_has_rows_of_its_own(tmp_path):
    store = dsistore.open(tmp_path / "store")
    for first in (0, 1000, 2000):  # each time snapshot 1 of the same table
        rows = pa.table({"id": pa.array(range(first, first + 100), pa.int64())})
        store.ingest("t", rows)
        for version in (1, None):
            table = store.table("t", version)
            assert table.scan("id").to_arrow()["id"].to_pylist()[3] == first + 3
            for _ in range(3):
                assert table.take([5, 3, 5], "id")["id"].to_pylist() == [first + 5, first + 3, first + 5]
        shutil.rmtree(tmp_path / "store")
