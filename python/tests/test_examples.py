"""examples/ run as a user runs them: what they print is looked at."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import pytest

import dsistore
from programs import TAGS, dsi_program, program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def example(name, *args, **environment):
    """What examples/NAME.py prints."""
    done = subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", *map(str, args)], capture_output=True,
                          text=True, timeout=600, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(name, *args):
    """What examples/NAME.py ends with, which is no traceback."""
    done = subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", *map(str, args)], capture_output=True,
                          text=True, timeout=600)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


@pytest.fixture
def other(tmp_path):
    """A store with a table that has other columns than the demo's."""
    arrow = pytest.importorskip("pyarrow")
    rows = arrow.table({"id": [1, 2, 3, 4], "visit": [1, 1, 2, 2], "bought": [1, 0, 1, 1], "paid": [0, 1, 0, 0],
                        "price": [0.5, 1.5, 2.5, 3.5]})
    dsistore.open(tmp_path / "other").ingest("t", rows)
    return tmp_path / "other"


def test_columns_of_another_table(other):
    """The examples name the demo's columns; parameters name others."""
    for name, *args in (("label_experiment", "--features", "price"), ("query",)):
        pytest.importorskip("duckdb" if name == "query" else "pyarrow")
        message = refused(name, other, "t", *args)
        assert "feature \"" in message and "--click" in message and "--conversion" in message
    out = example("label_experiment", other, "t", "--features", "price", "--key", "id", "--session", "visit", "--click",
                  "bought", "--conversion", "paid")
    assert number(r"the table +(\d+) of 4", out) == 3 and number(r"bought_converted +(\d+) of 4", out) == 1


def test_duckdb_is_asked_about_other_columns(other):
    pytest.importorskip("duckdb")
    out = example("query", other, "t", "--user", "visit", "--click", "bought", "--conversion", "paid")
    assert re.search(r" 2 .* 2 .* 0 ", out)


def test_without_dsi_no_row_is_deleted(other):
    assert "no program no/such" in refused("erase_users", other, "t", "--key", "visit", "--dsi", "no/such")
    assert len(dsistore.open(other).table("t")) == 4


def losses(store, table, *args):
    """{step: loss} of a run of examples/dlrm.py."""
    out = example("dlrm", store, table, "--log", "1", *args)
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([0-9.]+)", out)}


