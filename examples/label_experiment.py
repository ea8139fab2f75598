"""Tries another label on a table without copying it: an overlay of one column, joined by a key.

    make demo
    python examples/label_experiment.py out/demo/store workload

The new label is a click of a row whose session converted, an example of what is only known days later. It is written as
a Parquet file of keys and values, as another job would, and becomes an overlay. Both labels are read with the same
features, and what the overlay takes on the disk is compared with what a copy of the table would.
"""

import argparse
import pathlib
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dsistore


def size(store: str) -> int:
    """Bytes of a store."""
    return sum(f.stat().st_size for f in pathlib.Path(store).rglob("*") if f.is_file())


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", help="a directory")
    p.add_argument("table")
    p.add_argument("--features", nargs="+", default=["user_dense_*"])
    p.add_argument("--key", default="request_id", help="the feature that identifies a row")
    p.add_argument("--session", default="session_id", help="the feature that identifies a session")
    p.add_argument("--click", default="click", help="the label to change: 1 or 0")
    p.add_argument("--conversion", default="conversion", help="what makes it another: 1 or 0")
    args = p.parse_args()
    store = dsistore.open(args.store)
    before = size(args.store)

    # What is known later: the sessions that converted. A job of yours would find them elsewhere.
    try:
        store.table(args.table).features(args.features)
        rows = store.table(args.table).scan([args.key, args.session, args.click, args.conversion]).to_arrow()
    except dsistore.NotFoundError as e:
        p.error(f"{e}; --features, --key, --session, --click and --conversion name the features to use")
    converted = pc.unique(rows[args.session].filter(pc.equal(rows[args.conversion], 1)))
    label = pc.and_(pc.equal(rows[args.click], 1), pc.is_in(rows[args.session], value_set=converted))
    name = f"{args.click}_converted"
    with tempfile.TemporaryDirectory() as directory:
        labels = pathlib.Path(directory) / "labels.parquet"
        pq.write_table(pa.table({args.key: rows[args.key], args.click: pc.cast(label, pa.int32())}), labels)
        report = store.table(args.table).overlay(name, labels, key=args.key, replace=True)
    print(f"overlay {name}: {report['rows']:,} rows, {size(args.store) - before:,} bytes more; "
          f"a copy of the table is {before:,} bytes")

    # Only readers that name the overlay see its click.
    table = store.table(args.table)
    for overlay in ([], [name]):
        ones = rows_read = 0
        for batch in table.numpy(args.features, labels=[args.click], overlay=overlay):
            ones += int(np.sum(batch[args.click]))
            rows_read += len(batch[args.click])
        print(f"{' '.join(overlay) or 'the table':16} {ones:,} of {rows_read:,} rows are positive")


if __name__ == "__main__":
    main()
