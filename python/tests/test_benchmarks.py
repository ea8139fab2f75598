"""The pages of bench/baselines are what its newest results make of them."""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_pages_have_the_newest_results(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "bench")])
    from baselines import page

    monkeypatch.setattr(page, "_draw", lambda *_: None)  # matplotlib is not among what tests have
    saved = json.loads((ROOT / "bench" / "results" / "baselines.json").read_text())
    copies = [pathlib.Path(shutil.copy(p, tmp_path)) for p in (page.PAGE, page.SCORECARD)]
    page.fill(saved["result"], saved["machine"], page=copies[0], scorecard=copies[1])
    for of, copy in zip((page.PAGE, page.SCORECARD), copies):
        assert copy.read_text() == of.read_text(), f"{of.name}: fill it with --page-of bench/results/baselines.json"
