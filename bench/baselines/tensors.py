"""What every engine gives: dense matrix, id lists, weighted lists; made of Arrow as fast as numpy can, hashed into
groups, and digested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

BATCH = 4096


@dataclass(frozen=True)
class Projection:
    """The features to read, by kind, in the table's order."""

    dense: tuple[str, ...]
    sparse: tuple[str, ...]
    weighted: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        return [*self.sparse, *self.weighted, *self.dense]

    @staticmethod
    def of(schema: pa.Schema, columns: list[str]) -> Projection:
        """The kinds that Arrow types say: a list of structs is weighted."""
        parts: dict[str, list[str]] = {"dense": [], "sparse": [], "weighted": []}
        for name in columns:
            t = schema.field(name).type
            nested = pa.types.is_list(t) or pa.types.is_large_list(t)
            parts["dense" if not nested else "weighted" if pa.types.is_struct(t.value_type) else "sparse"].append(name)
        return Projection(*(tuple(parts[k]) for k in ("dense", "sparse", "weighted")))


@dataclass(slots=True)
class Lists:
    """n lists a feature, one feature after the other: what a KeyedJaggedTensor holds."""

    lengths: np.ndarray  # int32
    offsets: np.ndarray  # one more, from 0
    values: np.ndarray  # int64
    weights: np.ndarray | None = None  # float32
    # Where features have different numbers of lists: how many each has, and its inverse, None where it has a list a
    # row.
    sizes: list[int] | None = None
    inverses: list[np.ndarray | None] | None = None


@dataclass(slots=True)
class Group:
    """Features that share slots: row i has the lists of slot inverse[i]."""

    features: list[str]
    inverse: np.ndarray
    slots: int
    sparse: tuple[list[str], Lists] | None
    weighted: tuple[list[str], Lists] | None


@dataclass(slots=True)
class Batch:
    """Borrowed until the next one."""

    rows: int
    dense_names: list[str]
    dense: np.ndarray  # [rows, dense] float32; null is 0
    sparse: tuple[list[str], Lists]
    weighted: tuple[list[str], Lists]
    groups: list[Group] = field(default_factory=list)

    def nbytes(self) -> int:
        """Bytes of values, weights and lengths. Offsets are not counted: they follow from lengths."""
        parts = [self.sparse, self.weighted]
        for g in self.groups:
            parts += [p for p in (g.sparse, g.weighted) if p is not None]
        return self.dense.nbytes + sum(
            x.lengths.nbytes + x.values.nbytes + (0 if x.weights is None else x.weights.nbytes) for _, x in parts)


