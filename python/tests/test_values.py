"""Random tables, read in every way, against pyarrow's reading of the same Parquet files and a model in plain Python.

The model shares nothing with the package: rows are dictionaries, found by their row_id.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pathlib
import random
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import xxhash

import dsistore
from dsistore import Shuffle
from dsistore.torch import Batch
from test_numpy import check as check_arrays

# More seeds than a test run has time for: DSISTORE_SEEDS=200 python -m pytest python/tests/test_values.py
SEEDS = range(int(os.environ.get("DSISTORE_SEEDS", 10)))

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float32(), pa.float64()]
TIMES = [pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.duration("ms")]
ODD_FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, 1e-300, 1 / 3]


@dataclass
class Column:
    """A column of the source: what it is made of, and what the model says a batch shall have of it."""

    name: str
    kind: str  # dense, sparse, floats, weighted, embedding, string, bytes
    type: pa.DataType  # of one number: the elements of lists, the ids of weighted ones
    score: pa.DataType | None = None
    dim: int = 0
    role: str = "feature"
    nulls: float = 0.2

    @property
    def arrow(self) -> pa.DataType:
        if self.kind in ("sparse", "floats"):
            return pa.list_(self.type)
        if self.kind == "weighted":
            return pa.list_(pa.struct([("id", self.type), ("score", self.score)]))
        return pa.list_(self.type, self.dim) if self.kind == "embedding" else self.type


def number(r: random.Random, t: pa.DataType) -> Any:
    if pa.types.is_boolean(t):
        return r.random() < 0.5
    if pa.types.is_floating(t):
        x = r.choice(ODD_FLOATS) if r.random() < 0.2 else r.gauss(0, 100)
        return float(np.float32(x).astype(
            np.float64)) if t == pa.float32() and math.isfinite(x) and abs(x) < 3e38 else x
    bits = 8 * np.dtype(t.to_pandas_dtype()).itemsize if pa.types.is_integer(t) else 32 if t == pa.date32() else 62
    if pa.types.is_unsigned_integer(t):
        return r.choice([0, 2**bits - 1, r.getrandbits(bits), r.randrange(100)])
    low = -(2 ** (bits - 1))
    return r.choice([low, -low - 1, r.randrange(low, -low), r.randrange(-3, 100)])


def value(r: random.Random, c: Column) -> Any:
    if r.random() < c.nulls:
        return None
    if c.kind == "dense":
        return number(r, c.type)
    if c.kind == "embedding":
        return [number(r, c.type) for _ in range(c.dim)]
    if c.kind == "string":
        return r.choice(["", "a", "größe", "x" * 300, f"v{r.getrandbits(30)}"])
    if c.kind == "bytes":
        return r.choice([b"", b"\0", b"\xff" * 70, r.randbytes(9)])
    n = r.choice([0, 1, 2, 5, r.randrange(200)]) if r.random() < 0.3 else r.randrange(4)
    if c.kind == "weighted":
        return [{"id": number(r, c.type), "score": number(r, c.score)} for _ in range(n)]
    return [number(r, c.type) for _ in range(n)]


def schema(r: random.Random) -> list[Column]:
    """Every kind, with types drawn at random; some kinds may be missing."""
    out = [Column("row_id", "dense", pa.int64(), role="request_key", nulls=0)]
    for i, t in enumerate([pa.bool_(), *INTS, *FLOATS, *TIMES]):
        if r.random() < 0.6:
            out.append(Column(f"dense_{i}", "dense", t, nulls=r.choice([0, 0.2, 0.9, 1])))
    for i, t in enumerate(INTS):
        if r.random() < 0.6:
            out.append(Column(f"sparse_{i}", "sparse", t, nulls=r.choice([0, 0.3, 1])))
    for i, t in enumerate(FLOATS):
        if r.random() < 0.7:
            out.append(Column(f"floats_{i}", "floats", t))
    for i in range(r.randrange(4)):
        out.append(
            Column(f"weighted_{i}", "weighted", r.choice(INTS), score=r.choice(FLOATS), nulls=r.choice([0, 0.3, 1])))
    for i, t in enumerate(FLOATS):
        if r.random() < 0.7:
            out.append(Column(f"embedding_{i}", "embedding", t, dim=r.randrange(1, 6), nulls=r.choice([0, 0.3])))
    for i in range(r.randrange(3)):
        out.append(Column(f"label_{i}", "dense", r.choice([*INTS, *FLOATS, pa.bool_()]), role="label"))
    if r.random() < 0.6:
        out.append(Column("session", "dense", r.choice(INTS), role="session_key", nulls=r.choice([0, 0.1])))
    elif r.random() < 0.5:
        out.append(Column("session", *r.choice([("string", pa.string()), ("bytes", pa.binary())]), role="session_key"))
    if r.random() < 0.7:
        out.append(Column("user", *r.choice([("dense", pa.uint64()), ("dense", pa.int64()), ("string", pa.string()),
                                             ("bytes", pa.binary()), ("dense", pa.float64()), ("dense", pa.bool_())]),
                          role="user_key", nulls=r.choice([0, 0.3, 1])))
    if r.random() < 0.7:
        out.append(Column("time", "dense", r.choice([pa.int64(), pa.timestamp("us"), pa.uint32()]), role="time_key"))
    out.append(Column("text", "string", pa.string()))
    return out


def integers(a: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as the numbers that are stored."""
    if a.type in TIMES:
        return a.cast(pa.int32()).cast(pa.int64()) if a.type == pa.date32() else a.cast(pa.int64())
    return a


