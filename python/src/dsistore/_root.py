"""Where a store is, and how it is reached: the URI that requests have, with the storage options that open was given."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Mapping
from typing import Any

from . import _credentials, errors

# What tells a secret from other options is its name.
_SECRET = ("key", "secret", "token", "password", "credential", "sas", "connection")
# Options that are functions, for which a number stands: see _credentials.
PROVIDER = ("credential_provider", "aws_credential_provider")


def values(options: Mapping[str, Any]) -> dict[str, str]:
    """Storage options as the engine takes them. One that is None is not given.

    UsageError: a name is no string.
    """
    for name in options:
        if not isinstance(name, str):
            raise errors.UsageError(f"storage option {name!r}: want a string as the name")
    return {name: _credentials.number(value) if name.lower() in PROVIDER else str(value)
            for name, value in options.items() if value is not None}


class Root(str):
    """A store's URI as the engine takes it. Two of the same text are other stores, and not equal, where their options
    differ: tables of the same names may be in the buckets of two services. One without options equals its text.

    A copy in the process is the same root. A pickle has the options that are not secret: in this process, and in those
    forked from it, it is the same root as long as that lives; another process that opened the store with the same
    options, but for its cache and the secrets, takes its own.
    """

    options: dict[str, str]
    _id: str  # random

    def __new__(cls, uri: str, options: Mapping[str, str] | None = None) -> Root:
        self = super().__new__(cls, uri)
        self.options = dict(options or {})
        self._id = uuid.uuid4().hex
        _living[self._id] = self
        return self

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True and self.options == (other.options if isinstance(other, Root) else {})

    def __ne__(self, other: object) -> bool:  # str has one of its own
        return not self == other

    __hash__ = str.__hash__

    def __copy__(self) -> Root:
        return self

    def __deepcopy__(self, memo: Any) -> Root:
        return self

    @classmethod
    def opened(cls, uri: str, options: Mapping[str, Any] | None) -> Root:
        """The root of a store that this process opens."""
        root = cls(uri, values(options or {}))
        if root.options:
            place = root._place()
            _opened.pop(place, None)
            _opened[place] = root.options  # as the last one
            for old in list(_opened)[:-_MOST]:
                _opened.pop(old, None)
        return root

    def __reduce__(self) -> Any:
        return _sent, (str(self), _public(self.options), self._id)

    def _place(self) -> tuple[str, frozenset[tuple[str, str]]]:
        """What is the same wherever the store is reached in the same way."""
        same = {k.lower(): v for k, v in _public(self.options).items() if not k.lower().startswith("cache_")}
        return str(self), frozenset(same.items())


# The roots of this process that are in use.
_living: weakref.WeakValueDictionary[str, Root] = weakref.WeakValueDictionary()
# The options of the stores that this process opened last, by where they are. They do not go with their roots: a program
# may open a store just for what it is sent.
_MOST = 256
_opened: dict[tuple[str, frozenset[tuple[str, str]]], dict[str, str]] = {}


def _public(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are not secret."""
    return {k: v for k, v in options.items() if not any(word in k.lower() for word in _SECRET)}


def _sent(uri: str, options: dict[str, str], its_id: str) -> Root:
    """A root that was pickled."""
    if (living := _living.get(its_id)) is not None:
        return living
    root = Root(uri, options)
    return Root(uri, _opened.get(root._place(), options))
