"""The tables of a run, and their part of docs/guide/benchmarks-training.md."""

from __future__ import annotations

from typing import Any

from baselines.harness import ROOT
from baselines.page import count, replace_parts, setup, table

PAGE = ROOT / "docs" / "guide" / "benchmarks-training.md"
PACKAGES = ("tensorflow_cpu", "grain", "array_record", "jax", "pyarrow", "numpy")

_TITLES = {
    "tensorflow": "TensorFlow: dense features and RaggedTensors", "jax": "arrays of JAX and NumPy",
    "grain": "Grain, in order", "grain-shuffled": "Grain, shuffled by row",
}


def tables(measures: dict[str, list[dict[str, Any]]]) -> str:
    """A table for each measure: what was read a second, and how many times as fast the first engine is."""
    out = []
    for name, rows in measures.items():
        threads = sorted({r["threads"] for r in rows})
        by_engine: dict[str, dict[int, dict[str, Any]]] = {}
        for r in rows:
            by_engine.setdefault(r["engine"], {})[r["threads"]] = r
        if not by_engine:
            continue
        lines = []
        for of in by_engine.values():
            any_ = next(iter(of.values()))
            line = [any_["what"], f"{any_['stored_bytes'] / any_['rows']:,.0f}"]
            for t in threads:
                r = of.get(t)
                line += [count(r["samples_per_second"]), count(r["samples_per_cpu_second"]),
                         f"{1 / r['times']:.3g}" if "times" in r else ""] if r else [""] * 3
            lines.append(line)
        header = [f"{_TITLES[name]}, {rows[0]['rows']:,} rows", "stored B/row"]
        for t in threads:
            cores = f"{t} core{'s' * (t > 1)}"
            header += [f"samples/s, {cores}", f"samples/CPU s, {cores}", f"relative, {cores}"]
        out.append(table(header, lines))
    return "\n".join(out)


def fill(result: dict[str, Any], machine: dict[str, Any]) -> None:
    """Writes the tables into the page."""
    part = setup(result, machine, PACKAGES) + "\n" + tables(result["measures"])
    replace_parts(PAGE, {"frameworks": part})
