"""Sample lists of a table, and keys as the engine takes them."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _engine, _ingest, errors
from ._select import SampleList, list_name


class Samples:
    """The sample lists of a table, in its newest snapshot or in the version at which it was opened. Lists are created
    and dropped only in the newest snapshot; the version of this object stays the same."""

    def __init__(self, at: dict[str, Any], newest: Callable[[str], dict[str, Any]]):
        self._at = at
        self._newest = newest

    def create(self, name: str, filter: str | None = None, *, partitions: str | None = None, lists: str | None = None,
               keys: Any = None, key: str | None = None, memory: int | None = None, replace: bool = False,
               dry_run: bool = False) -> dict[str, Any]:
        """Keeps rows under a name, and returns the report of ``dsi samples create``: rows, table_rows, share, and
        counts of keys.

        A row is in the list if all conditions that are given hold, as in ``Table.delete``. lists combines other lists:
        ``"a AND NOT (b OR c)"``. Rows that are ingested later are not in the list. replace replaces a list of the same
        name.

        ExistsError: the name is taken; UsageError: no condition is given, one is wrong, or the table was opened at a
        version or a branch.
        """
        return _ingest.report(_engine.begin(
            "samples_create", **self._newest("sample lists are made"), name=name, filter=filter, partitions=partitions,
            lists=lists, replace=replace or None, dry_run=dry_run or None, **key_params(keys, key, memory),
            **_engine.recorded(_engine.job_name(None))))

    def list(self) -> Sequence[SampleList]:
        """All sample lists, in name order."""
        return [_sample_list(i) for i in _engine.call("samples_list", **self._at)]

    def show(self, name: str) -> SampleList:
        """The sample list of a name; NotFoundError suggests similar names."""
        return _sample_list(_engine.call("samples_list", **self._at, name=name)[0])

    def drop(self, name: str | SampleList) -> None:
        """Drops a sample list. Its rows stay."""
        _engine.call("samples_drop", **self._newest("sample lists are dropped"), name=list_name(name))


def _sample_list(info: dict[str, Any]) -> SampleList:
    return SampleList(name=info["sample_list"], definition=info["definition"], added=info["added"], rows=info["rows"],
                      share=info["share"], deleted=info["rows_deleted"])


def key_params(keys: Any, key: str | None, memory: int | None) -> dict[str, Any]:
    """Keys as the engine takes them: paths, or texts."""
    if keys is None:
        if key is not None:
            raise errors.UsageError(f"key {key!r} without keys")
        return {}
    out = {"key": key, "memory": memory}
    if isinstance(keys, (str, os.PathLike)):
        return {**out, "key_paths": [os.path.abspath(os.fspath(keys))]}
    for name in ("to_pylist", "tolist"):  # of pyarrow; of numpy, pandas and torch
        if hasattr(keys, name):
            keys = getattr(keys, name)()
            break
    try:
        keys = list(keys)
    except TypeError as e:
        raise errors.UsageError(f"keys: {type(keys).__name__}: want a path, or integers or strings") from e
    if keys and all(isinstance(k, os.PathLike) for k in keys):
        return {**out, "key_paths": [os.path.abspath(k) for k in keys]}
    texts = []
    for i, k in enumerate(keys):
        if k is None:
            raise errors.UsageError(f"keys: the one at {i} is None: no row can be named by it")
        try:
            if isinstance(k, bool):
                raise TypeError
            texts.append(k if isinstance(k, str) else str(operator.index(k)))
        except TypeError:
            raise errors.UsageError(f"keys: {k!r} at {i}: want integers or strings") from None
    return {**out, "key_texts": texts}
