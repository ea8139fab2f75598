"""Draws the results of bench/profiles, bench/dedupsweep and bench/ablation into docs/img, by matplotlib: make plots."""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]


def pyplot() -> Any:
    """matplotlib.pyplot, set up so that the same figures give the same SVG file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "dsistore", "svg.fonttype": "none", "font.size": 9}
    import matplotlib.pyplot as plt

    return plt


def save(path: pathlib.Path) -> None:
    """Writes the figure, and begins the next one."""
    plt = pyplot()
    plt.tight_layout()
    plt.savefig(path, metadata={"Date": None})
    plt.close()


def axes(x: str, y: str) -> None:
    plt = pyplot()
    plt.xlabel(x)
    plt.ylabel(y)
    plt.grid(alpha=0.3)
    plt.gca().spines[["top", "right"]].set_visible(False)


def profiles(result: list[dict[str, Any]], images: pathlib.Path) -> None:
    """B/row over samples/s, one curve per table, a point for each weight of a byte."""
    plt = pyplot()
    for curve in result:
        plt.figure(figsize=(7, 4.3))
        points = curve["points"]
        x, y = [p["median_samples_per_second"] for p in points], [p["bytes_per_row"] for p in points]
        plt.plot(x, y, marker="o", markersize=4)
        for p, at in zip(points, zip(x, y)):
            plt.annotate(" " + (p["name"] or f"{p['ns_per_byte']:g} ns"), at, fontsize=8)
        plt.xlim(left=0)
        plt.ylim(bottom=0)
        axes(f"{curve['table']}: samples/s decoded, one thread", "B/row")
        save(images / f"profiles-{curve['table']}.svg")


# File, label of y, and of each line the field, its name and style.
_SWEEP = [("dedup-factor", "rows per slot, user features", [("factor_by_slots", "stored", "-"),
                                                            ("formula", "formula", "--")]),
          ("dedup-bytes", "B/row", [("bytes_per_row", "", "-"),
                                    ("bytes_per_row_without_dedup", "without dedup", "--")]),
          ("dedup-rate", "samples/s, all features, one thread", [("ikjt_samples_per_second", "ikjt", "-"),
                                                                 ("kjt_samples_per_second", "kjt", "--")]), ]


def dedupsweep(result: list[dict[str, Any]], images: pathlib.Path) -> None:
    """A line over samples per session for each share of unchanged values."""
    plt = pyplot()
    for name, label, lines in _SWEEP:
        plt.figure(figsize=(7, 4.3))
        for field, of, style in lines:
            for i, share in enumerate(sorted({p["unchanged"] for p in result})):
                points = [p for p in result if p["unchanged"] == share]
                plt.plot([p["samples_per_session"] for p in points], [p[field] for p in points], style, marker="o",
                         markersize=3, color=f"C{i}", label=f"{share:.0%} unchanged {of}".strip())
        plt.xscale("log")
        ticks = sorted({p["samples_per_session"] for p in result})
        plt.xticks(ticks, [f"{t:g}" for t in ticks], minor=False)
        plt.minorticks_off()
        plt.ylim(bottom=0)
        plt.legend(fontsize=7, ncols=2)
        axes("samples per session", label)
        save(images / f"{name}.svg")


def ablation(result: dict[str, Any], images: pathlib.Path) -> None:
    """Bars of each step: published, on the disk, and from each slow store."""
    plt = pyplot()
    plt.figure(figsize=(7, 4.3))
    steps = [s for s in result["steps"] if s["published_throughput"]]
    bars = [("published", [s["published_throughput"] for s in steps]),
            ("simulated disk", [s["disk_throughput"] for s in steps])]
    bars += [(f"{w['latency_ms']:g} ms a request", [s["slow_store"][k]["throughput"] for s in steps])
             for k, w in enumerate(steps[0]["slow_store"])]
    for i, (label, heights) in enumerate(bars):
        plt.bar([k + 0.8 * (i - (len(bars) - 1) / 2) / len(bars) for k in range(len(steps))], heights,
                0.8 / len(bars), label=label)
    plt.xticks(range(len(steps)), [s["name"].replace(" ", "\n", 2) for s in steps], fontsize=8)
    plt.yscale("log")
    plt.axhline(1, color="black", linewidth=0.6)
    plt.legend(fontsize=7)
    axes("", "throughput, maps of all features = 1")
    save(images / "ablation.svg")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results", help="directory of the results")
    p.add_argument("--images", type=pathlib.Path, default=ROOT / "docs" / "img", help="directory of the plots")
    a = p.parse_args()
    for draw in (profiles, dedupsweep, ablation):
        draw(json.loads((a.results / f"{draw.__name__}.json").read_text())["result"], a.images)


if __name__ == "__main__":
    main()
