"""dsi sql: what DuckDB gives of a store, beside what it gives of the same rows in Parquet, and what was read for it."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dsistore
from programs import dsi, dsi_fails, dsi_program

duckdb = pytest.importorskip("duckdb", minversion="2")

DAYS = ["2026-11-01", "2026-11-02", "2026-11-03", "it's"]
ROWS = 6000  # of a day


@pytest.fixture(scope="module", autouse=True)
def interpreter():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSISTORE_PYTHON", sys.executable)
        yield


def day_of_rows(r: random.Random, first: int) -> pa.Table:
    def some(value: Any) -> Any:
        return None if r.random() < 0.1 else value

    floats = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5, 0.1, 3.0, 1e30]
    n = range(ROWS)
    time = datetime.datetime(2026, 11, 1)
    return pa.table({
        "id": pa.array([first + i for i in n], pa.int64()),
        "user": pa.array([i // 50 for i in n], pa.int32()),
        "click": pa.array([int(r.random() < 0.3) for _ in n], pa.int8()),
        "big": pa.array([some(r.choice([0, 1, 2**63, 2**64 - 1])) for _ in n], pa.uint64()),
        "f": pa.array([some(r.choice(floats)) for _ in n], pa.float32()),
        "d": pa.array([some(r.choice(floats)) for _ in n], pa.float64()),
        "name": pa.array([some(r.choice(["", "a", "it's", 'q"q', "ä", "b%", "\\", "Z", "a b"])) for _ in n]),
        "raw": pa.array([some(r.choice([b"", b"\0x", b"a"])) for _ in n], pa.binary()),
        "flag": pa.array([some(r.random() < 0.5) for _ in n], pa.bool_()),
        "day": pa.array([some(time.date() + datetime.timedelta(r.randrange(3))) for _ in n], pa.date32()),
        "seen": pa.array([some(time + datetime.timedelta(microseconds=r.randrange(3) * 1500)) for _ in n],
                       pa.timestamp("us")),
        "zoned": pa.array([some(time + datetime.timedelta(hours=r.randrange(3))) for _ in n],
                          pa.timestamp("ms", tz="UTC")),
        "price": pa.array([some(decimal.Decimal(r.randrange(-300, 300)) / 100) for _ in n], pa.decimal128(9, 2)),
        "hist": pa.array([some([r.randrange(9) for _ in range(r.randrange(4))]) for _ in n], pa.list_(pa.int64())),
        "odd name*": pa.array([r.randrange(5) for _ in n], pa.int16()),
    })


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("sql")
    r = random.Random(11)
    for i, day in enumerate(DAYS):
        (root / "dump" / f"ds={day}").mkdir(parents=True)
        pq.write_table(day_of_rows(r, i * ROWS), root / "dump" / f"ds={day}" / "part.parquet")
    opened = dsistore.open(root / "store")
    opened.ingest("ads", root / "dump", session_key="user")
    opened.ingest("users", pa.table({"user": pa.array(range(100), pa.int32()), "age": [u % 60 for u in range(100)]}))
    dsi("export", root / "store", "ads", "--to", root / "ads.parquet")
    return root / "store"


def rows(store: pathlib.Path, query: str, *args: object) -> list[list[Any]]:
    answer: list[list[Any]] = json.loads(dsi("sql", store, query, "--json", *args))["rows"]
    return answer


def both(store: pathlib.Path, query: str) -> list[list[Any]]:
    """The rows of a query whose table is {ads}, which are those that DuckDB gives of the exported file."""
    got = rows(store, query.replace("{ads}", "ads"))
    assert got == rows(store, query.replace("{ads}", f"'{store.parent}/ads.parquet'"))
    return got


@pytest.mark.parametrize("query", [
    "select * from {ads} order by id limit 500",
    "select count(*), count(f), sum(click), min(name), max(seen), count(distinct hist) from {ads}",
    "select ds, count(*), sum(price), sum(big) from {ads} group by ds order by ds",
    "select id, hist[1], len(hist) from {ads} where len(hist) > 2 order by id",
    "select ds, id from {ads} where ds = 'it''s' and click = 1 order by id",
    "select a.id, b.id from {ads} a join {ads} b on a.id = b.id + 1 where a.ds = '2026-11-02' order by a.id",
    "select u.age, count(*) from {ads} a join users u using (user) where u.age > 30 group by 1 order by 1",
    "with x as (select id, f from {ads} where f is null) select count(*), max(id) from x",
    "select id from {ads} where id in (select id from {ads} where d = 1.5 and flag) order by id",
    "select count(*) from {ads} where ds > '2026-11-01' or click = 1",
])
def test_as_of_parquet(store, query):
    assert both(store, query)


def test_conditions_as_of_parquet(store):
    """Random conditions, among them comparisons with NaN and -0.0: a count of each, in few queries."""
    r = random.Random(5)
    constants = {
        "id": ["0", "17", "5999", "-1", "23999"],
        "user": ["0", "3", "119"],
        "big": ["0", "9223372036854775808", "18446744073709551615"],
        "f": ["0", "-0.0::float", "1.5", "0.1", "0.1::float", "'nan'::float", "'inf'::float", "3"],
        "d": ["0", "1.5", "0.1", "'nan'::double", "'-inf'::double", "1e30"],
        "name": ["''", "'a'", "'it''s'", "'q\"q'", "'ä'", "'\\'", "'Z'"],
        "raw": ["'a'::blob", "''::blob"],
        "flag": ["true", "false"],
        "day": ["'2026-11-02'::date", "'2026-11-03'::date"],
        "seen": ["'2026-11-01'::timestamp", "'2026-11-01 00:00:00.0015'::timestamp"],
        "zoned": ["'2026-11-01 01:00:00+00'::timestamptz"],
        "price": ["0", "1.25", "-2.00", "0.005"],
        '"odd name*"': ["0", "3", "4"],
        "ds": ["'2026-11-02'", "'it''s'", "'x'"],
    }

    def condition(depth: int) -> str:
        if depth and r.random() < 0.5:
            op = r.choice(["and", "or", "and not", "or not"])
            return f"({condition(depth - 1)} {op} {condition(depth - 1)})"
        column = r.choice(list(constants))
        match r.randrange(6):
            case 0:
                return f"{column} is {r.choice(['', 'not'])} null"
            case 1:
                values = r.sample(constants[column], r.randrange(1, len(constants[column]) + 1))
                return f"{column} {r.choice(['', 'not'])} in ({', '.join(values)})"
            case 2:
                return f"{column} between {r.choice(constants[column])} and {r.choice(constants[column])}"
        return f"{column} {r.choice(['=', '<>', '<', '<=', '>', '>='])} {r.choice(constants[column])}"

    for _ in range(4):
        counted = "(select count(*) || ' ' || coalesce(sum(id), 0) from {ads} where "
        both(store, "select " + ", ".join(counted + condition(3) + ")" for _ in range(50)))


def test_only_what_is_needed_is_read(store, monkeypatch):
    """Bytes of usage records, beside those of a scan of the same features, partitions and rows."""
    monkeypatch.delenv("DSISTORE_USAGE")

    def read(job: str) -> tuple[int, int, int]:
        jobs = {j["job"]: j for j in json.loads(dsi("usage", "list", store, "ads", "--json"))["jobs"]}
        j = jobs.get(job, {"features": 0, "rows": 0, "bytes_needed": 0})
        return j["features"], j["rows"], j["bytes_needed"]

    dsi("sql", store, "select count(*) from ads", "--job", "count")
    assert read("count")[2] == 0
    dsi("sql", store, "select count(*) from ads where ds = '2026-11-02'", "--job", "count a day")
    assert read("count a day")[2] == 0
    dsi("sql", store, "select sum(click) from ads where ds = '2026-11-02'", "--job", "sql")
    dsi("scan", store, "ads", "--features", "click", "--partition", "ds = '2026-11-02'", "--job", "scan")
    assert read("sql") == read("scan")
    assert read("sql")[0] == 1 and read("sql")[1] == ROWS and read("sql")[2] > 0
    # A condition on a feature: it is read by itself, then the rows that it leaves.
    dsi("sql", store, "select sum(click) from ads where id = 17", "--job", "sql where")
    dsi("scan", store, "ads", "--features", "click", "--where", "id = 17", "--job", "scan where")
    assert read("sql where") == read("scan where")
    assert read("sql where")[1] == 1
    # A query of some rows does not read all.
    dsi("sql", store, "select * from ads limit 3", "--job", "limit")
    dsi("export", store, "ads", "--to", store.parent / "all.arrow", "--job", "all")
    assert 0 < read("limit")[2] <= read("all")[2]


def test_versions(store, tmp_path):
    """Snapshots, branches and deletes."""
    other = tmp_path / "store"
    dsi("sql", other, f"copy (select * from '{store.parent}/ads.parquet' where id < 1000) to '{tmp_path}/a.parquet'")
    dsi("ingest", other, "ads", tmp_path / "a.parquet")
    dsi("branch", "create", other, "ads", "exp")
    dsi("delete", other, "ads", "--where", "id < 10")
    query = 'select (select count(*) from ads), (select count(*) from "ads@exp"), (select min(id) from "ads@1")'
    assert rows(other, query) == [[990, 1000, 0]]
    assert rows(other, "select count(*) from ads", "--at", 1) == [[1000]]
    assert rows(other, 'select b.id from "ads@exp" b anti join ads using (id) order by 1') == [[i] for i in range(10)]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "out.arrows", "out.jsonl"])
def test_files(store, tmp_path, name):
    query = "select id, name, hist from ads where ds = '2026-11-01' order by id"
    out = tmp_path / name
    text = dsi("sql", store, query, "--to", out)
    assert text.startswith(f"{out}: ")
    want = pq.read_table(store.parent / "ads.parquet", columns=["id", "name", "hist", "ds"]).to_pylist()
    want = [{k: v for k, v in w.items() if k != "ds"} for w in want if w["ds"] == "2026-11-01"]
    if name == "out.parquet":
        got = pq.read_table(out).to_pylist()
    elif name == "out.arrow":
        got = pa.ipc.open_file(out).read_all().to_pylist()
    elif name == "out.arrows":
        got = pa.ipc.open_stream(out).read_all().to_pylist()
    elif name == "out.jsonl":
        got = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        with open(out, newline="") as f:
            got = [[r["id"], r["name"], r["hist"]] for r in csv.DictReader(f)]
        assert got == [[str(w["id"]), w["name"] or "", "" if w["hist"] is None else str(w["hist"])] for w in want]
        return
    assert sorted(got, key=lambda x: x["id"]) == sorted(want, key=lambda x: x["id"])


def test_printed(store):
    """A table for people: lists and strings cut short, numbers at the right, no control characters."""
    text = dsi("sql", store, r"select 1 as n, e'a\x1bb' as s, [1,2,3,4,5,6,7,8] as l, null as x", "-n", 5)
    assert text == "n  s    l                           x\n1  a?b  [1 2 3 4 5 6 ... 8 in all]  null\n"
    text = dsi("sql", store, "select id from ads", "-n", 3)
    assert text.endswith("... and more: -n, --json or --to\n") and len(text.splitlines()) == 5
    assert rows(store, "create table t (i int); select count(*) from t") == [[0]]
    assert rows(store, "show tables") == [["ads"], ["users"]]
    assert ["ds", "VARCHAR"] in [row[:2] for row in rows(store, "describe ads")]


def test_values_that_python_has_not(store):
    """Dates beyond its years, 24:00, intervals, and numbers of 128 bits are as DuckDB prints them."""
    values = {"date '12000-01-01'": "12000-01-01", "date '0044-03-15 (BC)'": "0044-03-15 (BC)",
              "date 'infinity'": "infinity", "timestamp '-infinity'": "-infinity",
              "timestamp_s '200000-01-01'": "200000-01-01 00:00:00", "time '24:00:00'": "24:00:00",
              "'12:00:00+01'::timetz": "12:00:00+01", "interval '1 month 2 days'": "1 month 2 days",
              "timestamp_ns '2026-01-01 00:00:00.000000001'": "2026-01-01 00:00:00.000000001",
              "'101'::bit": "101", "340282366920938463463374607431768211455::uhugeint":
              "340282366920938463463374607431768211455",
              "[date '12000-01-01', null]": ["12000-01-01", None], "null::date": None}
    query = "select " + ", ".join(f"{v} as x" for v in values)
    assert rows(store, query) == [list(values.values())]
    assert rows(store, f"create table t as {query.replace(' as x', '')}; select * from t") == [list(values.values())]
    assert "12000-01-01" in dsi("sql", store, "select date '12000-01-01'")


@pytest.mark.parametrize(("query", "code", "message"), [
    ("select clik from ads", 2, 'clik" not found in FROM clause.*click'),
    ("selec 1", 2, 'Parser Error: syntax error at or near "selec"'),
    ("select * from adz", 5, 'table "adz": not found; did you mean "ads"'),
    ('select * from "ads@nobranch"', 5, 'branch "nobranch": not found'),
    ('select * from "ads@99"', 5, "snapshot 99"),
    ("select 'x'::int", 1, "Conversion Error"),
    ("select sys from sys", 5, 'table "sys": not found'),
])
def test_mistakes(store, query, code, message):
    dsi_fails(code, message, "sql", store, query)


def test_long_conditions(store):
    """Chains of more terms than Python's recursion has levels, and than dsi has parentheses."""
    for n in (3, 150, 1500):
        terms = " or ".join(f"(id = {2 * i} and user < 1000)" for i in range(n))
        assert rows(store, f"select count(*) from ads where {terms}") == [[n]]