@dataclass
class Case:
    """A table in a store, and its rows as pyarrow reads them."""

    store: dsistore.Store
    columns: dict[str, Column]
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # row ids as they were written, partition after partition

    @property
    def sorted(self) -> bool:
        return "session" in self.columns

    def table(self) -> dsistore.Table:
        return self.store.table("t")

    def load(self, file: pathlib.Path, partition: str) -> None:
        t = pq.read_table(file, partitioning=None)
        names = t.column_names
        for row in zip(*(integers(t[n]).to_pylist() for n in names)):
            got = dict(zip(names, row)) | {"ds": partition}
            self.rows[got["row_id"]] = got
            self.order.append(got["row_id"])


def make_case(path: pathlib.Path, seed: int, rows: int | None = None) -> Case:
    r = random.Random(seed)
    columns = schema(r)
    case = Case(dsistore.open(path / "store"), {c.name: c for c in columns})
    if rows is None:
        rows = r.choice([1, 2, 63, 64, 65, 600, 1200])
    partitions = sorted(r.sample(["a", "b=c", "d e"], r.randrange(1, 4)))
    mapping = path / "mapping.json"
    mapping.write_text(json.dumps({"columns": {c.name: {"role": c.role} for c in columns if c.role != "feature"}}))
    ids = list(range(rows))
    r.shuffle(ids)
    dumps = []
    for i, name in enumerate(partitions):
        own = ids[i::len(partitions)]
        if not own and rows:
            continue
        data: dict[str, list[Any]] = {c.name: [] for c in columns}
        for n, id in enumerate(own):
            for c in columns:
                # What rows of a session share is shared, so that there is something to deduplicate.
                again = n % 5 and c.name != "row_id" and r.random() < 0.8
                data[c.name].append(data[c.name][-1] if again else id if c.name == "row_id" else value(r, c))
        file = path / "dump" / f"ds={name.replace('=', '%3D').replace(' ', '%20')}" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        arrays = {c.name: pa.array(data[c.name], c.arrow) for c in columns}
        pq.write_table(pa.table(arrays), file)
        case.load(file, name)
        dumps.append(file)
    case.store.ingest("t", path / "dump", mapping=mapping)
    return case


# The model: what a batch shall hold of a source's value.

def float32(x: Any, t: pa.DataType) -> np.float32:
    """The nearest float32; null is 0."""
    if x is None:
        return np.float32(0)
    with np.errstate(over="ignore"):
        return np.array(x, np.float64 if pa.types.is_floating(t) else np.int64 if x is True or x is False or x < 2**63
                        else np.uint64).astype(np.float32)[()]


