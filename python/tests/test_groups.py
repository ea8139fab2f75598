"""Deduplicated batches of partitions that group features differently, and lack some: each batch keeps the duplicates of its rows.

Rows are held against pyarrow reading the source, counts against the partitions read one by one.
"""

from __future__ import annotations

import pathlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import dsistore
from dsistore.torch import Batch, Shuffle

pytest.importorskip("torchrec")

from trainers import BUCKETS, bags  # noqa: E402

IDS = ["a", "b", "c", "d", "item", "e"]  # in an order that no day's groups have
SCORED = ["s", "w"]
SESSION, BATCH = 8, 64
SCORE = pa.list_(pa.struct([("id", pa.int64()), ("score", pa.float32())]))


@dataclass
class Day:
    """A partition: the features that change on the same rows, and those that it lacks."""

    name: str
    rows: int
    groups: list[list[str]]
    lacks: list[str]


# The oldest lacks some; each groups the others differently; the rows are whole batches.
DAYS = [
    Day("2026-11-01", 5 * BATCH, [["a", "e"], ["s"]], ["b", "c", "d", "w"]),
    Day("2026-11-02", 6 * BATCH, [["a", "b", "s"], ["c", "d", "e"], ["w"]], []),
    Day("2026-11-03", 4 * BATCH, [["a", "d"], ["b", "c", "w"], ["e", "s"]], []),
]