def test_dates_with_a_part_of_a_day(tmp_path):
    """A date64 that is no whole day is that day for DuckDB, in a condition too."""
    store = dsistore.open(tmp_path / "store")
    store.ingest("t", pa.table({"m": pa.array([43_200_000, 0, 86_400_000, None, 5, 86_400_001], pa.int64()).cast(
        pa.date64(), safe=False)}), init=True)
    for condition, n in (("= date '1970-01-01'", 3), ("<= date '1970-01-01'", 3), ("> date '1970-01-01'", 2),
                         ("in (date '1970-01-01')", 3), ("is null", 1)):
        query = f"select (select count(*) from t where m {condition}), count(*) filter (where m {condition}) from t"
        assert rows(tmp_path / "store", query) == [[n, n]], condition


def test_damage(store, tmp_path):
    """What is damaged is said in dsi's own words, and leaves no file."""
    shutil.copytree(store, tmp_path / "store")
    for pack in (tmp_path / "store").glob("*/*/pack-*"):
        data = bytearray(pack.read_bytes())
        for at in range(0, len(data), 20):
            data[at] ^= 0x10
        pack.write_bytes(data)
    out = tmp_path / "out.parquet"
    dsi_fails(3, "corrupt data", "sql", tmp_path / "store", "select sum(d) from ads", "--to", out)
    dsi_fails(3, "corrupt data", "sql", tmp_path / "store", "select sum(d) from ads")
    dsi_fails(3, "corrupt data", "sql", tmp_path / "store", "select d from ads", "--json")
    assert not out.exists()