def held(x: Any, c: Column) -> bool:
    """Whether float32 holds a value of integers, None among them."""
    if pa.types.is_floating(c.type) or c.kind not in ("dense", "embedding"):
        return True
    return all(v is None or float(np.float32(v)) == v for v in (x if isinstance(x, list) else [x]))


def same(got: Any, want: Any) -> bool:
    """Equal as floats with NaN and the sign of zero."""
    a, b = np.asarray(got, np.float32), np.asarray(want, np.float32)
    return a.shape == b.shape and bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)))


def close(got: Any, want: Any) -> bool:
    """Equal to a unit in the last place."""
    return np.shape(got) == np.shape(want) and np.allclose(np.asarray(got), np.asarray(want), rtol=2**-23, atol=0,
                                                           equal_nan=True)


def int64(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


@dataclass
class Lists:
    """The lists of one feature in a batch, a row each."""

    values: list[list[Any]]
    weights: list[list[float]] | None
    present: list[bool] | None


def lists(batch: Batch) -> dict[str, tuple[str, Lists]]:
    """{feature: (part, its lists)}, deduplicated ones expanded by their inverse."""
    out: dict[str, tuple[str, Lists]] = {}

    groups = [g.inverse.tolist() for g in batch.groups]
    for g in batch.groups:
        assert g.inverse.dtype == torch.int32 and g.inverse.shape == (batch.rows,)
        assert sorted(set(g.inverse.tolist())) == list(range(g.slots))
    for part in ("sparse", "weighted", "floats"):
        j = getattr(batch, part)
        partial = j.starts is not None
        assert j.lengths.dtype == j.offsets.dtype == torch.int32
        assert j.lengths.shape == (sum(j.sizes),) and j.values.shape == (sum(j.counts),)
        assert sum(j.totals) == j.lengths.sum() >= sum(j.counts) and (partial or j.totals == j.counts)
        if partial:
            assert len(j.offsets) == 0 and j.starts.dtype == torch.int32 and j.starts.shape == j.lengths.shape
            at = j.starts.tolist()
        else:
            assert j.offsets.shape == (sum(j.sizes) + 1,)
            assert j.offsets[0] == 0 and torch.equal(j.offsets[1:] - j.offsets[:-1], j.lengths)
            at = j.offsets.tolist()
        assert j.values.dtype == (torch.float32 if part == "floats" else torch.int64)
        if part == "weighted" and j.keys:
            assert j.weights.dtype == torch.float32 and j.weights.shape == j.values.shape
        else:
            assert j.weights is None
        values, lengths = j.values.tolist(), j.lengths.tolist()
        weights = j.weights.tolist() if j.weights is not None else None
        first = 0
        for k, (key, n) in enumerate(zip(j.keys, j.sizes, strict=True)):
            group = len(groups) if j.groups is None else int(j.groups[k])
            inverse = groups[group] if group < len(groups) else list(range(batch.rows))
            assert n == max(inverse) + 1 and (group == len(groups) or key in batch.groups[group].keys)
            spans = [(at[first + s], at[first + s] + lengths[first + s]) for s in inverse]
            present = None if j.present is None else j.present[first: first + n].tolist()
            first += n
            assert key not in out
            out[key] = part, Lists(
                [values[a:b] for a, b in spans], [weights[a:b] for a, b in spans] if weights is not None else None,
                [present[s] for s in inverse] if present is not None else None)
    return out


def check(case: Case, batch: Batch, columns: list[Column], labels: list[str], presence: bool,
          changed: Mapping[str, tuple[Column, Callable[[Any], Any]]] = {}, approximate: Collection[str] = (),
          integers: Collection[str] = ()) -> list[int]:
    """Compares a batch with the rows of its ids, which it returns.

    changed: what transforms made of features, as columns and functions of the source's value; approximate: those of
    them that need to be equal to a unit in the last place only; integers: those that are asked for so.
    """
    ids = batch.keys["row_id"].tolist()
    rows = [case.rows[i] for i in ids]
    got = lists(batch)
    names: dict[str, list[str]] = {"dense": [], "labels": [], "embeddings": [], "lists": [], "keys": []}
    for source in columns:
        c, f = changed.get(source.name, (source, lambda x: x))
        want = [f(row[c.name]) for row in rows]
        if c.name in integers:
            numbers = batch.integers[c.name]
            assert numbers.dtype == (torch.uint64 if c.type == pa.uint64() else torch.int64), c
            assert numbers.tolist() == [int(x or 0) for x in want], c
            assert batch.integers_present[c.name].tolist() == [x is not None for x in want
                                                               ] if presence else not batch.integers_present
            continue
        if c.name == "ds" or c.role.endswith("key") or c.kind in ("string", "bytes"):
            names["keys"].append(c.name)
            check_key(batch.keys[c.name], want, c)
            continue
        is_present = [x is not None for x in want]
        if c.kind == "dense":
            part = "labels" if c.name in labels else "dense"
            names[part].append(c.name)
            matrix, order, mask = ((batch.labels, batch.label_names, batch.labels_present) if part == "labels" else
                                   (batch.dense, batch.dense_names, batch.dense_present))
            i = order.index(c.name)
            equal = close if c.name in approximate else same
            assert equal(matrix[:, i], [float32(x, c.type) for x in want]), (c, want)
            if presence:
                assert mask is not None and mask.dtype == torch.bool and mask.shape == matrix.shape
                assert mask[:, i].tolist() == is_present, c
            else:
                assert mask is None
        elif c.kind == "embedding":
            names["embeddings"].append(c.name)
            e = batch.embeddings[c.name]
            assert e.dtype == torch.float32 and e.shape == (batch.rows, c.dim)
            equal = close if c.name in approximate else same
            assert equal(e, [[float32(v, c.type) for v in (x or [None] * c.dim)] for x in want]), c
            assert (batch.embeddings_present[c.name].tolist() if presence else None) == (is_present
                                                                                         if presence else None)
        else:
            names["lists"].append(c.name)
            part, have = got[c.name]
            assert part == c.kind, c
            assert have.present == (is_present if presence else None), c
            for x, v, i in zip(want, have.values, range(len(want))):
                if c.kind == "floats":
                    equal = close if c.name in approximate else same
                    assert equal(v, [float32(y, c.type) for y in x or []]), (c, x, v)
                elif c.kind == "sparse":
                    assert v == [int64(y) for y in x or []], c
                else:
                    assert v == [int64(y["id"]) for y in x or []], c
                    assert same(have.weights[i], [float32(y["score"], c.score) for y in x or []]), c
    assert sorted(batch.dense_names) == sorted(names["dense"]) and batch.dense.shape == (len(ids), len(names["dense"]))
    assert sorted(batch.label_names) == sorted(names["labels"]) and batch.labels.shape == (len(ids), len(
        names["labels"]))
    assert set(batch.embeddings) == set(names["embeddings"]) and set(got) == set(names["lists"])
    assert set(batch.integers) == set(integers)
    assert set(batch.keys) == set(names["keys"]) and batch.dense.dtype == batch.labels.dtype == torch.float32
    return ids


def check_key(got: Any, want: list[Any], c: Column) -> None:
    """A tensor where all are numbers, else a list with None for null."""
    if c.kind in ("string", "bytes"):
        assert got == want, c
        return
    if any(x is None for x in want):
        assert isinstance(got, list), c
    else:
        assert isinstance(got, torch.Tensor), c
        assert got.dtype == (torch.uint64 if c.type == pa.uint64() else torch.float32 if c.type == pa.float32() else
                             torch.float64 if c.type == pa.float64() else torch.int64), c
        got = got.tolist()
    assert len(got) == len(want)
    assert all((x is None) == (y is None) and (x == y or x != x and y != y) for x, y in zip(got, want)), (c, got, want)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Case]:
    made: dict[int, Case] = {}

    def case(seed: int) -> Case:
        if seed not in made:
            made[seed] = make_case(tmp_path_factory.mktemp(f"seed{seed}"), seed)
        return made[seed]

    return case


