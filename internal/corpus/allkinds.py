# Writes an Arrow file with a column of every kind, element and logical type that becomes a feature.
#   python allkinds.py FILE
import decimal
import sys

import numpy as np
import pyarrow as pa

ROWS = 24
columns = {}


def put(name, values, type):
    columns[name] = pa.array([values[i % len(values)] for i in range(ROWS)], type)


def put_lists(name, value, type, dim=2):
    put(name, [[value, value], None, [], [value]], pa.list_(type))
    put(name + "_embedding", [[value] * dim, None], pa.list_(type, dim))


integers = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
for t in integers:
    info = np.iinfo(t.to_pandas_dtype())
    put(f"dense_{t}", [int(info.min), None, int(info.max), 0], t)
    put(f"sparse_{t}", [[int(info.min), int(info.max)], None, [], [1]], pa.list_(t))
    put(f"embedding_{t}", [[int(info.min), int(info.max)], None], pa.list_(t, 2))
    for score in (pa.float32(), pa.float64()):
        item = pa.struct([("item", t), ("weight", score)])
        lists = [
            [{"item": int(info.min), "weight": 0.5}], None, [],
            [{"item": int(info.max), "weight": -0.0}, {"item": 0, "weight": 1e-40}],
        ]
        put(f"weighted_{t}_{score}", lists, pa.list_(item))

# NaNs of several patterns, both zeros, a subnormal: bit by bit.
for t, bits in ((np.float32, [0x7FC00001, 0xFFC00000, 0x7F800001, 0x80000000, 0, 1]),
                (np.float64, [0x7FF8000000000001, 0xFFF8 << 48, 0x7FF0000000000001, 1 << 63, 0, 1])):
    values = np.array(bits * (ROWS // 6), np.uint32 if t is np.float32 else np.uint64).view(t)
    name = np.dtype(t).name
    columns[f"dense_{name}"] = pa.array(values, mask=np.arange(ROWS) % 5 == 0)
    offsets = pa.array([None if i % 4 == 1 else i for i in range(ROWS)] + [ROWS], pa.int32())
    columns[f"sparse_{name}"] = pa.ListArray.from_arrays(offsets, pa.array(values))
    columns[f"embedding_{name}"] = pa.FixedSizeListArray.from_arrays(pa.array(np.tile(values, 3)), 3)

put("dense_bool", [True, None, False], pa.bool_())
put_lists("bools", True, pa.bool_())
put("string", ["", "\u00e9", None, "\x00a"], pa.string())
put("bytes", [b"", b"\xff", None, b"\x00a"], pa.binary())
put("fixed_bytes", [b"abc", None, b"\xff\x00\x01"], pa.binary(3))
put("fixed_bytes_16", [b"0123456789abcdef", None], pa.binary(16))
put("dictionary", ["a", None, "b"], pa.dictionary(pa.int32(), pa.string()))
columns["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[]"] * (ROWS // 3)))
uuids = pa.array([b"0123456789abcdef", None] * (ROWS // 2), pa.binary(16))
columns["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), uuids)
put("half", [np.float16(1.5), None, np.float16(-0.0), np.float16(65504)], pa.float16())
put_lists("halves", np.float16(1.5), pa.float16())
exact = decimal.Context(prec=100)
for p, s in ((1, 0), (4, 2), (5, 5), (9, 2), (18, 4), (19, 4), (38, 10), (39, 0), (76, 20)):
    big = exact.scaleb(decimal.Decimal(10**p - 1), -s)
    put(f"decimal_{p}_{s}", [big, None, exact.minus(big)], pa.decimal128(p, s) if p <= 38 else pa.decimal256(p, s))
put_lists("decimals", decimal.Decimal("1.25"), pa.decimal128(9, 2))
put("date32", [0, None, -1, 20000], pa.date32())
put("date64", [0, None, -86400000, 86400000 * 20000], pa.date64())
put_lists("dates", 19000, pa.date32())
for unit in ("s", "ms", "us", "ns"):
    clock = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    put(f"time_{unit}", [0, None, 86399], clock)
    put_lists(f"times_{unit}", 7, clock)
    for name, t in (
        ("timestamp", pa.timestamp(unit)), ("instant", pa.timestamp(unit, tz="UTC")), ("duration", pa.duration(unit)),
    ):
        put(f"{name}_{unit}", [0, None, -5, 10**9], t)
        put_lists(f"{name}s_{unit}", -5, t)
put("map_string", [[("a", 1.5), ("b", 2)], None, [], [("b", 0)]], pa.map_(pa.string(), pa.float32()))
put("map_int64", [[(-3, 1), (7, 2)], None, [], [(7, 0)]], pa.map_(pa.int64(), pa.int16()))
put("map_uint64", [[(3, 1), (2**64 - 1, 2)], None, []], pa.map_(pa.uint64(), pa.int16()))
put("map_lists", [[("x", [1, 2])], None, [], [("x", [])]], pa.map_(pa.string(), pa.list_(pa.int64())))
put("map_strings", [[("x", "v")], None, [], [("y", "")]], pa.map_(pa.string(), pa.string()))
put("map_weighted", [[("x", [(1, 0.5)])], None, [], [("x", [])]],
    pa.map_(pa.string(), pa.map_(pa.int64(), pa.float32())))
put("map_decimals", [[("x", decimal.Decimal("1.5"))], None, []], pa.map_(pa.string(), pa.decimal128(20, 1)))
inner = pa.struct([("d", pa.string()), ("e", pa.timestamp("us"))])
put("struct", [{"a": 1, "b": [1], "c": {"d": "x", "e": 5}}, None, {"a": None, "b": None, "c": None}],
    pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64())), ("c", inner)]))
put("struct_map", [{"m": [("k", 1)]}, None, {"m": None}, {"m": []}],
    pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
put("null_numbers", [None], pa.int32())
put("null_lists", [None], pa.list_(pa.int32()))
put("empty_lists", [[]], pa.list_(pa.int32()))

table = pa.table(columns)
with pa.OSFile(sys.argv[1], "wb") as f, pa.ipc.new_file(f, table.schema) as w:
    w.write_table(table)