def check_run(tmp_path, store, table, *args, steps, stop, meanwhile=lambda: None):
    """An unbroken run with kjt, and one with ikjt that stops, and resumes after meanwhile: the same losses, and they
    fall."""
    args = (*args, "--epochs", 2)
    whole = losses(store, table, *args, "--steps", steps)
    assert list(whole) == list(range(1, steps + 1))
    values = list(whole.values())
    assert statistics.mean(values[-10:]) < 0.97 * statistics.mean(values[:10])
    checkpoint = tmp_path / "checkpoint"
    begun = losses(store, table, *args, "--output", "ikjt", "--steps", stop, "--checkpoint", checkpoint)
    meanwhile()
    resumed = losses(store, table, *args, "--output", "ikjt", "--steps", steps, "--resume", checkpoint)
    assert list(begun) + list(resumed) == list(whole)
    # The two forms add the same gradients in another order. Training amplifies the rounding, more on some processors
    # than on others.
    for step, loss in (begun | resumed).items():
        assert loss == pytest.approx(whole[step], rel=1e-3 if step <= 30 else 3e-2), step


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What make demo leaves."""
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain: the table of make demo was left out")
    path = tmp_path_factory.mktemp("demo")
    subprocess.run(["go", "run", "-tags", TAGS, "./bench/demo", "--rows", "10000", "--rounds", "1", "--dir", path],
                   cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def test_dlrm_on_the_table_of_make_demo(demo, tmp_path):
    pytest.importorskip("torchrec")
    store = shutil.copytree(demo / "store", tmp_path / "store")

    def ingest_more():  # resuming reads the snapshot of the checkpoint
        rows = dsistore.open(store).table("workload").scan(["@keys", "click", "user_dense_*"]).to_arrow()
        dsistore.open(store).ingest("workload", rows.slice(0, 100))
        assert len(dsistore.open(store).table("workload")) == 10_100

    check_run(tmp_path, store, "workload", "--features", "user_dense_*", "user_list_0000*", "user_history_0000*",
              "item_list_*", "--ids", "session_id", "user_id", "--batch-size", 500, steps=24, stop=20,
              meanwhile=ingest_more)  # it stops at the end of an epoch


def test_dlrm_on_movielens(tmp_path):
    pytest.importorskip("torchrec")
    data = pathlib.Path(os.environ.get("DSISTORE_TESTDATA") or ROOT.parent / "shared" / "testdata")
    source = data / "recsys" / "derived" / "ml-latest-small.session.parquet"
    if not source.exists():
        pytest.skip(f"no {source}: MovieLens was left out")
    dsistore.open(tmp_path).ingest("movielens", source, session_key="session_id", time_key="timestamp")
    check_run(
        tmp_path, tmp_path, "movielens", "--label", "label", "--features", "item_tags", "hist_item_ids", "u_*",
        "--ids", "item_id", "user_id", "--batch-size", 2048, steps=55, stop=30)  # an epoch is 49


def number(pattern, text):
    """The number that a pattern finds in a text."""
    found = re.search(pattern, text)
    assert found, text
    return int(found[1].replace(",", ""))


def test_a_label_experiment(demo, tmp_path):
    store = shutil.copytree(demo / "store", tmp_path / "store")
    rows = dsistore.open(store).table("workload").scan(["session_id", "click", "conversion"]).to_arrow().to_pylist()
    converted = {r["session_id"] for r in rows if r["conversion"] == 1}
    clicks = [r for r in rows if r["click"] == 1]
    out = example("label_experiment", store, "workload")
    assert number(r"the table +([\d,]+) of 10,000", out) == len(clicks)
    assert number(r"click_converted +([\d,]+) of 10,000", out) == sum(r["session_id"] in converted for r in clicks)
    assert number(r"rows, ([\d,]+) bytes more", out) * 50 < number(r"table is ([\d,]+) bytes", out)


def test_users_are_erased(demo, tmp_path):
    store = shutil.copytree(demo / "store", tmp_path / "store")
    before = dsistore.open(store).table("workload").scan(["user_id"]).to_arrow()["user_id"].to_pylist()
    users = set(list(dict.fromkeys(before))[:2])
    theirs = sum(u in users for u in before)
    out = example("erase_users", store, "workload", "--users", 2, "--dsi", dsi_program())
    assert number(r"2 users have ([\d,]+) rows", out) == theirs
    assert f"deleted: {theirs:,} rows; the newest snapshot has 0, the one before {theirs:,}" in out
    assert "none was found" in out and "erased: the table has 0 of their rows" in out
    after = dsistore.open(store).table("workload").scan(["user_id"]).to_arrow()["user_id"].to_pylist()
    assert sorted(after) == sorted(u for u in before if u not in users)


def test_duckdb_is_asked(demo):
    pytest.importorskip("duckdb")
    rows = dsistore.open(demo / "store").table("workload").scan(["user_id", "click"]).to_arrow().to_pylist()
    clicks = {}
    for r in rows:
        clicks[r["user_id"]] = clicks.get(r["user_id"], 0) + r["click"]
    first = sorted(clicks.items(), key=lambda x: (-x[1], x[0]))[0]
    assert re.search(rf" {first[0]} .* {first[1]} ", example("query", demo / "store", "workload"))


def test_the_notebook(demo, tmp_path):
    """Its cells run one after the other, those that plot only with matplotlib; it has pictures, and small ones."""
    text = (ROOT / "examples" / "notebook.ipynb").read_text()
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] for c in cells) and text.count("image/png") == 4 and len(text) < 300_000
    plots = importlib.util.find_spec("matplotlib") is not None
    code = "\n".join(c["source"] for c in cells if plots or "plot" not in c["metadata"].get("tags", []))
    store = shutil.copytree(demo / "store", tmp_path / "store")
    path = os.pathsep.join([*(os.path.dirname(program(p)) for p in ("dsi", "dsistat")), os.environ["PATH"]])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, cwd=tmp_path,
                          env={**os.environ, "PATH": path, "STORE": str(store), "TABLE": "workload",
                               "MPLBACKEND": "agg", "DSISTORE_USAGE": "on"})
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert "10,000 rows, 165 features" in out and "user_history" in out
    assert number(r"([\d,]+) raw bytes", out) > 20 * number(r"([\d,]+) stored bytes", out)
    assert 10 < number(r"(\d+) of 167 features were read", out) < 100
    assert "M rows/s shared" in out


def test_an_object_store(demo):
    serve = subprocess.Popen(["go", "run", "./internal/objectserver/serve", "tables"], cwd=ROOT, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        line = serve.stdout.readline()
        if not line:
            pytest.skip("no server of S3")
        args = ("object_store", "s3://tables/store", "ads", demo / "dump", "--session-key", "session_id",
                "--time-key", "event_time")
        out, rerun = (example(*args, **json.loads(line)) for _ in range(2))
    finally:
        serve.stdin.close()
        serve.wait()
    assert "ingested 10,000 rows" in out and "ingested before" in rerun
    assert number(r"first: 10,000 rows in [\d.]+ s; (\d+) requests", out) > 0
    assert "; 0 requests, 0 bytes from the store" in out.partition("again: 10,000 rows")[2]