DS = Column("ds", "string", pa.string(), role="partition key")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_value_of_a_random_table(cases, seed):
    case = cases(seed)
    r = random.Random(seed + 1000)
    for output in ("kjt", "ikjt", "partial"):
        chosen = [c for c in [*case.columns.values(), DS] if r.random() < 0.8 or c.name == "row_id"]
        numbers = [c for c in chosen if c.kind == "dense" and not c.role.endswith("key")]
        inexact = [c.name for c in numbers if not all(held(row[c.name], c) for row in case.rows.values())]
        integers = inexact + [
            c.name for c in numbers if not pa.types.is_floating(c.type) and c.name not in inexact and r.random() < 0.2
        ]
        labels = [c.name for c in numbers if c.name not in integers and (c.role == "label" or r.random() < 0.2)]
        if inexact and r.random() < 0.5:
            with pytest.raises(dsistore.UsageError, match="float32") as e:
                list(case.table().torch([c.name for c in chosen], batch_size=len(case.rows)))
            assert all(f'"{name}" has ' in str(e.value) for name in inexact)
        size = r.choice([1, 7, 300, len(case.rows) +
                         1]) if len(case.rows) < 200 else r.choice([7, 300, len(case.rows) + 1])
        unit = r.choice([None, "row"] + ["session"] * case.sorted)
        presence, drop_last = r.random() < 0.5, r.random() < 0.3
        some = r.choice([None, ["a"], ["a", "d e"]])
        where = None if some is None else "ds IN (" + ", ".join(f"'{s}'" for s in some) + ")"
        options: dict[str, Any] = dict(
            labels=labels, integers=integers, batch_size=size, presence=presence, drop_last=drop_last, partitions=where,
            shuffle=None if unit is None else Shuffle(unit, r.choice([1, 3, 16])), seed=r.getrandbits(30))
        features = [c.name for c in chosen]
        data = case.table().torch(features, output=output, **options)
        arrays = case.table().numpy(features, dedup={"kjt": False, "ikjt": True}.get(output, output), **options)
        want = [i for i in case.order if some is None or case.rows[i]["ds"] in some]
        for epoch in range(2 if unit else 1):
            got: list[int] = []
            sizes = []
            for batch, same_as_arrays in zip(data, arrays, strict=True):
                check_arrays(same_as_arrays, batch)
                assert batch.epoch == epoch and batch.index == len(sizes)
                got += check(case, batch, chosen, labels, presence, integers=integers)
                sizes.append(batch.rows)
            full = len(want) // size
            rest = [] if drop_last or len(want) % size == 0 else [len(want) % size]
            assert sizes == [size] * full + rest and len(data) == len(sizes)
            if not (unit or case.sorted):
                assert got == want[: sum(sizes)]
            assert len(set(got)) == len(got) == sum(sizes) and set(got) <= set(want)