def test_constants_that_python_has_not(tmp_path):
    """Infinite times, and null in lists: DuckDB gives them to Python as other values, or as None."""
    day, time = datetime.date(9999, 12, 31), datetime.datetime.max
    table = pa.table({
        "id": [0, 1, 2], "day": pa.array([day, None, datetime.date(2026, 11, 1)]),
        "first": pa.array([datetime.date.min, None, day]),
        "seen": pa.array([time, None, datetime.datetime(2026, 11, 1)], pa.timestamp("us")),
        "flag": [True, None, False], "name": ["a", None, "b"], "f": [1.5, None, 2.5], "n": [1, None, 2],
    })
    dsistore.open(tmp_path / "store").ingest("ads", table, init=True)
    pq.write_table(table, tmp_path / "ads.parquet")
    conditions = [
        "day < 'infinity'", "day = 'infinity'", "day <> 'infinity'", "day > '-infinity'", "first = '-infinity'",
        "first > '-infinity'", "seen < 'infinity'", "seen = 'infinity'", "seen >= '-infinity'",
        "day in ('infinity', '2026-11-01')", "flag in (true, null)", "flag not in (true, null)", "name in ('a', null)",
        "name not in ('a', null)", "f in (1.5, null)", "n in (1, null)", "n not in (1, null)",
        "day in ('2026-11-01', null)", "name = null", "flag = null",
    ]
    each = (f"(select list(id order by id) from {{ads}} where {c})" for c in conditions)
    assert len(both(tmp_path / "store", f"select {', '.join(each)}")[0]) == len(conditions)


