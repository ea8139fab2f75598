"""Rows that a filter selects, beside what DuckDB selects of the source."""

import pickle
import random

import duckdb
import pyarrow as pa
import pytest

import dsistore
from conftest import ROWS

COLUMNS = ["request_id", "user_history", "scored", "dense_a", "country", "click"]

# A filter, and the same for DuckDB where it is written otherwise.
CONDITIONS: list[tuple[str, str | None]] = [
    ("click = 1", None), ("NOT click = 1", None), ("country = 'de'", None), ("country != 'de'", None),
    ("country IN ('de', 'it')", None), ("country NOT IN ('de', 'it')", None), ("country IS NULL", None),
    ("country LIKE '_r%'", None), ("request_id NOT LIKE 'r1%'", None), ("dense_a > 0.5", "dense_a > 0.5::DOUBLE"),
    ("dense_a BETWEEN 0.25 AND 0.75", None), ("dense_a IS NOT NULL", None), ("dense_b >= click", None),
    ("event_time < 100", None), ("session_id = 3 OR session_id = 9007199254740993.0", "session_id = 3"),
    ("len(user_list) > 1", None), ("len(user_list) = 0", None), ("user_list IS NULL", None),
    ("contains(user_list, 8)", "list_contains(user_list, 8)"),
    ("any(user_history) > 50000", "CASE WHEN user_history = [] THEN false ELSE list_max(user_history) > 50000 END"),
    ("all(user_list) >= 0",
     "CASE WHEN user_list IS NULL THEN NULL WHEN user_list = [] THEN true ELSE list_min(user_list) >= 0 END"),
    ("len(scored) < 2", None), ("any(numbers) = 1.5", "list_contains(numbers, 1.5)"),
]


def selected(source: pa.Table, condition: str) -> pa.Table:
    """The rows of the source for which DuckDB says that the condition is true, in their order."""
    # noqa: F841: DuckDB reads it
    numbered = source.append_column("row_number", pa.array(range(source.num_rows), pa.int64()))
    rows = duckdb.sql(f"select row_number from numbered where {condition} order by row_number").fetchall()
    return source.take(pa.array([r[0] for r in rows], pa.int64()))


def draw(r: random.Random, depth: int) -> tuple[str, str]:
    if depth == 0 or r.random() < 0.2:
        ours, theirs = r.choice(CONDITIONS)
        return ours, theirs or ours
    a, b = draw(r, depth - 1), draw(r, depth - 1)
    match r.randrange(3):
        case 0:
            return f"NOT ({a[0]})", f"NOT ({a[1]})"
        case 1:
            return f"({a[0]}) AND ({b[0]})", f"({a[1]}) AND ({b[1]})"
    return f"({a[0]}) OR ({b[0]})", f"({a[1]}) OR ({b[1]})"


@pytest.mark.parametrize(("ours", "theirs"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_a_condition_selects_what_duckdb_selects(table, source, ours, theirs):
    scan = table.scan(COLUMNS, filter=ours)
    want = selected(source, theirs or ours).select(COLUMNS)
    assert scan.rows == want.num_rows
    assert scan.to_arrow().combine_chunks().equals(want.combine_chunks())


def test_random_filters_select_what_duckdb_selects(table, source):
    r = random.Random(11)
    for _ in range(40):
        ours, theirs = draw(r, 3)
        want = selected(source, theirs).select(["request_id", "user_history"])
        got = table.scan(["request_id", "user_history"], filter=ours, batch_size=r.choice([1, 37, 65536])).to_arrow()
        assert got.combine_chunks().equals(want.combine_chunks()), ours


def test_samples_are_of_keys_and_for_ever(table, source):
    def keys(text: str) -> set[str]:
        return set(table.scan(["request_id"], filter=text).to_arrow()["request_id"].to_pylist())

    tenth, third = keys("sample(0.1, key=request_id, seed=7)"), keys("sample(0.3, key=request_id, seed=7)")
    assert tenth < third and 0.05 * ROWS < len(tenth) < 0.15 * ROWS
    assert keys("sample(0.1, key=request_id, seed=8)") != tenth
    assert keys("click = 1 OR sample(0.1, key=request_id, seed=7)") == tenth | keys("click = 1")
    sessions = table.scan(["session_id"], filter="sample(0.5, key=session_id)").to_arrow()["session_id"].to_pylist()
    whole = source["session_id"].to_pylist()
    assert 0 < len(sessions) < ROWS and all(sessions.count(s) == whole.count(s) for s in set(sessions))


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
@pytest.mark.parametrize("shuffle", [None, "session", "row"])
def test_batches_hold_the_selected_rows(table, source, output, shuffle):
    pytest.importorskip("torch")
    from test_torch import expanded

    condition = "dense_a > 0.25 AND len(user_list) > 0"
    want = selected(source, condition)
    ds = table.torch(["user_history", "dense_a", "request_id"], labels="click", filter=condition, batch_size=64,
                     shuffle=shuffle, output=output, world_size=1, rank=0)
    assert len(ds) == -(-want.num_rows // 64)
    batches = list(pickle.loads(pickle.dumps(ds)))
    assert [len(b.labels) for b in batches[:-1]] == [64] * (len(batches) - 1)
    got = {}
    for b in batches:
        got.update(zip(b.keys["request_id"], expanded(b, "sparse")["user_history"], strict=True))
    rows = want.to_pydict()
    assert got == dict(zip(rows["request_id"], rows["user_history"]))
    assert any(b.groups for b in batches) == (output == "ikjt")


def test_a_job_goes_on_where_it_was(table):
    pytest.importorskip("torch")

    def make():
        return table.torch(["user_history"], labels="click", filter="click = 0 AND sample(0.7, key=request_id)",
                           batch_size=32, shuffle="session", world_size=1, rank=0)

    whole = [b.labels.shape[0] for b in make()]
    first = make()
    it = iter(first)
    for _ in range(3):
        next(it)
    state = first.state_dict()
    second = make()
    second.load_state_dict(state)
    assert [b.labels.shape[0] for b in second] == whole[3:]


def test_nothing_is_selected(table):
    scan = table.scan(["click"], filter="click > 1")
    assert scan.rows == 0 and scan.to_arrow().num_rows == 0


@pytest.mark.parametrize(("text", "error", "says"), [
    ("clik = 1", dsistore.NotFoundError, "clik"),
    ("click = ", dsistore.UsageError, "column 9"),
    ("click = 'a'", dsistore.UsageError, "'a' is text"),
    ("user_list = 3", dsistore.UsageError, "any"),
    ("sample(2, key=click)", dsistore.UsageError, "fraction"),
])
def test_what_makes_no_sense_says_where(table, text, error, says):
    with pytest.raises(error, match=says):
        table.scan(["click"], filter=text)
