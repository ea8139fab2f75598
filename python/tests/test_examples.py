"""examples/ run as a user runs them: losses are read from what they print."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import pytest

import dsistore

pytest.importorskip("torchrec")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def losses(store, table, *args):
    """{step: loss} of a run of examples/dlrm.py."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "dlrm.py", store, table, "--log", "1", *map(str, args)],
        capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([0-9.]+)", done.stdout)}


def check_run(tmp_path, store, table, *args, steps, stop):
    """An unbroken run with kjt, and one with ikjt that stops and resumes: the same losses, and they fall."""
    args = (*args, "--epochs", 2)
    whole = losses(store, table, *args, "--steps", steps)
    assert list(whole) == list(range(1, steps + 1))
    values = list(whole.values())
    assert statistics.mean(values[-10:]) < 0.97 * statistics.mean(values[:10])
    checkpoint = tmp_path / "checkpoint"
    begun = losses(store, table, *args, "--output", "ikjt", "--steps", stop, "--checkpoint", checkpoint)
    resumed = losses(store, table, *args, "--output", "ikjt", "--steps", steps, "--resume", checkpoint)
    assert list(begun) + list(resumed) == list(whole)
    # The two forms add the same gradients in another order. Training amplifies the rounding, more on some processors
    # than on others.
    for step, loss in (begun | resumed).items():
        assert loss == pytest.approx(whole[step], rel=1e-3 if step <= 30 else 3e-2), step


def test_dlrm_on_the_table_of_make_demo(tmp_path):
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain: the table of make demo was left out")
    # With the tags of make test, so that what that compiled is linked.
    subprocess.run([
        "go", "run", "-tags", "invariants,pebblegozstd,grpcnotrace", "./bench/demo", "--rows", "10000", "--rounds", "1",
        "--dir", tmp_path
    ], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check_run(tmp_path, tmp_path / "store", "workload", "--features", "user_dense_*", "user_list_0000*",
              "user_history_0000*", "item_list_*", "--batch-size", 500, steps=24,
              stop=20)  # it stops at the end of an epoch


def test_dlrm_on_movielens(tmp_path):
    data = pathlib.Path(os.environ.get("DSISTORE_TESTDATA") or ROOT.parent / "shared" / "testdata")
    source = data / "recsys" / "derived" / "ml-latest-small.session.parquet"
    if not source.exists():
        pytest.skip(f"no {source}: MovieLens was left out")
    dsistore.open(tmp_path).ingest("movielens", source, session_key="session_id", time_key="timestamp")
    check_run(
        tmp_path, tmp_path, "movielens", "--label", "label", "--features", "item_tags", "hist_item_ids", "u_*",
        "--ids", "item_id", "user_id", "--batch-size", 2048, steps=55, stop=30)  # an epoch is 49
