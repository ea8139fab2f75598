"""The frame of the programs here that train a model on a device with batches of several readers."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import measure
import torch

import dsistore

Shares = Callable[[argparse.Namespace, pathlib.Path, dsistore.Table, torch.device], Iterable[dict[str, Any]]]


def arguments(doc: str) -> argparse.ArgumentParser:
    """What all of these programs take."""
    p = argparse.ArgumentParser(description=doc.partition("\n\n")[0])
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--rows", type=int, help="rows of the table; default: the profile's 100,000")
    p.add_argument("--share", type=float, nargs="+", default=[0.1, 1.0], help="shares of the features to read")
    p.add_argument("--threads", type=int, default=2, help="threads that read, of each side")
    p.add_argument("--rounds", type=int, default=5, help="rounds that count; one more runs before")
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--dim", type=int, default=64, help="of the embeddings")
    p.add_argument("--embeddings", type=int, default=100_000, help="rows of each embedding table")
    p.add_argument("--rate", type=float, default=0.01, help="learning rate")
    p.add_argument("--dir", default="out/pytorch", help="where the data lies; what is there already is used")
    p.add_argument("--results", default="bench/results", help="directory for the results as JSON; empty: none")
    return p


def run(a: argparse.Namespace, name: str, shares: Shares, show: Callable[[dict[str, Any]], None], **more: Any) -> None:
    """Measures the shares, shows them, and writes them with the arguments and with more as results of this name."""
    machine, device = measure.machine(), torch.device(a.device)
    machine["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    data = measure.table(pathlib.Path(a.dir) / (f"small-{a.rows}" if a.rows else "small"), "small", a.rows)
    table = dsistore.open(data / "store").table("workload")
    result = {"batch_size": a.batch_size, "threads": a.threads, "dim": a.dim, "embeddings": a.embeddings, **more,
              "shares": list(shares(a, data, table, device))}
    show(result)
    measure.write(a.results, name, result, machine)
