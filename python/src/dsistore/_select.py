"""How rows, features and their order are named when something is asked of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from . import errors


@dataclass(frozen=True)
class SampleList:
    """A named set of rows. definition says how it was made; added is the first snapshot that has it. rows is the number
    of its rows that readers see, share is their share of the table, and deleted is the number of its deleted rows."""

    name: str
    definition: str
    added: int
    rows: int
    share: float
    deleted: int


@dataclass(frozen=True)
class Shuffle:
    """The order of an epoch. The shuffle buffer holds ``buffer_stripes`` stripes, and their sessions (or rows) are
    interleaved at random. With unit "session", sessions stay whole, so their rows still share values in a batch."""

    unit: str = "session"  # none, session or row
    buffer_stripes: int = 16


class ReadOptions(TypedDict, total=False):
    """The options of everything that reads rows in order. Table.scan and Table.torch describe them."""

    columns: str | Sequence[str] | None
    partitions: str | None
    filter: str | None
    sample_list: str | SampleList | None
    downsample: str | None
    overlay: str | Sequence[str]
    batch_size: int
    workers: int | None
    memory: int | None
    job: str | None
    lease: bool


def names(of: str | Sequence[str]) -> list[str]:
    """Names, of one or of several."""
    return [of] if isinstance(of, str) else list(of)


def selected(features: str | Sequence[str] | None, columns: str | Sequence[str] | None,
             default: str | Sequence[str] | None = None) -> str | Sequence[str]:
    """What features=, or its other name columns=, selects: one of them is given, unless there is a default."""
    if features is not None and columns is not None:
        raise errors.UsageError(f"features {features!r} and columns {columns!r}: they are the same, give one")
    for given in (features, columns, default):
        if given is not None:
            return given
    raise errors.UsageError("features: give names, globs or sets")


def dedup_form(dedup: bool | str) -> str:
    """The engine's name of what dedup= asks for."""
    if dedup not in (False, True, "partial"):
        raise errors.UsageError(f"dedup {dedup!r}: want False, True or 'partial'")
    return "partial" if dedup == "partial" else "ikjt" if dedup else "kjt"


def literal(name: str) -> str:
    """An entry that selects the feature of this name alone, whatever characters of globs it has."""
    text = re.sub(r"[*?\\]", r"\\\g<0>", name)
    return "\\" + text if text.startswith("@") else text


def operand(name: str) -> str:
    """A feature's name as a filter has it: in double quotes, because some names are words of filters, such as true."""
    return '"' + name.replace('"', '""') + '"'


def list_name(of: str | SampleList | None) -> str | None:
    """The name of a sample list, or None."""
    return of.name if isinstance(of, SampleList) else of
