"""Reads files with pyarrow (or csv) and prints what their features should be, for the corpus test.

Input: a path a line. Output: a JSON object a line: file, and either error or rows and features (name -> SHA-1 of its
cells, one a line). This shares no code with the reader that it checks.
"""

import csv
import hashlib
import json
import struct
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

LIMIT = int(sys.argv[1]) if len(sys.argv) > 1 else 50000
DUMP = sys.argv[2] if len(sys.argv) > 2 else None


def cells(arr):
    """Canonical text of each entry of an array that is no map and no struct."""
    t = arr.type
    if pa.types.is_dictionary(t):
        return cells(arr.dictionary_decode())
    if isinstance(t, pa.BaseExtensionType):
        return cells(arr.storage)
    if pa.types.is_null(t):
        return ["n"] * len(arr)
    if pa.types.is_float16(t):
        arr, t = arr.cast(pa.float32()), pa.float32()
    if pa.types.is_float32(t):
        return [("f" + struct.pack(">I", v).hex()) if v is not None else "n" for v in arr.view(pa.uint32()).to_pylist()]
    if pa.types.is_float64(t):
        return [("f" + struct.pack(">Q", v).hex()) if v is not None else "n" for v in arr.view(pa.uint64()).to_pylist()]
    if pa.types.is_decimal(t):
        out = []
        for v in arr.to_pylist():
            if v is None:
                out.append("n")
                continue
            sign, digits, exp = v.as_tuple()
            n = int("".join(map(str, digits))) * 10 ** (exp + t.scale)
            n = -n if sign else n
            if t.precision <= 18:
                out.append("i%d" % n)
            else:
                out.append("b" + n.to_bytes(16 if t.precision <= 38 else 32, "big", signed=True).hex())
        return out
    if pa.types.is_boolean(t):
        return ["n" if v is None else "i%d" % v for v in arr.to_pylist()]
    if pa.types.is_date32(t) or pa.types.is_time32(t):
        return ["n" if v is None else "i%d" % v for v in arr.view(pa.int32()).to_pylist()]
    if pa.types.is_temporal(t):
        return ["n" if v is None else "i%d" % v for v in arr.view(pa.int64()).to_pylist()]
    if pa.types.is_integer(t):
        return ["n" if v is None else "i%d" % v for v in arr.to_pylist()]
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        arr, t = arr.cast(pa.binary() if pa.types.is_string(t) else pa.large_binary()), pa.binary()
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t):
        return ["n" if v is None else "b" + v.hex() for v in arr.to_pylist()]
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        if pa.types.is_struct(t.value_type):
            flat = arr.flatten()
            ids, scores = flat.flatten()
            inner = [a + ":" + b for a, b in zip(cells(ids), cells(scores))]
        else:
            inner = cells(arr.flatten())
        return joined(arr, inner)
    if pa.types.is_map(t):
        return ["n" if v is None else "[" + ",".join("i%d:%s" % (k, cells(pa.array([x], t.item_type))[0]) for k, x in v) + "]"
                for v in arr.to_pylist()]
    raise TypeError("no cells of " + str(t))


def joined(arr, inner):
    out, at = [], 0
    for n in pc.list_value_length(arr).to_pylist():
        if n is None:
            out.append("n")
            continue
        out.append("[" + ",".join(inner[at:at + n]) + "]")
        at += n
    assert at == len(inner)
    return out


def features(name, arr, out):
    t = arr.type
    if pa.types.is_struct(t):
        out[name] = ["i1" if v else "n" for v in arr.is_valid().to_pylist()]
        for i, child in enumerate(arr.flatten()):
            features(name + "." + t[i].name, child, out)
        return
    if pa.types.is_map(t):
        rows = arr.to_pylist()
        items = cells_of_items(arr)
        out[name] = ["n" if v is None else "i1" for v in rows]
        at = 0
        for row, pairs in enumerate(rows):
            for k, _ in pairs or ():
                key = k.decode() if isinstance(k, bytes) else str(k)
                col = out.setdefault(name + "." + key, ["n"] * len(rows))
                col[row] = items[at]
                at += 1
        return
    out[name] = cells(arr)


def cells_of_items(arr):
    out = []
    for v in arr:
        if v.is_valid and len(v.values):
            out += cells(v.values.field(1))
    return out


def partition_keys(path):
    return {p.split("=", 1)[0] for p in path.split("/")[:-1] if "=" in p}


def read(path):
    if path.endswith(".csv"):
        with open(path, newline="") as f:
            rows = [r for r in csv.reader(f) if r]
        names, rows = rows[0], rows[1:]
        table = pa.table({n: pa.array([r[i] if r[i] != "" else None for r in rows], pa.string()) for i, n in enumerate(names)})
    elif path.endswith(".orc"):
        table = orc.ORCFile(path).read()
    else:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    total = table.num_rows
    table = table.slice(0, LIMIT)
    out = {}
    keys = partition_keys(path)
    for i, field in enumerate(table.schema):
        if field.name in keys:
            continue
        col = table.column(i)
        arr = col.combine_chunks() if col.num_chunks != 1 else col.chunk(0)
        if isinstance(arr, pa.ChunkedArray):
            arr = pa.concat_arrays(arr.chunks) if arr.num_chunks else pa.array([], field.type)
        if arr.offset:
            arr = pa.concat_arrays([arr])
        features(field.name, arr, out)
    return total, out


for line in sys.stdin:
    path = line.rstrip("\n")
    try:
        total, out = read(path)
        if DUMP is not None:
            print("\n".join(out[DUMP]))
            continue
        answer = {"file": path, "rows": total,
                  "features": {k: hashlib.sha1("\n".join(v).encode()).hexdigest() for k, v in out.items()}}
    except Exception as e:  # whatever pyarrow makes of a damaged file is its answer
        answer = {"file": path, "error": "%s: %s" % (type(e).__name__, str(e)[:200])}
    print(json.dumps(answer), flush=True)
