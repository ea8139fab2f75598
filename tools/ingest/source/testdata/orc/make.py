"""Writes the ORC files of this directory, with pyarrow 26.0.1: python3 make.py"""

import datetime as dt

import pyarrow as pa
from pyarrow import orc

FAR = [dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None, dt.datetime(1, 1, 1), dt.datetime(2020, 2, 29, 12, 0, 0, 500000), dt.datetime(1969, 12, 31, 23, 59, 59, 250000)]
STAMP = pa.timestamp("us")

many = [dt.datetime(1, 1, 1) + dt.timedelta(days=(i * i * 37) % 3_652_058, seconds=i, microseconds=(i * 7919) % 1_000_000) for i in range(3000)]
for codec in ["uncompressed", "zlib", "snappy", "lz4", "zstd"]:
    orc.write_table(pa.table({"t": pa.array(FAR + many, STAMP)}), f"far-{codec}.orc", compression=codec)
orc.write_table(pa.table({"a": [1, 2, 3, 4, 5], "t": pa.array(FAR, STAMP), "s": list("vwxyz")}), "beside.orc", compression="zlib")
orc.write_table(pa.table({"a": [1, 2], "l": pa.array([[FAR[0]], []], pa.list_(STAMP))}), "within.orc", compression="zlib")
orc.write_table(pa.table({"t": pa.array([dt.datetime(2020, 1, 1), None], STAMP)}), "near.orc", compression="zlib")
orc.write_table(pa.table({"operation": [0], "originalTransaction": [1], "bucket": [0], "rowId": [0], "currentTransaction": [1],
                          "row": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))}), "acid.orc", compression="zlib")
