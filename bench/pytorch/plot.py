"""Draws the newest results of loader.py and startup.py as docs/img/pytorch-*.svg, and writes them into the guide.

    python bench/pytorch/plot.py --help
"""

from __future__ import annotations

import argparse
import html
import json
import pathlib
import re
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]

WIDTH, LABEL, BAR, GAP = 760, 250, 18, 6
COLORS = {"dsistore": "#1f6feb", "Parquet": "#b0b7bf"}


def bars(title: str, unit: str, groups: list[tuple[str, list[tuple[str, float]]]]) -> str:
    """Horizontal bars from 0, in groups, each with its number."""
    most = max(v for _, rows in groups for _, v in rows)
    out, y = [], 34
    for name, rows in groups:
        if name:
            out.append(f'<text x="0" y="{y + 12}" font-weight="bold">{html.escape(name)}</text>')
            y += 22
        for label, value in rows:
            width = (WIDTH - LABEL - 110) * value / most
            color = next(c for side, c in COLORS.items() if label.startswith(side))
            out.append(f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{html.escape(label)}</text>')
            out.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{color}"/>')
            out.append(f'<text x="{LABEL + width + 6:.1f}" y="{y + 13}">{value:,.0f}</text>')
            y += BAR + GAP
        y += 8
    body = "\n".join(out)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="{WIDTH}" height="{y}" fill="white"/>\n'
            f'<text x="0" y="16" font-size="14">{html.escape(title)}, {html.escape(unit)}</text>\n{body}\n</svg>\n')


def newest(directory: pathlib.Path, name: str) -> dict[str, Any] | None:
    found = sorted(directory.glob(f"{name}-2*.json"))
    return json.loads(found[-1].read_text()) if found else None


def loader(report: dict[str, Any], images: pathlib.Path) -> str:
    """Draws the results of loader.py and returns them as tables."""
    result = report["result"]
    out = ["| features | threads | side | samples/s |", "|---|---|---|---|"]
    groups = []
    for s in result["scans"]:
        groups.append((f"{s['share']:.0%} of the features, {s['threads']} thread{'s' * (s['threads'] > 1)}",
                       [(m["side"], m["samples_per_second"]) for m in s["measures"]]))
        out += [f"| {s['share']:.0%}, {len(s['features'])} | {s['threads']} | {m['side']} | {m['samples_per_second']:,.0f} |" for m in s["measures"]]
    (images / "pytorch-rate.svg").write_text(bars("Reading into tensors and KeyedJaggedTensors", "samples/s", groups))
    out += ["", "| features | threads | output | Python, ms a batch | share of an epoch | a consumer that takes | waits, of the epoch |",
            "|---|---|---|---|---|---|---|"]
    for s in result["scans"]:
        for c in s["costs"]:
            stall = c["stall"]
            out.append(f"| {s['share']:.0%} | {s['threads']} | {c['output']} | {c['python_ms_a_batch']:.3f} | {c['python_share']:.0%} | "
                       f"{stall['consumer_ms']:g} ms | {stall['waited_seconds'] / stall['seconds']:.0%} |")
    if f := result["forward"]:
        (images / "pytorch-forward.svg").write_text(bars(
            f"EmbeddingBagCollection on the CPU, dim {f['dim']}", "samples/s",
            [("read and forward", [(m["side"], m["samples_per_second"]) for m in f["measures"]]),
             ("forward alone", [(m["side"], m["forward_samples_per_second"]) for m in f["measures"]])]))
        out += ["", f"| EmbeddingBagCollection, dim {f['dim']}, on the CPU | read and forward, samples/s | forward alone |", "|---|---|---|"]
        out += [f"| {m['side']} | {m['samples_per_second']:,.0f} | {m['forward_samples_per_second']:,.0f} |" for m in f["measures"]]
    return "\n".join(out)


def startup(report: dict[str, Any], images: pathlib.Path) -> str:
    """Draws the results of startup.py and returns them as a table."""
    tables = report["result"]["tables"]
    (images / "pytorch-start.svg").write_text(bars(
        "From import to the first batch, without the interpreter and torch", "ms",
        [(f"{t['profile']}: {t['features']:,} of {t['columns']:,} columns", [(s["side"], s["median_own_ms"]) for s in t["sides"]])
         for t in tables]))
    out = ["| table | side | ms to the first batch | step by step |", "|---|---|---|---|"]
    for t in tables:
        for s in t["sides"]:
            steps = ", ".join(f"{k} {v:.0f}" for k, v in s["steps_ms"].items())
            out.append(f"| {t['profile']}, {t['features']:,} of {t['columns']:,} columns | {s['side']} | {s['median_own_ms']:.0f} | {steps} |")
    return "\n".join(out)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    p.add_argument("--results", default=str(ROOT / "bench" / "results"), help="directory of the results")
    p.add_argument("--guide", default=str(ROOT / "docs" / "guide-pytorch.md"))
    p.add_argument("--images", default=str(ROOT / "docs" / "img"))
    a = p.parse_args()
    results, images, guide = pathlib.Path(a.results), pathlib.Path(a.images), pathlib.Path(a.guide)
    parts = []
    if report := newest(results, "pytorch"):
        parts += ["![Samples a second](img/pytorch-rate.svg)", loader(report, images),
                  "![EmbeddingBagCollection](img/pytorch-forward.svg)" if report["result"]["forward"] else ""]
    if report := newest(results, "pytorch-startup"):
        parts += ["![Time to the first batch](img/pytorch-start.svg)", startup(report, images)]
    text = guide.read_text()
    body = "\n\n".join(x for x in parts if x)
    text = re.sub(r"<!-- figures -->\n.*?<!-- /figures -->", lambda _: f"<!-- figures -->\n{body}\n<!-- /figures -->", text, flags=re.S)
    guide.write_text(text)


if __name__ == "__main__":
    main()
