"""Tables and plans as the engine's requests name them. Both are values: they pickle."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _engine
from ._root import Root
from ._select import names


@dataclass(frozen=True)
class Feature:
    """One feature of a table's schema, or a partition key, which has no id.

    kind is dense, sparse, weighted, embedding, bytes or string. elem is the type of its numbers, int8 to uint64,
    float32, float64 or bool, empty for bytes and string. score is the type of the weights of a weighted feature, dim
    the length of an embedding. role is feature, label, session key, request key, user key, time key or partition key.
    logical is the Arrow type that a scan restores, where the rest does not say it. origin_column and origin_key are the
    source's column and the key in its map, or the member of its struct.
    """

    name: str
    id: str
    kind: str
    elem: str
    role: str
    score: str = ""
    dim: int = 0
    logical: str = ""
    origin_column: str = ""
    origin_key: str = ""


@dataclass(frozen=True)
class Plan:
    """What a reader will do. text is opaque, and the same for the same data and options; hash is that of text. features
    has the members of Feature, as dicts, without those that are empty by default: a plan may have thousands of
    them."""

    text: str
    hash: str
    snapshot: int
    rows: int
    batches: int
    features: list[dict[str, Any]]

    @functools.cached_property
    def parts(self) -> dict[str, Any]:
        """What tells this plan from another, by the names of the options: small, as a part of states. Texts and lists
        are digests."""
        plan = json.loads(self.text)
        shuffle = plan.get("shuffle") or {}
        of: dict[str, Any] = {name: [(f["name"], f[key]) for f in plan["features"] if key in f] for name, key in (
            ("labels", "role"), ("integers", "exact"), ("expand", "expanded"), ("transforms", "transforms"))}
        of["labels"] = [name for name, role in of["labels"] if role == "label"]
        other = {"role", *("exact", "expanded", "transforms")}
        of["features"] = [{k: v for k, v in f.items() if k not in other} for f in plan["features"]]
        for name, key in (("partitions", "partition"), ("filter", "filter"), ("downsample", "downsample"), (
                "sample_list", "sample_list"), ("overlay", "overlays"), ("output", "dedup")):
            of[name] = plan.get(key)
        of["branch"] = [plan.get("branch"), plan.get("branch_list")]
        of["shuffle"] = {k: v for k, v in shuffle.items() if k != "seed"}
        return {
            "table": plan["table"], "snapshot": self.snapshot, "batch_size": plan["batch_size"],
            "seed": shuffle.get("seed"), **{name: f"{zlib.crc32(json.dumps(of[name]).encode()):08x}" for name in of},
        }


@dataclass(frozen=True)
class TableRef:
    """A table at one version, or as a branch had it when it was opened.

    uri is the store's as the user gave it, params are what each request about the table has: uri, table, snapshot, and
    of a branch branch, overlays and list.
    """

    uri: str
    params: dict[str, Any]

    @property
    def root(self) -> Root:
        """Where the store is."""
        root: Root = self.params["uri"]
        return root

    def features(self, select: str | Sequence[str], overlay: str | Sequence[str] = ()) -> list[Feature]:
        """The features that names, globs or sets select."""
        found = _engine.call("features", **self.params, features=names(select), overlay=names(overlay) or None)
        return [Feature(**f) for f in found]

    def plan(self, **params: Any) -> Plan:
        """A plan over the table; params are those of the engine's method "plan" besides the table's."""
        p = _engine.call("plan", **self.params, **params)
        return Plan(text=p.pop("plan"), **p)
