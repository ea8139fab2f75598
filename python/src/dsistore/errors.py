"""The exceptions of dsistore. All are DsistoreError; some are also the built-in one that callers would look for."""

from __future__ import annotations

from typing import Any


class DsistoreError(Exception):
    """The base class of the exceptions of this package."""


class NotFoundError(DsistoreError, LookupError):
    """There is no such table, snapshot or feature; the message suggests similar names."""


class UsageError(DsistoreError, ValueError):
    """The arguments are wrong. The message says what would be right."""


class CorruptError(DsistoreError):
    """Stored bytes are wrong. ``object``, ``feature``, ``stripe`` and ``offset`` say where, or are None."""

    def __init__(self, message: str, object: str | None = None, feature: str | None = None,
                 stripe: int | None = None, offset: int | None = None):
        super().__init__(message)
        self.object = object
        self.feature = feature
        self.stripe = stripe
        self.offset = offset

    def __reduce__(self) -> Any:
        return (CorruptError, (self.args[0], self.object, self.feature, self.stripe, self.offset))


class UnsupportedError(DsistoreError):
    """The bytes were written by a newer version."""


class ConflictError(DsistoreError):
    """Another commit changed the same data first. Nothing was changed."""


class ExistsError(UsageError):
    """An overlay, a sample list, a branch or a feature of this name exists. Nothing was changed."""


class DuplicateSourceError(DsistoreError):
    """The table already holds a source that is being ingested."""


class ForkError(DsistoreError, RuntimeError):
    """The object was opened before this process was forked, or the engine cannot be loaded in a forked process."""


_KINDS: dict[str, type[DsistoreError]] = {
    "not_found": NotFoundError,
    "usage": UsageError,
    "unsupported": UnsupportedError,
    "conflict": ConflictError,
    "duplicate_source": DuplicateSourceError,
    "exists": ExistsError,
}


_DAMAGED = ("; `dsi verify STORE --deep` lists all damage, and `dsi repair STORE` says what can be done about it, "
            "and what that loses")


def from_wire(error: dict[str, Any]) -> DsistoreError:
    """The exception that an answer of the engine means."""
    if error["kind"] == "corrupt":
        return CorruptError(error["message"] + _DAMAGED, error.get("object"), error.get("feature"), error.get("stripe"),
                            error.get("offset"))
    return _KINDS.get(error["kind"], DsistoreError)(error["message"])
