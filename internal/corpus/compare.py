"""Compares a dump with what `dsi export` made of it, value by value, with pyarrow as the reader of both.

Usage: compare.py < JOBS
Reads one JSON object a line, {"sources": [PATH, ...], "export": PATH}, and prints one for each. With "partitions",
one object a source, each partition value is a string column of its source, and rows may come in any order.
What is printed is {"outcome": "equal" | "wrong" | "unreadable", "rows": N, "columns": N, "reason": "..."}
"unreadable" says that pyarrow itself refuses the source, so that nothing can be said about equality.

Equal means: the same columns by name, the same rows in the same order, and in each cell the same value: integers and
decimals exactly, floats bit by bit (any NaN equals any NaN), timestamps as their integer and unit's instant, maps
as sets of entries, null apart from empty. Physical variants of one type (dictionary, large_, view) are one type.
"""

import decimal
import json
import math
import struct
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.orc
import pyarrow.parquet


def read_source(path):
    with open(path, "rb") as f:
        magic = f.read(4)
    if magic == b"PAR1":
        file = pa.parquet.ParquetFile(path)
        return enums_as_strings(file.read(), file.schema)
    if magic[:3] == b"ORC":
        return pa.orc.ORCFile(path).read()
    raise ValueError("unknown magic %r" % magic)


def enums_as_strings(table, schema):
    """Parquet's ENUM says that bytes are text; pyarrow leaves them bytes."""
    for i in range(len(schema)):
        c = schema.column(i)
        if str(c.logical_type) == "Enum" and "." not in c.path and c.path in table.schema.names:
            at = table.schema.get_field_index(c.path)
            if kind(table.column(at).type) == "binary":
                table = table.set_column(at, c.path, table.column(at).cast(pa.string()))
    return table


def read_export(path):
    return pa.parquet.ParquetFile(path).read()


UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def canonical(array):
    """Returns a list of plain Python values that compare with ==, one per row."""
    if isinstance(array, pa.ChunkedArray):
        out = []
        for chunk in array.chunks:
            out.extend(canonical(chunk))
        return out
    t = array.type
    if isinstance(array, pa.ExtensionArray):
        return canonical(array.storage)
    if pa.types.is_dictionary(t):
        return canonical(array.dictionary_decode())
    valid = array.is_valid().to_pylist()
    if pa.types.is_null(t):
        return [None] * len(array)
    if pa.types.is_floating(t):
        wide = array.cast(pa.float64()) if not pa.types.is_float64(t) else array
        return [None if v is None else "nan" if math.isnan(v) else struct.pack("<d", v).hex() for v in wide.to_pylist()]
    if pa.types.is_timestamp(t) or pa.types.is_duration(t) or pa.types.is_time(t):
        scale = UNIT_NS[t.unit]
        ints = array.view(pa.int32() if t.bit_width == 32 else pa.int64()).to_pylist()
        return [None if not ok else ("t", i * scale) for ok, i in zip(valid, ints)]
    if pa.types.is_date(t):
        ints = array.view(pa.int32() if t.bit_width == 32 else pa.int64()).to_pylist()
        scale = 86400000 if t.bit_width == 32 else 1
        return [None if not ok else ("d", i * scale) for ok, i in zip(valid, ints)]
    if pa.types.is_map(t):
        keys, items = canonical(array.keys), canonical(array.items)
        base = array.offsets[0].as_py() if len(array) else 0
        out = []
        for i, ok in enumerate(valid):
            lo, hi = array.offsets[i].as_py() - base, array.offsets[i + 1].as_py() - base
            lo, hi = lo + base, hi + base
            out.append(sorted(zip(map(repr, keys[lo:hi]), items[lo:hi]), key=repr) if ok else None)
        return out
    if pa.types.is_fixed_size_list(t):
        flat, n = canonical(array.values), t.list_size
        off = array.offset * n
        return [flat[off + i * n : off + (i + 1) * n] if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        flat, offsets = canonical(array.values), array.offsets.to_pylist()
        return [flat[offsets[i] : offsets[i + 1]] if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_struct(t):
        fields = [(t.field(i).name, canonical(array.field(i))) for i in range(t.num_fields)]
        return [{n: v[i] for n, v in fields} if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_decimal(t):
        return [None if v is None else decimal.Decimal(v) for v in array.to_pylist()]
    if kind(t) == "binary":
        return [None if v is None else v.hex() for v in array.to_pylist()]
    return array.to_pylist()


def kind(t):
    """The family of a type: what must agree between source and export besides the values."""
    if isinstance(t, pa.BaseExtensionType):
        return kind(t.storage_type)
    if pa.types.is_dictionary(t):
        return kind(t.value_type)
    for name, test in (
        ("null", pa.types.is_null), ("bool", pa.types.is_boolean), ("int", pa.types.is_integer),
        ("float", pa.types.is_floating),
        ("decimal", pa.types.is_decimal), ("date", pa.types.is_date), ("timestamp", pa.types.is_timestamp),
        ("time", pa.types.is_time),
        ("duration", pa.types.is_duration), ("map", pa.types.is_map), ("struct", pa.types.is_struct),
    ):
        if test(t):
            return name
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t) or pa.types.is_list_view(t):
        return "list"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "string"
    return "binary"


def compare(source, export, unordered=False):
    """Returns None when equal, else what differs first."""
    if source.num_rows != export.num_rows:
        return "%d rows in the source, %d in the export" % (source.num_rows, export.num_rows)
    # A column without a type (all of it null) is not stored: the ingest says so, and its first value gives it one.
    untyped = [f.name for f in source.schema if kind(f.type) == "null" and f.name not in export.schema.names]
    source = source.drop_columns(untyped)
    missing = [n for n in source.schema.names if n not in export.schema.names]
    extra = [n for n in export.schema.names if n not in source.schema.names]
    if missing or extra:
        return "missing columns %s, extra columns %s" % (missing[:5], extra[:5])
    if unordered:
        source, export = sort_rows(source), sort_rows(export)
    for name in source.schema.names:
        a, b = source.column(name), export.column(name)
        ka, kb = kind(a.type), kind(b.type)
        va, vb = canonical(a), canonical(b)
        if va != vb:
            row = next((i for i, (x, y) in enumerate(zip(va, vb)) if x != y), None)
            if row is None:
                return "column %s: %d values against %d" % (name, len(va), len(vb))
            return "column %s (%s), row %d: source %.200r, export %.200r" % (name, a.type, row, va[row], vb[row])
        if ka != kb and not (ka == "null"):
            return "column %s: type %s in the source, %s in the export" % (name, a.type, b.type)
    return None


def sort_rows(table):
    cells = [canonical(table.column(n)) for n in sorted(table.schema.names)]
    rows = sorted(range(table.num_rows), key=lambda r: repr([c[r] for c in cells]))
    return table.take(pa.array(rows, pa.int64()))


def add_partition(table, values):
    for name, value in values.items():
        if name in table.schema.names:  # ingest has checked that the file agrees with its directory
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
    return table


def judge(sources, export, partitions=None):
    try:
        tables = [read_source(p) for p in sources]
        if partitions:
            tables = [add_partition(t, v) for t, v in zip(tables, partitions)]
        source = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
        for name in source.schema.names:
            canonical(source.column(name))
    except Exception as e:
        return {"outcome": "unreadable", "reason": "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:200])}
    try:
        why = compare(source, read_export(export), unordered=partitions is not None)
    except Exception as e:
        why = "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:300])
    return {"outcome": "wrong" if why else "equal", "rows": source.num_rows, "columns": source.num_columns,
            "reason": why or ""}


if __name__ == "__main__":
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(judge(job["sources"], job["export"], job.get("partitions"))), flush=True)