# The model of transforms: docs/reference/transforms.md.

# its text, the column that it gives, what it does to a value that is not null
Step = tuple[str, Column, Callable[[Any], Any]]


def each(c: Column, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """f on every number of a value: ids of weighted lists, whose scores it leaves."""
    if c.kind == "dense":
        return f
    if c.kind == "weighted":
        return lambda x: [{"id": f(e["id"]), "score": e["score"]} for e in x]
    return lambda x: [f(v) for v in x]


def retyped(c: Column, t: pa.DataType) -> Column:
    kind = c.kind
    if kind in ("sparse", "floats"):
        kind = "floats" if pa.types.is_floating(t) else "sparse"
    return replace(c, kind=kind, type=t)


def bounds(t: pa.DataType) -> tuple[int, int]:
    info = np.iinfo(t.to_pandas_dtype())
    return int(info.min), int(info.max)


def cast_to(t: pa.DataType) -> Callable[[Any], Any]:
    """Towards zero and to the nearest end; NaN is 0, and true."""
    def cast(x: Any) -> Any:
        if pa.types.is_boolean(t):
            return x != 0
        if pa.types.is_floating(t):
            return float(x) if t == pa.float64() else float(
                float32(x,
                        pa.float64() if isinstance(x, float) else pa.int64()))
        if isinstance(x, float):
            if x != x:
                return 0
            if math.isinf(x):
                return bounds(t)[x > 0]
        return min(max(int(x), bounds(t)[0]), bounds(t)[1])

    return cast


def log1p(x: Any) -> float:
    with np.errstate(all="ignore"):
        return float(np.log1p(np.float64(x)))


def step(r: random.Random, c: Column) -> Step | None:
    """A step that makes sense of a column, or None."""
    ints = pa.types.is_integer(c.type)
    if c.kind == "string" or c.kind == "bytes":
        n, seed = r.choice([1000, 2**40]), r.randrange(3)
        data = (lambda x: x.encode()) if c.kind == "string" else (lambda x: x)
        return (f"hash({n}, seed={seed})", replace(c, kind="dense", type=pa.int64()),
                lambda x: xxhash.xxh64_intdigest(data(x), seed=seed) % n)
    name = r.choice(
        ["first", "mod", "hash", "clamp", "log1p", "bucketize", "cast", "list", "scores.clamp", "scores.cast"])
    if name == "first" and c.kind in ("sparse", "floats", "weighted"):
        n = r.randrange(1, 5)
        return f"first({n})", c, lambda x: x[:n]
    if name == "mod" and ints:
        n = r.choice([7, 1000, 2**40])
        signed = pa.types.is_signed_integer(c.type)
        t = pa.int64() if signed and n - 1 > bounds(c.type)[1] else c.type
        return f"mod({n})", retyped(c, t), each(c, lambda x: x % n)
    if name == "hash" and ints:
        n = r.choice([10, 2**31, 2**50])
        return f"hash({n})", retyped(c, pa.int64()), each(
            c, lambda x: xxhash.xxh64_intdigest(struct.pack("<q", int64(x))) % n)
    if name == "clamp" and c.kind != "string":
        lo, hi = r.choice([(-5, 50), (0, 1), (-math.inf, 3), (10, math.inf)])
        return f"clamp({lo}, {hi})", c, each(c, lambda x: lo_of(c, lo) if x < lo else hi_of(c, hi) if x > hi else x)
    if name == "log1p" and c.kind != "weighted":
        t = pa.float64() if c.type == pa.float64() else pa.float32()
        return "log1p", retyped(c, t), each(c, log1p)
    if name == "bucketize" and c.kind in ("dense", "sparse", "floats", "weighted"):
        borders = [-2.5, 0, 0.5, 40]
        return ("bucketize(-2.5, 0, 0.5, 40)", retyped(c, pa.int32()),
                each(c, lambda x: 4 if x != x else sum(b < x for b in borders)))
    if name == "cast" and c.kind in ("dense", "sparse", "floats", "weighted"):
        targets = INTS if c.kind == "weighted" else [*INTS, *FLOATS] + [pa.bool_()] * (c.kind == "dense")
        t = r.choice(targets)
        text = {pa.bool_(): "bool", pa.float32(): "float32", pa.float64(): "float64"}.get(t, str(t))
        return f"cast({text})", retyped(c, t), each(c, cast_to(t))
    if name == "list" and c.kind == "dense":
        return "list", replace(c, kind="floats" if pa.types.is_floating(c.type) else "sparse"), lambda x: [x]
    if name == "scores.clamp" and c.kind == "weighted":
        return "scores.clamp(-1, 2)", c, lambda x: [
            e | {"score": -1.0 if e["score"] < -1 else 2.0 if e["score"] > 2 else e["score"]} for e in x]
    if name == "scores.cast" and c.kind == "weighted":
        to = cast_to(pa.float32())
        return "scores.cast(float32)", replace(
            c, score=pa.float32()), lambda x: [e | {"score": to(e["score"])} for e in x]
    return None


def lo_of(c: Column, lo: float) -> float:
    return lo if pa.types.is_floating(c.type) else max(lo, bounds(c.type)[0])


def hi_of(c: Column, hi: float) -> float:
    return hi if pa.types.is_floating(c.type) else min(hi, bounds(c.type)[1])


def fill(r: random.Random, c: Column) -> tuple[str, Any]:
    """A fill, and what null becomes."""
    if c.kind in ("dense", "embedding"):
        return "fill(3)", 3 if c.kind == "dense" else [3] * c.dim
    if c.kind == "weighted" or r.random() < 0.5:
        return "fill", []
    return "fill(1, 2)", [1, 2]


def chain(r: random.Random, c: Column) -> tuple[str, Column, Callable[[Any], Any], bool]:
    """Up to three steps for a column: their text, the column, the function, whether it is approximate."""
    texts: list[str] = []
    steps: list[Callable[[Any], Any]] = []
    for _ in range(r.randrange(1, 4)):
        if c.kind not in ("string", "bytes") and r.random() < 0.25 and not pa.types.is_boolean(c.type):
            text, instead = fill(r, c)
            steps.append(lambda x, instead=instead: instead if x is None else x)
        elif (made := step(r, c)) is not None:
            text, c, f = made
            steps.append(lambda x, f=f: None if x is None else f(x))
        else:
            continue
        texts.append(text)
        if text == "log1p" or pa.types.is_boolean(c.type):
            break

    def run(x: Any) -> Any:
        for f in steps:
            x = f(x)
        return x

    return " | ".join(texts), c, run, "log1p" in texts


@pytest.mark.parametrize("seed", SEEDS)
def test_transforms_of_a_random_table(cases, seed):
    case = cases(seed)
    r = random.Random(seed + 2000)
    for output, _ in itertools.product(("kjt", "ikjt", "partial"), range(2)):
        chosen = [c for c in case.columns.values() if c.role == "feature" or c.name == "row_id"]
        chains = {
            c.name: chain(r, c) for c in chosen
            if c.role == "feature" and r.random() < 0.8 and c.type not in TIMES and c.type != pa.bool_()
        }
        chains = {name: made for name, made in chains.items() if made[0]}
        integers = []
        for c in chosen:
            _, made, f, _ = chains.get(c.name, ("", c, lambda x: x, False))
            if c.role == "feature" and not all(held(f(row[c.name]), made) for row in case.rows.values()):
                if made.kind == "dense":
                    integers.append(c.name)
                else:  # vectors of integers come as float32 alone
                    del chains[c.name]
        data = case.table().torch(
            [c.name for c in chosen], integers=integers, batch_size=r.choice([50, 300]), output=output, presence=True,
            transforms={name: made[0] for name, made in chains.items()}, shuffle=r.choice([None, "row"]))
        changed = {name: (c, f) for name, (_, c, f, _) in chains.items()}
        approximate = {name for name, made in chains.items() if made[3]}
        ids = [i for batch in data for i in check(case, batch, chosen, [], True, changed, approximate, integers)]
        assert sorted(ids) == sorted(case.rows)


@pytest.mark.parametrize("output", ["kjt", "ikjt", "partial"])
@pytest.mark.parametrize("shuffle", [None, "row"])
def test_tables_and_selections_without_rows(tmp_path, output, shuffle):
    store = dsistore.open(tmp_path)
    schema = pa.schema([("a", pa.int32()), ("ids", pa.list_(pa.int64())), ("click", pa.int8())])
    store.ingest("empty", schema.empty_table())
    store.ingest("full", pa.table({"a": [1], "ids": [[1]], "click": [1], "ds": ["x"]}), partition_by="ds")
    for table, where in ((store.table("empty"), None), (store.table("full"), "ds = 'y'")):
        data = table.torch(["a", "ids"], labels="click", output=output, shuffle=shuffle, partitions=where, batch_size=2)
        assert len(data) == 0
        for _ in range(2):
            assert list(data) == []
        assert table.scan(["a", "ids"], partitions=where).to_arrow().num_rows == 0
    assert len(store.table("empty")) == 0


@pytest.mark.parametrize("output", ["kjt", "ikjt", "partial"])
def test_shapes_where_there_is_nothing(tmp_path, output):
    """Parts of a batch that no feature is of, and features that are null in every row."""
    store = dsistore.open(tmp_path)
    n = 5
    scored = pa.list_(pa.struct([("id", pa.int64()), ("score", pa.float32())]))
    store.ingest(
        "t",
        pa.table({
            "row": range(n), "a": pa.nulls(n, pa.float32()), "ids": pa.nulls(n, pa.list_(pa.int64())),
            "scored": pa.nulls(n, scored), "vector": pa.nulls(n, pa.list_(pa.float32(), 3)), "text": pa.nulls(
                n, pa.string()),
        }))
    table = store.table("t")
    for features in (["a"], ["ids"], ["scored"], ["vector"], ["text"], ["@all"]):
        sizes = []
        for batch in table.torch(features, output=output, batch_size=3, presence=True):
            every = features == ["@all"]
            got = lists(batch)
            sizes.append(batch.rows)
            assert batch.dense.shape == (batch.rows, 2 * every or
                                         features == ["a"]) and batch.labels.shape == (batch.rows, 0)
            assert batch.labels_present is None
            assert set(got) == ({"ids", "scored"} if every else set(features) & {"ids", "scored"})
            for _, x in got.values():
                assert x.values == [[]] * batch.rows and x.present == [False] * batch.rows
            if "a" in batch.dense_names:
                assert not batch.dense_present[:, batch.dense_names.index("a")].any()
            if every or features == ["vector"]:
                assert batch.embeddings["vector"].tolist() == [[0, 0, 0]] * batch.rows
                assert batch.embeddings_present["vector"].tolist() == [False] * batch.rows
            if every or features == ["text"]:
                assert batch.keys["text"] == [None] * batch.rows
        assert sizes == [3, 2]


def test_labels_by_role_and_by_name(tmp_path):
    store = dsistore.open(tmp_path / "s")
    mapping = tmp_path / "m.json"
    mapping.write_text('{"columns": {"click": {"role": "label"}, "buy": {"role": "label"}}}')
    store.ingest("t", pa.table({"click": [1, 0], "buy": [0, 1], "dwell": [2**53, 7], "a": [0.5, 1.5]}), mapping=mapping)
    table = store.table("t")

    def names(*args, **options):
        (batch,) = table.torch(*args, **options)
        return batch.dense_names, batch.label_names

    assert names("@all") == (["a", "dwell"], ["buy", "click"])
    assert names("a", labels="@labels") == (["a"], ["buy", "click"])
    assert names(["a"], labels=["dwell", "click"]) == (["a"], ["dwell", "click"])
    assert names(["a", "buy"], labels=["dwell"]) == (["a", "buy"], ["dwell"])  # labels says which are
    with pytest.raises(dsistore.UsageError, match='"buy", "click"'):
        table.torch(["*"], labels=["dwell"])
    (batch,) = table.torch("a", labels="dwell", presence=True)
    assert batch.labels.tolist() == [2.0**53, 7.0] and batch.labels_present.tolist() == [True, True]
    (batch,) = table.torch("a", labels=["dwell"], presence=True)
    assert batch.labels.tolist() == [[2.0**53], [7.0]] and batch.labels_present.tolist() == [[True], [True]]
    with pytest.raises(dsistore.NotFoundError, match="clik"):
        table.torch("a", labels="clik")


def test_a_batch_keeps_its_masks_when_it_is_moved_and_pickled(tmp_path):
    import pickle

    store = dsistore.open(tmp_path)
    store.ingest("t", pa.table({"a": pa.array([1, None, 0], pa.int32()), "ids": [[1], None, []]}))
    (batch,) = store.table("t").torch(["a", "ids"], presence=True)
    for b in (batch, batch.to("cpu"), pickle.loads(pickle.dumps(batch))):
        assert b.dense_present.tolist() == [[True], [False], [True]
                                            ] and b.sparse.present.tolist() == [True, False, True]
    (batch,) = store.table("t").torch(["a", "ids"])
    assert batch.dense_present is None and batch.sparse.present is None and batch.embeddings_present == {}
