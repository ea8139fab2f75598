"""Table.arrow: Arrow whose lists keep what rows share, read by pyarrow, pandas, Polars and DuckDB."""

from __future__ import annotations

import inspect

import duckdb
import polars
import pyarrow as pa
import pytest

import dsistore
from dsistore.table import ScanOptions
from test_partial import histories  # noqa: F401

LISTS = ["user_list", "user_history", "item_list", "scored", "numbers"]
ALL = [*LISTS, "dense_a", "country", "event_time"]


def rows(column) -> list:
    """The values of a column, a row each, whatever keeps them."""
    out = []
    for chunk in column.chunks:
        out += chunk.dictionary.take(chunk.indices).to_pylist() if pa.types.is_dictionary(
            chunk.type) else chunk.to_pylist()
    return out


def values(column) -> int:
    """How many values of lists the chunks of a column hold."""
    return sum(len((c.dictionary if pa.types.is_dictionary(c.type) else c).values) for c in column.chunks)


@pytest.mark.parametrize("dedup", [False, True, "partial"])
@pytest.mark.parametrize("options", [{}, {"batch_size": 90}, {"filter": "click = 1", "batch_size": 128}], ids=str)
def test_rows_are_those_of_the_source(table, source, dedup, options):
    got = table.arrow(ALL, dedup=dedup, **options).to_arrow()
    want = source.filter(pa.compute.equal(source["click"], 1)) if "filter" in options else source
    for name in ALL:
        kind = got[name].type
        if name in LISTS:
            is_kind = {False: pa.types.is_list, True: pa.types.is_dictionary, "partial": pa.types.is_list_view}[dedup]
            assert is_kind(kind)
        if name == "scored":  # struct's members are named by the store
            assert [[tuple(e.values()) for e in x or []] for x in rows(got[name])] == [
                [tuple(e.values()) for e in x or []] for x in want[name].to_pylist()]
        else:
            assert rows(got[name]) == want[name].to_pylist(), name


def test_what_repeats_is_there_once(histories):  # noqa: F811
    sizes = {dedup: values(histories.arrow("hist", dedup=dedup, batch_size=100).to_arrow()["hist"])
             for dedup in (False, True, "partial")}
    assert 3 * sizes["partial"] < sizes[True] < sizes[False], sizes
    plain = histories.scan("hist").to_arrow()["hist"].to_pylist()
    assert all(rows(histories.arrow("hist", dedup=d).to_arrow()["hist"]) == plain for d in sizes)


def test_polars_and_duckdb_read_the_capsule(table, source):
    """Neither goes through anything of ours but __arrow_c_stream__."""
    want = source.select(["user_history", "dense_a", "country"])
    scan = table.arrow(want.column_names, batch_size=100)
    assert polars.DataFrame(scan).to_arrow().cast(want.schema).to_pylist() == want.to_pylist()
    assert duckdb.sql("select sum(len(user_history)) from scan").fetchall() == [(sum(
        map(len, want["user_history"].to_pylist())),)]
    for dedup in (True, "partial"):
        shared = table.arrow(want.column_names, dedup=dedup, batch_size=100)
        assert duckdb.sql("select user_history from shared").fetchall() == [
            (x,) for x in want["user_history"].to_pylist()]
    shared = table.arrow(want.column_names, dedup=True, batch_size=100)
    assert polars.DataFrame(shared)["user_history"].to_list() == want["user_history"].to_pylist()


def test_pandas_reads_the_capsule(table, source):
    pandas = pytest.importorskip("pandas")
    for dedup in (False, "partial"):
        frame = pandas.DataFrame.from_arrow(table.arrow(["dense_b", "user_history"], dedup=dedup, batch_size=100))
        assert frame["dense_b"].tolist() == source["dense_b"].to_pylist()
        assert [list(x) for x in frame["user_history"]] == source["user_history"].to_pylist()


def test_options(table):
    scan, arrow = (set(inspect.signature(f).parameters) for f in (dsistore.Table.scan, dsistore.Table.arrow))
    assert scan - {"self", "features", "dedup"} == {*ScanOptions.__annotations__} and arrow == {
        "self", "features", "dedup", "options"}
    with pytest.raises(dsistore.UsageError, match="want False, True or 'partial'"):
        table.arrow("user_list", dedup="ikjt")