def make_day(day: Day, seed: int = 1) -> pa.Table:
    """Sessions whose features stay as they are, group by group, but for some rows; items differ in every row."""
    r = random.Random(f"{seed} {day.name}")
    columns: dict[str, list[Any]] = {k: [] for k in ("session", "row", "click", *IDS, *SCORED)}
    for i in range(day.rows):
        columns["session"].append(i // SESSION)
        columns["row"].append(int(day.name[-2:]) * 100_000 + i)
        columns["click"].append(i % 2)
        columns["item"].append([r.getrandbits(60) for _ in range(2)])
        for group in day.groups:
            new = i % SESSION == 0 or r.random() < 0.1
            for name in group:
                ids = [r.getrandbits(60) for _ in range(r.choice([0, 5, 20, 40]))] if new else columns[name][-1]
                if new and name in SCORED:
                    ids = [{"id": x, "score": r.random()} for x in ids]
                columns[name].append(None if new and r.random() < 0.1 else ids)
    lists = {k: pa.array(columns[k], SCORE if k in SCORED else pa.list_(pa.int64())) for k in (*IDS, *SCORED) if k not in day.lacks}
    return pa.table({"session": columns["session"], "row": columns["row"], "click": pa.array(columns["click"], pa.int8()), **lists})


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return ingested(tmp_path_factory.mktemp("groups"))


def ingested(path: pathlib.Path) -> pathlib.Path:
    """The days as a job lands them: an ingest each, so that the schema grows."""
    for day in DAYS:
        dump = path / "dump" / day.name / f"ds={day.name}"
        dump.mkdir(parents=True)
        pq.write_table(make_day(day), dump / "part.parquet")
        dsistore.open(path / "store").ingest("t", dump.parent, session_key="session", time_key="row")
    return path / "store"


@pytest.fixture(scope="module")
def want(uri: pathlib.Path) -> dict[int, dict[str, Any]]:
    """What pyarrow reads: rows by their number; a feature that a day lacks is null."""
    read = pa.concat_tables([pq.read_table(p, partitioning=None) for p in sorted(uri.parent.glob("dump/*/*/part.parquet"))], promote_options="default")
    return {row["row"]: row for row in read.to_pylist()}


@pytest.fixture
def table(uri: pathlib.Path) -> dsistore.Table:
    return dsistore.open(uri).table("t")


def features(kjt: Any, rows: int) -> Iterator[tuple[str, list[list[Any]], list[int]]]:
    """Name, lists (ids, or pairs of id and score) and inverse of each feature of a KJT, in either form."""
    lengths, values = kjt.lengths().tolist(), kjt.values().tolist()
    if kjt.weights_or_none() is not None:
        values = list(zip(values, kjt.weights().tolist()))
    inverse = {}
    if kjt.inverse_indices_or_none() is not None:
        names, matrix = kjt.inverse_indices()
        assert names == kjt.keys() and matrix.shape == (len(names), rows) and matrix.dtype == torch.int64
        inverse = dict(zip(names, matrix.tolist()))
    at = lists = 0
    for key, stride in zip(kjt.keys(), kjt.stride_per_key(), strict=True):
        out = []
        for n in lengths[lists: lists + stride]:
            out.append(values[at: at + n])
            at += n
        lists += stride
        yield key, out, inverse.get(key, list(range(rows)))
    assert lists == len(lengths) and at == len(values)


def check(batch: Batch, want: dict[int, dict[str, Any]]) -> None:
    """Every list of every row is the source's; keys are in the order of the request; each list is some row's."""
    rows = [want[i] for i in batch.keys["row"].tolist()]
    for kjt, names in ((batch.sparse_features, IDS), (batch.weighted_features, SCORED)):
        assert kjt.keys() == names
        for name, lists, inverse in features(kjt, batch.rows):
            assert len(inverse) == batch.rows and sorted(set(inverse)) == list(range(len(lists))), name
            for row, slot in zip(rows, inverse):
                source = row.get(name) or []
                if name in SCORED:
                    source = [(x["id"], torch.tensor(x["score"], dtype=torch.float32).item()) for x in source]
                assert lists[slot] == source, (name, row["row"])


def ids(batch: Batch) -> int:
    return len(batch.sparse_features.values()) + len(batch.weighted_features.values())


def slots(batch: Batch) -> int:
    return len(batch.sparse_features.lengths()) + len(batch.weighted_features.lengths())


def read(table: dsistore.Table, output: str, **options: Any) -> list[Batch]:
    return list(table.torch([*IDS, *SCORED, "row"], labels="click", output=output, **{"batch_size": BATCH, **options}))


def test_batches_keep_the_duplicates_of_their_rows(table, want):
    """What a batch holds of a partition is what it holds where that partition is read alone, whatever the others lack."""
    kjt, ikjt = read(table, "kjt"), read(table, "ikjt")
    alone = [b for day in DAYS for b in read(table, "ikjt", partitions=f"ds = '{day.name}'")]
    assert len(kjt) == len(ikjt) == len(alone) == 15
    ratios = []
    for a, b, c in zip(kjt, ikjt, alone, strict=True):
        check(a, want)
        check(b, want)
        ratios.append(ids(a) / ids(b))
        assert (ids(b), slots(b)) == (ids(c), slots(c)), (b.index, ratios[-1], ids(a) / ids(c))
    assert min(ratios) > 2, ratios


@pytest.mark.parametrize("options", [
    {"batch_size": 100}, {"batch_size": 1000}, {"shuffle": "session", "seed": 3}, {"shuffle": Shuffle("session", 64), "batch_size": 128},
    {"shuffle": "row", "batch_size": 200}, {"filter": "click = 1"}, {"filter": "session > 5", "shuffle": Shuffle("session", 8)},
], ids=str)
def test_batches_over_partitions(table, want, options):
    """A batch of rows of several partitions has each list of each feature once: as many as rows differ in the source."""
    for output in ("kjt", "ikjt"):
        data = table.torch([*IDS, *SCORED, "row"], labels="click", output=output, **{"batch_size": BATCH, **options})
        rows = given = lists = 0
        for batch in data:
            check(batch, want)
            rows += batch.rows
            given += batch.rows * (len(IDS) + len(SCORED))
            lists += slots(batch)
            if output == "ikjt" and options.get("shuffle") != "row":
                assert ids(batch) < 0.65 * sum(
                    len(want[i].get(name) or []) for i in batch.keys["row"].tolist() for name in (*IDS, *SCORED))
        assert rows == (len(want) if "filter" not in options else sum(
            r["click"] == 1 if options["filter"] == "click = 1" else r["session"] > 5 for r in want.values()))
        assert data.stats().emitted_factor == given / lists