def test_a_long_tmpdir(store, tmp_path, monkeypatch):
    """The path of a socket has at most some hundred bytes."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    assert rows(store, "select count(*) from users") == [[100]]
    assert not list(long.iterdir())


def test_names_that_differ_only_in_case(tmp_path):
    for name, value in (("ads", 1), ("Ads", 2), ("other", 3)):
        dsistore.open(tmp_path / "store").ingest(name, pa.table({"x": [value]}), init=True)
    assert rows(tmp_path / "store", "select x from other") == [[3]]
    for query in ("select * from ads", 'select * from "Ads", other', 'select * from "ads@1"'):
        dsi_fails(1, "tables Ads and ads: their names differ only in case", "sql", tmp_path / "store", query)


def test_features_that_differ_only_in_case(tmp_path):
    """DuckDB would number them, so that click_1 were Click."""
    store = dsistore.open(tmp_path / "store")
    store.ingest("t", pa.table({"Click": [1], "click": [2], "click_1": [3]}), init=True)
    dsi_fails(1, "table t: features Click and click: their names differ only in case.*dsi features rename",
              "sql", tmp_path / "store", "select click_1 from t")
    store.ingest("u", pa.table({"Rows": [5, 6], "ROWS_": [7, 7]}))
    query = "select rows, rows_, count(*) from u group by all order by 1"
    assert rows(tmp_path / "store", query) == [[5, 7, 1], [6, 7, 1]]
    # Queries of other tables go on, also those that see all of them.
    assert rows(tmp_path / "store", "select 'show' as x, rows from u order by 2") == [["show", 5], ["show", 6]]
    assert rows(tmp_path / "store", "show tables") == [["u"]]
    dsi_fails(1, "table t: features Click and click", "sql", tmp_path / "store", "select 'show', click_1 from t")
    # Only ASCII letters have a case there.
    store.ingest("v", pa.table({"straße": [1], "strasse": [2], "É": [3], "é": [4]}), init=True)
    assert rows(tmp_path / "store", 'select "straße", strasse, "É", "é" from v') == [[1, 2, 3, 4]]


def test_long_queries(store, tmp_path):
    """What DuckDB would print of its progress is not among the rows; and a query that is interrupted leaves nothing."""
    n = 1
    while True:
        query = f"select sum(hash(a.range, b.range) % 2) >= 0 from range({n} * 1000000) a, range(100) b"
        begin = time.monotonic()
        assert rows(store, query) == [[True]]
        if time.monotonic() - begin > 4:  # DuckDB prints progress after 2 s, and starts in less than 2
            break
        n *= 4
    endless = "select sum(hash(a.range, b.range) % 2) from range(1000000) a, range(10000000) b"
    p = subprocess.Popen([dsi_program(), "sql", str(store), endless, "--to", str(tmp_path / "out.parquet")],
                         stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=60)
    assert p.returncode == 130, said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("args", [["--json"], ["--to", "-"]])
def test_nobody_reads_the_rest(store, tmp_path, args):
    """As by "| head": it ends by the signal, says nothing, and leaves nothing."""
    many = "select a.id from ads a, ads b"
    p = subprocess.Popen([dsi_program(), "sql", str(store), many, *args], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert p.stdout and p.stdout.read(100)
    p.stdout.close()
    assert p.stderr and p.stderr.read() == b""
    assert p.wait(60) == -signal.SIGPIPE
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which processes there are")
def test_killed(store, tmp_path):
    """When dsi is killed DuckDB does not go on, and nothing is left."""
    endless = "select sum(hash(a.range, b.range) % 2) from range(1000000) a, range(10000000) b"
    p = subprocess.Popen([dsi_program(), "sql", str(store), endless], env={**os.environ, "TMPDIR": str(tmp_path)})
    children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children")
    end = time.monotonic() + 60

    def soon(condition) -> None:
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.1)

    started: list[str] = []
    soon(lambda: started.extend(c for t in children.parent.parent.iterdir()
                                for c in (t / "children").read_text().split()) or started)
    time.sleep(2)  # the query runs
    p.kill()
    p.wait()
    soon(lambda: not pathlib.Path(f"/proc/{started[0]}").exists())
    assert not list(tmp_path.iterdir())