class Memory:
    """Arrays that are used for every batch, as the buffers of a trainer would be."""

    def __init__(self) -> None:
        self._of: dict[str, np.ndarray] = {}

    def __call__(self, name: str, n: int, dtype: Any) -> np.ndarray:
        have = self._of.get(name)
        if have is None or len(have) < n:
            have = self._of[name] = np.empty(n + n // 8, dtype)
        return have[:n]


def list_extent(a: pa.Array) -> np.ndarray:
    """The offsets of a list array, as they are: its own may begin anywhere."""
    kind = np.int64 if pa.types.is_large_list(a.type) else np.int32
    return np.frombuffer(a.buffers()[1], kind)[a.offset: a.offset + len(a) + 1]


def number_array(a: pa.Array) -> np.ndarray:
    """The values of an array of numbers without nulls, over its memory."""
    return np.frombuffer(a.buffers()[1], a.type.to_pandas_dtype())[a.offset: a.offset + len(a)]


def dense_array(a: pa.Array) -> np.ndarray:
    """The values of an array of numbers or bools; null is 0."""
    if a.null_count:
        a = pc.fill_null(a, False if pa.types.is_boolean(a.type) else 0)
    return a.to_numpy(zero_copy_only=False) if pa.types.is_boolean(a.type) else number_array(a)


class Maker:
    """Makes batches of record batches, into the same memory."""

    def __init__(self, projection: Projection, groups: list[list[str]] | None = None):
        self._p = projection
        self._memory = Memory()
        self._groups = groups or []
        self._power = np.empty(0, np.uint64)

    def __call__(self, b: pa.RecordBatch) -> Batch:
        rows = b.num_rows
        p = self._p
        dense = self._memory("dense", rows * len(p.dense), np.float32).reshape(rows, len(p.dense))
        for i, name in enumerate(p.dense):
            dense[:, i] = dense_array(b.column(name))
        out = Batch(rows, list(p.dense), dense, (list(p.sparse), self._lists("sparse", b, p.sparse, False)),
                    (list(p.weighted), self._lists("weighted", b, p.weighted, True)))
        return self._hashed(out) if self._groups else out

    def _lists(self, part: str, b: pa.RecordBatch, names: tuple[str, ...], weighted: bool) -> Lists:
        rows = b.num_rows
        lengths = self._memory(part + " lengths", rows * len(names), np.int32)
        offsets = self._memory(part + " offsets", rows * len(names) + 1, np.int32)
        offsets[0] = 0
        pieces, at = [], 0
        for k, name in enumerate(names):
            a = b.column(name)
            extent = list_extent(a)
            np.subtract(extent[1:], extent[:-1], out=lengths[k * rows: (k + 1) * rows], casting="same_kind")
            np.add(extent[1:], at - int(extent[0]), out=offsets[k * rows + 1: (k + 1) * rows + 1], casting="same_kind")
            at += int(extent[-1]) - int(extent[0])
            pieces.append((a.values, int(extent[0]), int(extent[-1])))
        values = self._memory(part + " values", at, np.int64)
        weights = self._memory(part + " weights", at, np.float32) if weighted else None
        at = 0
        for inner, begin, end in pieces:
            to = slice(at, at + end - begin)
            if weights is None:
                values[to] = number_array(inner)[begin:end]
            else:
                values[to] = number_array(inner.field(0))[inner.offset + begin: inner.offset + end]
                weights[to] = number_array(inner.field(1))[inner.offset + begin: inner.offset + end]
            at = to.stop
        return Lists(lengths, offsets, values, weights)

    # An IKJT for those who have none: rows are hashed, and the lists of the first of equal ones kept. The groups are
    # told, and equal hashes count as equal lists.

    def _hashed(self, b: Batch) -> Batch:
        hashes: dict[str, np.ndarray] = {}
        for names, lists in (b.sparse, b.weighted):
            hashes |= zip(names, self._hash(lists, b.rows))
        grouped = {n for g in self._groups for n in g}
        groups = []
        for number, members in enumerate(self._groups):
            h = np.zeros(b.rows, np.uint64)
            for name in members:
                h = h * _ODD + hashes[name]
            coded = pa.array(h).dictionary_encode()
            inverse = number_array(coded.indices)
            slots = len(coded.dictionary)
            first = np.empty(slots, np.int32)
            first[inverse[::-1]] = np.arange(b.rows - 1, -1, -1, dtype=np.int32)
            parts = []
            for part, (names, lists) in (("sparse", b.sparse), ("weighted", b.weighted)):
                of = [k for k, n in enumerate(names) if n in members]
                parts.append(([names[k] for k in of],
                              self._pick(f"{number} {part}", lists, of, b.rows, first)) if of else None)
            groups.append(Group(members, inverse, slots, *parts))
        return Batch(b.rows, b.dense_names, b.dense, self._rest("sparse", b.sparse, b.rows, grouped),
                     self._rest("weighted", b.weighted, b.rows, grouped), groups)

    def _hash(self, x: Lists, rows: int) -> np.ndarray:
        """A hash of each list: the sum of its ids times powers of an odd number, by differences of one running sum."""
        n = len(x.values)
        if len(self._power) <= n:
            self._power = powers(n + n // 8 + 1)
        product = self._memory("hash product", n + 1, np.uint64)
        product[0] = 0
        mixed = product[1:]
        np.multiply(x.values.view(np.uint64), self._power[:n], out=mixed)
        if x.weights is not None:
            mixed += x.weights.view(np.uint32) * self._power[1: n + 1]
        np.cumsum(product, out=product)
        at = product[x.offsets]
        out = (at[1:] - at[:-1]) * inverse_powers(x.offsets[:-1], self._power) + x.lengths.view(np.uint32) * _MIX
        out ^= out >> np.uint64(32)
        return out.reshape(-1, rows)

    def _pick(self, name: str, x: Lists, features: list[int], rows: int, first: np.ndarray) -> Lists:
        at = np.concatenate([first + k * rows for k in features])
        return self._gather(name, x, at)

    def _gather(self, name: str, x: Lists, at: np.ndarray) -> Lists:
        lengths = x.lengths[at]
        offsets = self._memory(name + " offsets", len(at) + 1, np.int32)
        offsets[0] = 0
        np.cumsum(lengths, out=offsets[1:])
        index = np.repeat(x.offsets[at] - offsets[:-1], lengths)
        index += np.arange(len(index), dtype=np.int32)
        values = np.take(x.values, index, out=self._memory(name + " values", len(index), np.int64), mode="clip")
        weights = None if x.weights is None else np.take(
            x.weights, index, out=self._memory(name + " weights", len(index), np.float32), mode="clip")
        return Lists(lengths, offsets, values, weights)

    def _rest(self, part: str, named: tuple[list[str], Lists], rows: int, grouped: set[str]) -> tuple[list[str], Lists]:
        names, x = named
        of = [k for k, n in enumerate(names) if n not in grouped]
        if len(of) == len(names):
            return named
        parts = [slice(x.offsets[k * rows], x.offsets[(k + 1) * rows]) for k in of]
        total = sum(s.stop - s.start for s in parts)
        values = self._memory(part + " rest", total, np.int64)
        weights = None if x.weights is None else self._memory(part + " rest weights", total, np.float32)
        lengths = np.concatenate([x.lengths[k * rows: (k + 1) * rows] for k in of]) if of else x.lengths[:0]
        at = 0
        for s in parts:
            to = slice(at, at + s.stop - s.start)
            values[to] = x.values[s]
            if weights is not None and x.weights is not None:
                weights[to] = x.weights[s]
            at = to.stop
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        return [names[k] for k in of], Lists(lengths, offsets, values, weights)


_ODD = np.uint64(0x9E3779B185EBCA87)
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)
_INVERSE = np.uint64(pow(int(_ODD), -1, 1 << 64))


def powers(n: int) -> np.ndarray:
    out = np.full(n, _ODD)
    out[0] = 1
    return np.multiply.accumulate(out)


_inverses = np.empty(0, np.uint64)


def inverse_powers(at: np.ndarray, like: np.ndarray) -> np.ndarray:
    """What undoes the powers at row positions, so that a list hashes alike wherever it lies."""
    global _inverses
    if len(_inverses) < len(like):
        filled = np.full(len(like), _INVERSE)
        filled[0] = 1
        _inverses = np.multiply.accumulate(filled)
    return _inverses[at]


def plain(table: pa.Table) -> pa.Table:
    """The table with the list types that Maker reads: list and large_list."""
    def of(t: pa.DataType) -> pa.DataType:
        if pa.types.is_list_view(t) or pa.types.is_large_list_view(t) or pa.types.is_large_list(t):
            return pa.list_(of(t.value_type))
        return t

    schema = pa.schema([pa.field(f.name, of(f.type)) for f in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def pieces(chunks: Iterator[pa.RecordBatch | pa.Table], size: int) -> Iterator[pa.RecordBatch]:
    """Record batches of at most size rows, over the chunks' memory."""
    for chunk in chunks:
        if isinstance(chunk, pa.Table):
            yield from chunk.to_batches(max_chunksize=size)
        elif chunk.num_rows <= size:
            yield chunk
        else:
            for at in range(0, chunk.num_rows, size):
                yield chunk.slice(at, size)


# Digests.

class Digest:
    """Stands for rows: `ordered` for rows in this order, however cut into batches; `unordered` for the same rows in any
    order."""

    def __init__(self, ordered: bool = True):
        self.rows = self.ids = self.bytes = 0
        self._sum = 0
        self._running: dict[str, Any] | None = {} if ordered else None

    def add(self, b: Batch) -> None:
        hashes = np.zeros(b.rows, np.uint64)
        for i, name in enumerate(b.dense_names):
            column = np.ascontiguousarray(b.dense[:, i])
            hashes += _spread(column.view(np.uint32).astype(np.uint64) ^ _name(name))
            self._order(name, column)
        self._add_lists(b.rows, b.sparse, None, hashes)
        self._add_lists(b.rows, b.weighted, None, hashes)
        for g in b.groups:
            for part in (g.sparse, g.weighted):
                if part is not None:
                    self._add_lists(b.rows, part, g.inverse, hashes)
        self._sum = (self._sum + int(_spread(hashes).sum(dtype=np.uint64))) % (1 << 64)
        self.rows += b.rows
        self.bytes += b.nbytes()

    def _order(self, name: str, *arrays: np.ndarray) -> None:
        if self._running is None:
            return
        h = self._running.setdefault(name, [xxhash.xxh3_64() for _ in arrays])
        for x, a in zip(h, arrays):
            x.update(a)

    def _add_lists(self, rows: int, named: tuple[list[str], Lists], inverse: np.ndarray | None,
                   hashes: np.ndarray) -> None:
        names, x = named
        first = 0
        for k, name in enumerate(names):
            n = len(x.lengths) // len(names) if x.sizes is None else x.sizes[k]
            offsets = x.offsets[first: first + n + 1]
            a, b = int(offsets[0]), int(offsets[-1])
            values, lengths = x.values[a:b], x.lengths[first: first + n]
            first += n
            if x.inverses is not None:
                inverse = x.inverses[k]
            weights = None if x.weights is None else x.weights[a:b]
            power = powers(int(lengths.max(initial=0)) + 1)[np.arange(b - a) - np.repeat(offsets[:-1] - a, lengths)]
            mixed = values.view(np.uint64) ^ values.view(np.uint64) >> np.uint64(29)
            if weights is not None:
                mixed += weights.view(np.uint32) * _MIX
            mixed *= power
            at = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed)])[offsets - a]
            h = _spread((at[1:] - at[:-1]) * _ODD + lengths.astype(np.uint64) ^ _name(name))
            hashes += h if inverse is None else h[inverse]
            self.ids += int(lengths.sum()) if inverse is None else int(lengths[inverse].sum())
            if inverse is None:
                self._order(name, lengths, values, *([] if weights is None else [weights]))
            else:
                self._running = None

    def result(self) -> dict[str, Any]:
        ordered = None
        if self._running is not None:
            whole = xxhash.xxh3_64()
            for name in sorted(self._running):
                whole.update(name.encode())
                for h in self._running[name]:
                    whole.update(h.digest())
            ordered = whole.hexdigest()
        return {
            "rows": self.rows, "ids": self.ids, "bytes": self.bytes, "unordered": f"{self._sum:016x}",
            "ordered": ordered
        }


def _name(name: str) -> np.uint64:
    return np.uint64(xxhash.xxh3_64_intdigest(name))


def _spread(x: np.ndarray) -> np.ndarray:
    x = (x ^ x >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    return (x ^ x >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
