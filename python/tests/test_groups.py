"""Deduplicated batches of partitions that group features differently, and lack some: each batch keeps the duplicates of
its rows.

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
from dsistore import Shuffle
from dsistore.torch import Batch

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
    lists = {
        k: pa.array(columns[k], SCORE if k in SCORED else pa.list_(pa.int64()))
        for k in (*IDS, *SCORED) if k not in day.lacks
    }
    return pa.table(
        {"session": columns["session"], "row": columns["row"], "click": pa.array(columns["click"], pa.int8()), **lists})


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
    read = pa.concat_tables(
        [pq.read_table(p, partitioning=None) for p in sorted(uri.parent.glob("dump/*/*/part.parquet"))],
        promote_options="default")
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
    """What a batch holds of a partition is what it holds where that partition is read alone, whatever the others
    lack."""
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
    {"batch_size": 100}, {"batch_size": 1000}, {"shuffle": "session", "seed": 3},
    {"shuffle": Shuffle("session", 64), "batch_size": 128},
    {"shuffle": "row", "batch_size": 200}, {"filter": "click = 1"},
    {"filter": "session > 5", "shuffle": Shuffle("session", 8)},
], ids=str)
def test_batches_over_partitions(table, want, options):
    """A batch of rows of several partitions has each list of each feature once: as many as rows differ in the
    source."""
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


def test_what_a_partition_lacks_is_one_slot(table):
    """In a batch of such rows alone, and in one that has others too, whatever stripes they are of."""
    for options in ({"partitions": "ds = '2026-11-01'"}, {"batch_size": 1000}):
        for batch in read(table, "ikjt", **options):
            size = dict(zip([*batch.sparse.keys, *batch.weighted.keys], [*batch.sparse.sizes, *batch.weighted.sizes]))
            [lacking] = [g for g in batch.groups if "b" in g.keys] if "partitions" in options else [None]
            if lacking is not None:
                assert lacking.keys == ["b", "c", "d", "w"] and lacking.slots == 1 and size["w"] == 1
            else:  # a day's rows are one slot more than those of the others
                alone = [
                    b for day in DAYS[1:] for b in read(table, "ikjt", partitions=f"ds = '{day.name}'", batch_size=1000)
                ]
                for name in ("b", "c", "d"):
                    assert size[name] == 1 + sum(b.sparse.sizes[IDS.index(name)] for b in alone), name


@pytest.mark.parametrize("options", [
    {}, {"batch_size": 100}, {"shuffle": Shuffle("session", 64)}, {"filter": "click = 1", "batch_size": 200}], ids=str)
def test_bags_over_partitions(table, options):
    """A model makes the same of both outputs, weighted features too, with the same keys in each batch."""
    hashes = {k: f"hash({BUCKETS})" for k in (*IDS, *SCORED)}
    model, weighted = bags(IDS), bags(SCORED, is_weighted=True)
    pooled: dict[str, list[torch.Tensor]] = {}
    for output in ("kjt", "ikjt"):
        pooled[output] = []
        for batch in read(table, output, transforms=hashes, **options):
            assert batch.sparse_features.keys() == IDS and batch.weighted_features.keys() == SCORED
            assert batch.sparse_features.variable_stride_per_key() == (output == "ikjt")
            pooled[output] += [model(batch.sparse_features).values(), weighted(batch.weighted_features).values()]
    for a, b in zip(pooled["kjt"], pooled["ikjt"], strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("options", [{}, {"batch_size": 150}, {"shuffle": "session", "batch_size": 100}], ids=str)
def test_overlays_on_some_partitions(tmp_path, want, options):
    """One gives the oldest day a feature that it lacks, another replaces two features of one group in half of the
    newest day's sessions."""
    uri = ingested(tmp_path)
    added = {i: [i, i + i // SESSION] for i, row in want.items() if i < 200_000}
    replaced = {i: [i // SESSION] * 3 for i, row in want.items() if i > 300_000 and row["session"] % 2}
    table = dsistore.open(uri).table("t")
    lists = pa.list_(pa.int64())
    table.overlay("added", pa.table({"row": list(added), "c": pa.array(added.values(), lists)}), key="row")
    table.overlay("replaced", pa.table({"row": list(replaced), **{k: pa.array(replaced.values(), lists)
                                                                  for k in "ad"}}), key="row")
    rows = {
        i: {
            **row, **({"c": added[i]} if i in added else {}),
            **({"a": replaced[i], "d": replaced[i]} if i in replaced else {})
        }
        for i, row in want.items()
    }
    table = dsistore.open(uri).table("t")
    sums = {}
    for output in ("kjt", "ikjt"):
        batches = read(table, output, overlay=["added", "replaced"], **options)
        for batch in batches:
            check(batch, rows)
        sums[output] = sum(map(ids, batches))
    assert sums["kjt"] > 2 * sums["ikjt"]


def test_presence_over_partitions(table, want):
    """Masks are one per list, in both outputs."""
    for output in ("kjt", "ikjt"):
        for batch in read(table, output, presence=True, batch_size=100):
            rows = [want[i] for i in batch.keys["row"].tolist()]
            for j in (batch.sparse, batch.weighted):
                for k, name in enumerate(j.keys):
                    present = j.feature(name).present
                    if output == "ikjt" and j.groups[k] < len(batch.groups):
                        present = present[batch.groups[j.groups[k]].inverse]
                    assert present.tolist() == [row.get(name) is not None for row in rows], name


def test_groups_of_a_batch_that_travels(table):
    """Pickled or moved, it makes the same KJTs."""
    import pickle

    for batch in read(table, "ikjt", batch_size=100, expand="item"):
        other = pickle.loads(pickle.dumps(batch)).to("cpu")
        meta = batch.to("meta")
        for name in ("sparse_features", "dedup_sparse_features", "expanded_sparse_features", "weighted_features"):
            a, b, c = getattr(batch, name), getattr(other, name), getattr(meta, name)
            assert a.keys() == b.keys() == c.keys() and a.stride_per_key() == b.stride_per_key() == c.stride_per_key()
            assert torch.equal(a.values(), b.values()) and torch.equal(a.lengths(), b.lengths())
            if a.variable_stride_per_key():
                assert torch.equal(a.inverse_indices()[1], b.inverse_indices()[1])
                assert c.inverse_indices()[1].shape == a.inverse_indices()[1].shape
        assert batch.sparse_features.keys() == IDS and batch.expanded_sparse_features.keys() == ["item"]
