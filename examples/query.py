"""Asks DuckDB about a table: it reads the features that the query needs, and no others.

    make demo
    python examples/query.py out/demo/store workload
"""

import argparse

import duckdb

import dsistore


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", help="a directory, or s3://bucket/prefix")
    p.add_argument("table")
    args = p.parse_args()
    table = dsistore.open(args.store).table(args.table)

    scan = table.scan(["user_id", "click", "conversion"], filter="click = 1")  # the filter runs in the engine
    print(duckdb.sql("""
        SELECT user_id, count(*) AS clicks, sum(conversion)::BIGINT AS conversions
        FROM scan GROUP BY user_id ORDER BY clicks DESC, user_id LIMIT 5
    """))


if __name__ == "__main__":
    main()
