"""Puts Parquet files into a table in an object store, and reads a part of it twice, by way of a cache on the disk.

    export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... AWS_REGION=...   # or as any program of AWS finds them
    python examples/object_store.py s3://bucket/prefix ads dump.parquet --session-key session_id --time-key event_time

gs://bucket/prefix and az://container/prefix work the same way, with the credentials of their programs.
"""

import argparse
import tempfile
import time

import dsistore


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", help="s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")
    p.add_argument("table")
    p.add_argument("source", help="Parquet files, or directories of them; these may be in a bucket too")
    p.add_argument("--session-key")
    p.add_argument("--time-key")
    p.add_argument("--features", nargs="+", help="names or globs; default: numbers that are floats, and lists")
    p.add_argument("--cache", help="a directory that is kept; default: one for this run")
    args = p.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        store = dsistore.open(args.store, {"cache_dir": args.cache or directory, "cache_size": "1GiB"})
        try:
            report = store.ingest(args.table, args.source, session_key=args.session_key, time_key=args.time_key,
                                  init=True)
            print(f"ingested {report['rows']:,} rows")
        except dsistore.DuplicateSourceError:
            print("ingested before")
        table = store.table(args.table)
        features = args.features or [f.name for f in table.features() if f.kind == "sparse" or "float" in f.elem]
        for what in ("first", "again"):
            begin = time.perf_counter()
            dataset = table.numpy(features)
            rows = sum(len(next(iter(batch.values()))) for batch in dataset)
            stats = dataset.stats()
            print(f"{what}: {rows:,} rows in {time.perf_counter() - begin:.2f} s; {stats.sent_reads} requests, "
                  f"{stats.bytes_down:,} bytes from the store, {stats.bytes_cached:,} from the cache")


if __name__ == "__main__":
    main()
