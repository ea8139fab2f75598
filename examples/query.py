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
    p.add_argument("--user", default="user_id", help="the feature that says whose a row is")
    p.add_argument("--click", default="click", help="a feature that is 1 or 0")
    p.add_argument("--conversion", default="conversion", help="another one")
    args = p.parse_args()
    table = dsistore.open(args.store).table(args.table)

    def name(column: str) -> str:
        return '"' + column.replace('"', '""') + '"'

    columns = [args.user, args.click, args.conversion]
    try:
        scan = table.scan(columns, filter=f"{name(args.click)} = 1")  # the filter runs in the engine
    except dsistore.NotFoundError as e:
        p.error(f"{e}; --user, --click and --conversion name the features to use")
    user, _, conversion = map(name, columns)
    print(duckdb.sql(f"""
        SELECT {user}, count(*) AS clicks, sum({conversion})::BIGINT AS conversions
        FROM scan GROUP BY ALL ORDER BY clicks DESC, {user} LIMIT 5
    """))


if __name__ == "__main__":
    main()
