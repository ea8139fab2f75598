"""A CSV file with names is ingested without a mapping file, and its values are those that pyarrow reads."""

from __future__ import annotations

import os
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv

import dsistore

ROOT = pathlib.Path(__file__).resolve().parents[2]


def samples() -> list[pathlib.Path]:
    """The files of the sample data sets, one for each set of files alike; none where they are not there."""
    data = pathlib.Path(os.environ.get("DSISTORE_TESTDATA") or ROOT.parent / "shared" / "testdata")
    found = sorted(p for suffix in ("csv", "tsv") for p in data.rglob(f"*.{suffix}") if p.stat().st_size < 20e6)
    by_day = [p for p in found if p.parent.name == "by-day"]
    return [p for p in found if p not in by_day[1:]]


def test_an_ingest_says_what_was_inferred(tmp_path):
    (tmp_path / "a.csv").write_text("id,zip,x\n1,00123,0.5\n2,,\n")
    report = dsistore.open(tmp_path / "store").ingest("t", tmp_path / "a.csv")
    said = report["types_inferred"][0]
    assert (said["format"], said["rows"], said["layout"]) == ("text", 2, "commas")
    assert {c["name"]: c["type"] for c in said["columns"]} == {"id": "int64", "zip": "string", "x": "float64"}
    with pytest.raises(dsistore.DsistoreError, match="looks like values, not names"):
        (tmp_path / "b.csv").write_text("1,x\n2,y\n")
        dsistore.open(tmp_path / "store").ingest("u", tmp_path / "b.csv")


@pytest.mark.parametrize("path", samples() or [None], ids=lambda p: p and "/".join(p.parts[-3:]))
def test_values_are_those_of_pyarrow(tmp_path, path):
    if path is None:
        pytest.skip("the sample data sets are not here: DSISTORE_TESTDATA may name them")
    try:
        dsistore.open(tmp_path / "store").ingest("t", path)
    except dsistore.DsistoreError as e:
        assert "looks like values, not names" in str(e) or "skip_lines" in str(e), e
        return
    table = dsistore.open(tmp_path / "store").table("t")
    ours = pa.RecordBatchReader.from_stream(table.arrow("@all")).read_all()
    partitions = {f.name for f in table.features("@partitions")} if "=" in str(path) else set()
    delimiter = "\t" if path.suffix == ".tsv" else ","
    names = [n for n in ours.column_names if n not in partitions]
    types = {n: ours.schema.field(n).type for n in names}
    # What pyarrow reads as these types, or as text and then casts, where its own parser knows fewer spellings.
    theirs = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                          convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=[""],
                                                             quoted_strings_can_be_null=False,
                                                             column_types={n: pa.string() for n in names}))
    if theirs.column_names[0] == "":
        theirs = theirs.rename_columns(["_c0", *theirs.column_names[1:]])
    for name in names:
        want = theirs[name]
        if not pa.types.is_string(types[name]):
            want = pc.utf8_trim_whitespace(want.cast(pa.string()))
            if pa.types.is_timestamp(types[name]):
                want = pc.replace_substring_regex(want, r"\+00:00$", "")
        want = want.cast(types[name])
        assert ours[name].combine_chunks().equals(want.combine_chunks()), (name, types[name])
