"""Draws the results of loader.py, startup.py and memory.py as docs/img/pytorch-*.svg, and writes them into a page.

    python bench/pytorch/plot.py --help
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from plots import pyplot, save  # noqa: E402

COLORS = {"dsistore": "#c2410c", "Parquet": "#64748b"}


def bars(path: pathlib.Path, title: str, groups: list[tuple[str, list[tuple[str, float]]]]) -> None:
    """Draws horizontal bars from 0, in groups from the top, each with its number."""
    plt = pyplot()
    y, ticks, names = 0.0, [], []
    plt.figure(figsize=(7.6, 0.27 * sum(len(rows) + 1.2 for _, rows in groups) + 0.5))
    for group, rows in groups:
        plt.annotate(group, (0, y), xytext=(4, 0), textcoords="offset points", va="center", fontweight="bold")
        for side, value in rows:
            y -= 1
            plt.barh(y, value, height=0.8, color=next(c for prefix, c in COLORS.items() if side.startswith(prefix)))
            plt.annotate(f"{value:,.0f}", (value, y), xytext=(4, 0), textcoords="offset points", va="center",
                         fontsize=8)
            ticks.append(y)
            names.append(side)
        y -= 1.2
    plt.yticks(ticks, names)
    plt.xticks([])
    plt.margins(x=0.12)
    plt.ylim(y + 0.5, 0.7)  # room for the first group's name
    plt.title(title, fontsize=10, loc="left")
    plt.gca().spines[["top", "right", "bottom"]].set_visible(False)
    save(path)


def result_of(path: pathlib.Path) -> dict[str, Any] | None:
    """The result of the last run, if there was one."""
    return json.loads(path.read_text())["result"] if path.exists() else None


def loader(result: dict[str, Any], images: pathlib.Path) -> str:
    table = ["| features | threads | engine | samples/s | samples per CPU second |", "|---|---|---|---|---|"]
    groups = []
    for s in result["scans"]:
        groups.append((f"{s['share']:.0%} of the features, {s['threads']} thread{'s' * (s['threads'] > 1)}",
                       [(m["side"], m["samples_per_second"]) for m in s["measures"]]))
        table += [
            f"| {s['share']:.0%}, {len(s['features'])} | {s['threads']} | {m['side']} | "
            f"{m['samples_per_second']:,.0f} | "
            f"{m['samples_per_cpu_second']:,.0f} |" for m in s["measures"]
        ]
    out = []
    for share in {s["share"]: None for s in result["scans"]}:
        bars(images / f"pytorch-rate-{100 * share:.0f}.svg", "Reading into tensors and KeyedJaggedTensors, samples/s",
             [g for g, s in zip(groups, result["scans"]) if s["share"] == share])
        out += [f"![Samples per second, {share:.0%}](../img/pytorch-rate-{100 * share:.0f}.svg)", ""]
    out += [
        *table, "",
        "| features | threads | output | Python, ms/batch | Python, share of an epoch | consumer, time per batch | "
        "its waits, share of an epoch | waits for the first batch |",
        "|---|---|---|---|---|---|---|---|"
    ]
    for s in result["scans"]:
        for c in s["costs"]:
            stall = c["stall"]
            # Results of before have no wait for the first batch.
            first = ""
            if "waited_for_first_seconds" in stall:
                first = f"{stall['waited_for_first_seconds'] / stall['seconds']:.0%}"
            out.append(
                f"| {s['share']:.0%} | {s['threads']} | {c['output']} | {c['python_ms_a_batch']:.3f} | "
                f"{c['python_share']:.0%} | "
                f"{stall['consumer_ms']:g} ms | {stall['waited_seconds'] / stall['seconds']:.0%} | "
                f"{first} |")
    if f := result["forward"]:
        bars(images / "pytorch-forward.svg", f"EmbeddingBagCollection on the CPU, dim {f['dim']}, samples/s",
             [("read and forward", [(m["side"], m["samples_per_second"]) for m in f["measures"]]),
              ("forward alone", [(m["side"], m["forward_samples_per_second"]) for m in f["measures"]])])
        out += [
            "", "![EmbeddingBagCollection](../img/pytorch-forward.svg)", "",
            f"| EmbeddingBagCollection, dim {f['dim']}, on the CPU | read and forward, samples/s | forward alone |",
            "|---|---|---|"
        ]
        out += [
            f"| {m['side']} | {m['samples_per_second']:,.0f} | {m['forward_samples_per_second']:,.0f} |"
            for m in f["measures"]
        ]
    return "\n".join(out)


def startup(result: dict[str, Any], images: pathlib.Path) -> str:
    tables = result["tables"]
    bars(images / "pytorch-start.svg", "From import to the first batch, without the interpreter and torch, ms",
         [(f"{t['profile']}: {t['features']:,} of {t['columns']:,} columns", [(s["side"], s["median_own_ms"])
                                                                              for s in t["sides"]]) for t in tables])
    out = [
        "![Time to the first batch](../img/pytorch-start.svg)", "",
        "| table | engine | ms to the first batch | step by step |", "|---|---|---|---|"
    ]
    for t in tables:
        for s in t["sides"]:
            steps = ", ".join(f"{k} {v:.0f}" for k, v in s["steps_ms"].items())
            out.append(
                f"| {t['profile']}, {t['features']:,} of {t['columns']:,} columns | {s['side']} | "
                f"{s['median_own_ms']:.0f} | {steps} |"
            )
    return "\n".join(out)


def memory(result: dict[str, Any], images: pathlib.Path) -> str:
    scans = result["scans"]
    bars(images / "pytorch-memory.svg", "Peak memory above a process with torch, MiB",
         [(f"{s['share']:.0%} of the features", [(m["side"], m["peak_bytes"] / 2**20) for m in s["sides"]])
          for s in scans])
    out = [
        "![Peak memory](../img/pytorch-memory.svg)", "",
        f"| features | engine | peak of {result['epochs']} epochs, MiB | held after the first epoch | after the last |",
        "|---|---|---|---|---|"
    ]
    for s in scans:
        for m in s["sides"]:
            after = [x / 2**20 for x in m["after_epochs_bytes"]]
            out.append(
                f"| {s['share']:.0%}, {s['features']} | {m['side']} | {m['peak_bytes'] / 2**20:.0f} | {after[0]:.0f} "
                f"| {after[-1]:.0f} |"
            )
    return "\n".join(out)


PARTS = {"pytorch": loader, "pytorch-startup": startup, "pytorch-memory": memory}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    p.add_argument("--results", default=str(ROOT / "bench" / "results"), help="directory of the results")
    p.add_argument("--page", default=str(ROOT / "docs" / "guide" / "pytorch-figures.md"))
    p.add_argument("--images", default=str(ROOT / "docs" / "img"))
    a = p.parse_args()
    results, images, page = pathlib.Path(a.results), pathlib.Path(a.images), pathlib.Path(a.page)
    body = "\n\n".join(
        draw(result, images) for name, draw in PARTS.items() if (result := result_of(results / f"{name}.json")))
    text = page.read_text()
    text = re.sub(r"<!-- figures -->\n.*?<!-- /figures -->", lambda _: f"<!-- figures -->\n{body}\n<!-- /figures -->",
                  text, flags=re.S)
    page.write_text(text)


if __name__ == "__main__":
    main()
