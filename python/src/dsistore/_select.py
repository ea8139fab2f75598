"""How rows, features and their order are named when something is asked of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SampleList:
    """A named set of rows. definition says what it was made from, added is the first snapshot that has it. rows counts
    its rows that readers see, share is their share of the table, and deleted counts its rows that are deleted."""

    name: str
    definition: str
    added: int
    rows: int
    share: float
    deleted: int


@dataclass(frozen=True)
class Shuffle:
    """The order of an epoch. The shuffle buffer holds ``buffer_stripes`` stripes, and their sessions (or rows) are
    interleaved at random. Sessions stay whole with unit "session", so that what their rows share stays shared in a
    batch."""

    unit: str = "session"  # none, session or row
    buffer_stripes: int = 16


def names(of: str | Sequence[str]) -> list[str]:
    """Names, of one or of several."""
    return [of] if isinstance(of, str) else list(of)


def literal(name: str) -> str:
    """An entry that selects the feature of this name alone, whatever characters of globs it has."""
    text = re.sub(r"[*?\\]", r"\\\g<0>", name)
    return "\\" + text if text.startswith("@") else text


def list_name(of: str | SampleList | None) -> str | None:
    """The name of a sample list, or None."""
    return of.name if isinstance(of, SampleList) else of
