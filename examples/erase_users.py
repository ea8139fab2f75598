"""Deletes users: first from what is read, then from the disk.

    make demo
    python examples/erase_users.py out/demo/store workload --users 3

Deleting hides the rows from new snapshots, in a moment; time travel still finds them. Erasing rewrites the segments
with these rows, expires old snapshots that have them, and searches the rest. It is a command of dsi, because it works
for minutes on large tables.
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile

import pyarrow.compute as pc

import dsistore


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", help="a directory")
    p.add_argument("table")
    p.add_argument("--key", default="user_id", help="the feature that says whose a row is")
    p.add_argument("--users", type=int, default=3, help="how many; the first ones of the table")
    p.add_argument("--dsi", default="dsi", help="the program; default: of PATH, else bin/dsi of the checkout")
    args = p.parse_args()
    # Before anything is deleted.
    built = pathlib.Path(__file__).resolve().parents[1] / "bin" / "dsi"
    dsi = shutil.which(args.dsi) or (shutil.which(built) if args.dsi == "dsi" else None)
    if dsi is None:
        p.error(f"there is no program {args.dsi}: make build, or name it with --dsi; nothing was deleted")
    store = dsistore.open(args.store)

    def rows_of(table: dsistore.Table) -> int:
        keys = table.scan([args.key]).to_arrow()[args.key]
        return int(pc.sum(pc.is_in(keys, value_set=users)).as_py() or 0)

    table = store.table(args.table)
    users = pc.unique(table.scan([args.key]).to_arrow()[args.key])[: args.users]
    print(f"{len(users)} users have {rows_of(table):,} rows")

    report = table.delete(keys=users, key=args.key)
    print(f"deleted: {report['rows_deleted']:,} rows; the newest snapshot has {rows_of(store.table(args.table)):,}, "
          f"the one before {rows_of(table):,}")

    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{u}\n" for u in users.to_pylist()))
        file.flush()
        subprocess.run([dsi, "erase", args.store, args.table, "--key", args.key, "--keys", file.name], check=True)
    print(f"erased: the table has {rows_of(store.table(args.table))} of their rows")


if __name__ == "__main__":
    main()
