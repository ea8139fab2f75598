"""docs/reference/python.md is what the docstrings make of it."""

import importlib.util
import pathlib

import dsistore


def test_page_is_up_to_date():
    file = pathlib.Path(__file__).resolve().parents[1] / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", file)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    page = reference.page()
    assert page == reference.PAGE.read_text(), "run make reference"
    assert all(f"\n### dsistore.{name}\n" in page for name in dsistore.__all__)
