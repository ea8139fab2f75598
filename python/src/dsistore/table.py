"""Stores, tables and what can be asked of them."""

from __future__ import annotations

import array
import ctypes
import datetime
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _engine, errors
from ._select import SampleList, list_name, names

if TYPE_CHECKING:
    import pyarrow
    from torch.types import Device

    from .torch import Shuffle, TorchDataset

Version = int | str | datetime.datetime


@dataclass(frozen=True)
class Feature:
    """One feature of a table's schema, or a partition key, which has no id.

    kind is dense, sparse, weighted, embedding, bytes or string; elem the type of its numbers, int8 to uint64, float32, float64 or
    bool, empty for bytes and string; score that of the weights of a weighted feature, dim the numbers that an embedding has.
    role is feature, label, session key, request key, user key, time key or partition key. logical is the Arrow type that a scan
    restores, where the rest does not say it. origin_column and origin_key are the source's column and the key in its map, or the
    member of its struct.
    """

    name: str
    id: str
    kind: str
    elem: str
    score: str
    dim: int
    role: str
    logical: str
    origin_column: str
    origin_key: str


@dataclass(frozen=True)
class Snapshot:
    """An immutable version of a table: the number-th, made by an operation (ingest, overwrite, ...) at a time (UTC).

    rows (without those that are deleted), segments, bytes (stored) and features are those of the whole table at it.
    """

    number: int
    time: datetime.datetime
    operation: str
    rows: int
    segments: int
    bytes: int
    features: int


def _snapshot(info: dict[str, Any]) -> Snapshot:
    # Python before 3.11 aside, fromisoformat takes no more than microseconds.
    text = info["time"].removesuffix("Z")
    whole, _, fraction = text.partition(".")
    time = datetime.datetime.fromisoformat(whole).replace(
        microsecond=int((fraction + "000000")[:6]), tzinfo=datetime.timezone.utc)
    return Snapshot(**{**info, "time": time})


class Store:
    """A root that holds tables: a directory, or file:///path. It pickles. A relative path begins where the process was when it was
    opened."""

    def __init__(self, uri: str | os.PathLike[str]):
        self.uri = os.fspath(uri)
        # What the engine is asked for: it, and processes that this is sent to, may be elsewhere by then.
        self._root = os.path.abspath(self.uri) if self.uri and "://" not in self.uri else self.uri

    def __repr__(self) -> str:
        return f"dsistore.open({self.uri!r})"

    def tables(self) -> list[str]:
        """The names of all tables."""
        names: list[str] = _engine.call("tables", uri=self._root)
        return names

    def table(self, name: str, version: Version | None = None, *, branch: str | None = None) -> Table:
        """A table at a version: a snapshot's number, or a time; default: the latest snapshot now. With a branch, or as
        ``"ads@exp"``, it is what the branch reads: its snapshot, under its overlays, and of the rows those in its sample list.

        NotFoundError names the nearest when there is no such table or branch.
        """
        return Table(self, name, version, branch)

    def ingest(self, table: str, source: Any, *, format: str = "auto", session_key: str | None = None,
               time_key: str | None = None, partition_by: str | None = None,
               mapping: str | os.PathLike[str] | None = None, ddl: str | os.PathLike[str] | None = None,
               memory: int | None = None, overwrite: bool = False, take_copies: bool = False, init: bool = False, on_bad_row: str = "fail",
               bad_row_report: str | os.PathLike[str] | None = None, profile: Literal["speed", "balanced", "size"] | None = None,
               progress: Callable[[str, int, int, int], None] | None = None) -> dict[str, Any]:
        """Lands a dump in a table, which is made if need be, as one commit, and returns the report of ``dsi ingest``.

        source is a path (a file, or a directory, whose ``key=value`` parts name partitions), a list of paths, or anything that
        has ``__arrow_c_stream__``: a pyarrow Table or RecordBatchReader, a DuckDB relation, a Polars DataFrame, a Scan; or a
        pyarrow Dataset or Scanner. A stream is read once, in the order that it has, and its values are not copied. memory bounds, in
        bytes, what the ingest holds; the values of a pyarrow Table or RecordBatch, which are there anyway, do not count. profile is
        what the table is stored for, speed, balanced or size, and is remembered; default: what the table remembers, else balanced. take_copies takes
        files that hold the same bytes for the same partition, each for its rows; else they are refused. init makes the store in a
        directory that is not empty, beside what is there. progress is called now
        and then with (phase, rows, bytes done, bytes in all). Interrupted or failed, it leaves the table as it was.
        """
        params: dict[str, Any] = dict(
            uri=self._root, table=table, session_key=session_key, time_key=time_key, partition_by=partition_by,
            mapping=_path(mapping), ddl=_path(ddl), memory=memory, overwrite=overwrite, take_copies=take_copies, init=init,
            on_bad_row=on_bad_row, bad_row_report=_path(bad_row_report), profile=profile,
        )
        return _land("ingest", source, format, progress, params)


def _land(method: str, source: Any, format: str, progress: Callable[[str, int, int, int], None] | None,
          params: dict[str, Any]) -> dict[str, Any]:
    """Runs a method of the engine that reads a source, paths or anything that gives Arrow, and returns its report."""
    if hasattr(source, "scanner"):  # a pyarrow Dataset
        source = source.scanner()
    if hasattr(source, "to_reader") and not hasattr(source, "__arrow_c_stream__"):  # a pyarrow Scanner
        source = source.to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        capsule = source.__arrow_c_stream__()
        started = _engine.begin_stream(method, _address(capsule), resident=_resident(source), **params)
    else:
        paths = source if isinstance(source, (list, tuple)) else [source]
        if not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
            raise errors.UsageError(
                f"source: {type(source).__name__}: want a path, a list of paths or an Arrow stream (of batches: "
                "pyarrow.RecordBatchReader.from_batches)")
        started = _engine.begin(
            method, paths=[os.fspath(p) for p in paths], format=None if format == "auto" else format, **params)
    return _report(started, progress)


def _report(started: int, progress: Callable[[str, int, int, int], None] | None) -> dict[str, Any]:
    """The report of a call that was begun. Interrupted, it is cancelled, and that is waited for."""
    def told(state: dict[str, Any]) -> None:
        if progress is not None and state["phase"]:
            progress(state["phase"], state["rows"], state["bytes"], state["total_bytes"])

    report: dict[str, Any] = _engine.wait(started, None if progress is None else told, until_cancelled=True)
    return report


def _resident(source: Any) -> bool | None:
    """True when the rows of source are in memory whether or not they are read: those of a pyarrow Table or RecordBatch."""
    arrow = sys.modules.get("pyarrow")
    return True if arrow is not None and isinstance(source, (arrow.Table, arrow.RecordBatch)) else None


def _path(p: str | os.PathLike[str] | None) -> str | None:
    return None if p is None else os.fspath(p)


class Table:
    """A table at one snapshot, or as a branch had it when it was opened. It pickles, and reads the same wherever it is unpickled.

    name is the table's, branch that of the branch or None, and len() the rows that a scan gives: of a branch with a sample list those in
    it.
    """

    def __init__(self, store: Store, name: str, version: Version | None = None, branch: str | None = None):
        self.store = store
        self.name = name
        self._place: dict[str, Any] = {"uri": store._root, "table": name}
        asked = dict(self._place)
        if isinstance(version, bool) or not isinstance(version, (int, str, datetime.datetime, type(None))):
            raise errors.UsageError(f"version {version!r}: want a snapshot's number or a time")
        if isinstance(version, int):
            if version < 1:  # the engine takes 0 for the latest
                raise errors.UsageError(f"version {version}: snapshots count from 1")
            asked["snapshot"] = version
        elif isinstance(version, datetime.datetime):
            asked["time"] = version.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        elif isinstance(version, str):
            asked["time"] = version if "T" in version else version + "T00:00:00Z"
        answer = _engine.call("table", **asked, branch=branch)
        self._place.update(answer.pop("place", {}))
        self.snapshot = _snapshot(answer)
        self._place["snapshot"] = self.snapshot.number
        self.name = self._place["table"]
        self.branch: str | None = self._place.get("branch")
        self._rows = None if self._place.get("list") else self.snapshot.rows  # None: nobody has asked yet
        self._pinned = version is not None or self.branch is not None

    def __repr__(self) -> str:
        version = self.snapshot.number if self.branch is None else f"branch={self.branch!r}"
        return f"{self.store!r}.table({self.name!r}, {version})"

    def __len__(self) -> int:
        if self._rows is None:
            self._rows = int(_engine.call("rows", **self._place))
        return self._rows

    def _newest(self, what: str) -> dict[str, Any]:
        """The table, for what changes its newest snapshot: not of one that was opened at a version or a branch, which would not show it."""
        if self._pinned:
            version = f"snapshot {self.snapshot.number}" if self.branch is None else f"branch {self.branch}"
            raise errors.UsageError(f"{what} in the table's newest snapshot, and this is {version}: open the table without a version or branch")
        return {"uri": self.store._root, "table": self.name}

    def snapshots(self) -> list[Snapshot]:
        """All snapshots of the table, oldest first."""
        return [_snapshot(i) for i in _engine.call("snapshots", **self._place)]

    def features(self, select: str | Sequence[str] = "@all", *, overlay: str | Sequence[str] = ()) -> list[Feature]:
        """The features that names, globs (``user_*``) or sets (``@all``, ``@labels``, ``@keys``, ``@partitions``) select, under
        overlays as in ``scan``."""
        return [Feature(**f) for f in _engine.call("features", **self._place, features=names(select), overlay=names(overlay) or None)]

    def scan(self, features: str | Sequence[str] = "@all", *, partitions: str | None = None, filter: str | None = None,
             sample_list: str | SampleList | None = None, downsample: str | None = None, overlay: str | Sequence[str] = (),
             batch_size: int = 65536,
             fold: bool = False, workers: int | None = None, memory: int | None = None, job: str | None = None, lease: bool = True) -> Scan:
        """The rows as Arrow. partitions is a predicate over partition keys: ``ds >= '2026-11-01' AND hr = 3``.

        filter is one over features too: only rows for which it is true are given. ``click = 1 AND country IN ('US', 'CA')``,
        ``dwell BETWEEN 3 AND 10``, ``len(hist) > 3``, ``contains(hist, 17)``, ``any(hist) > 100``, ``name LIKE 'a%'``,
        ``x IS NULL``, and ``click = 1 OR sample(0.1, key=request_id, seed=7)``, which takes the same tenth of all keys for ever.
        It is SQL's: a comparison with null is not true. NaN is compared as numpy does. The features that it is about are
        read at once, of the segments and stripes that statistics do not decide, so that len() and batches are exact.

        sample_list is the name of a list of rows, or one of ``samples.list()``: only rows in it are given. It must be there at the
        table's version.

        downsample leaves rows of a class out but for a sample: of ``click = 0 AND sample(0.1, key=request_id, seed=7)`` a tenth of the
        rows with click = 0 stays. The column sample_weight, the last, is 10 for them and 1 for all others.

        overlay is the name of an overlay, or a list of names, the lowest first: features come from them where they have values, and
        from those of the branch or the table elsewhere, as each overlay declares. Filters see what they make of the table.

        fold puts the features of a source map or struct back into one column. batch_size bounds the rows of a record batch,
        workers the engine's threads, memory the bytes of stripes in memory. job is what usage records call this: default, DSISTORE_JOB of
        the environment, else the name of the program. lease=False takes no lease while the rows are read, as where the store may not be
        written to: what expires meanwhile may go. Nothing is read yet.

        NotFoundError: no such feature or overlay; UsageError: the predicate makes no sense.
        """
        if batch_size < 1:
            raise errors.UsageError(f"batch_size {batch_size}: want 1 or more")
        plan = _engine.call("plan", **self._place, features=names(features), partitions=partitions, filter=filter,
                            sample_list=list_name(sample_list), downsample=downsample, overlay=names(overlay) or None,
                            batch_size=batch_size)
        return Scan(self.store._root, plan, {"fold": fold, "workers": workers, "memory": memory, "no_lease": not lease or None}, _engine.job_name(job))

    def delete(self, filter: str | None = None, *, partitions: str | None = None, sample_list: str | SampleList | None = None,
               keys: Any = None, key: str | None = None, memory: int | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Deletes rows of the table's newest snapshot, at once, in a new one, and returns the report of ``dsi delete``: rows_deleted,
        rows_left, and segments, with the rows of each.

        Rows go that are in all that is given: those for which filter is true, of the partitions, in the sample list, that have one of
        the keys. keys is a path of a file, a list of paths (pathlib's), or the keys themselves: a list, a numpy or pyarrow array of
        integers or strings; key is the feature that has them, by default the request key. The report says how many keys no row has.
        memory bounds, in bytes, the keys held at once. dry_run reports, and deletes nothing.

        This object, and every other reader of an older snapshot, goes on reading what it read: ``store.table(name)`` is the table
        without the rows. Bytes stay until ``dsi erase``. Rows ingested meanwhile stay.

        UsageError: nothing is given, or it makes no sense, or the table was opened at a version or a branch; NotFoundError: no such
        feature or list.
        """
        started = _engine.begin(
            "delete", **self._newest("rows are deleted"), filter=filter, partitions=partitions,
            sample_list=list_name(sample_list), dry_run=dry_run or None, **_keys(keys, key, memory),
            **_engine.recorded(_engine.job_name(None)))
        report: dict[str, Any] = _engine.wait(started, until_cancelled=True)
        return report

    @property
    def samples(self) -> Samples:
        """The table's sample lists: rows kept under a name."""
        return Samples(self)

    def take(self, rows: Any, features: str | Sequence[str] = "@all", *, overlay: str | Sequence[str] = (), fold: bool = False,
             workers: int | None = None, memory: int | None = None, job: str | None = None, lease: bool = True) -> pyarrow.Table:
        """The rows at places in the order of the table, counted from 0, as a pyarrow Table: in the order given, a place as often as it
        is given.

        rows is any sequence of integers, a numpy or pyarrow array or a tensor among them. The order of the table is that in which
        ``scan`` without partitions gives its rows. Only the stripes that the rows are in are read; those that are asked for
        again are kept decoded, and taking from them is quicker, in half of memory (bytes, default 256 MiB) for each of the two
        selections of features that were used last. overlay, fold, workers, job and lease are as in ``scan``. Of a branch with a sample list
        the rows in it are counted.

        UsageError: the table has no such row; NotFoundError: no such feature.
        """
        records = _engine.call("take", **self._place, features=names(features), following=_places(rows), fold=fold or None,
                               overlay=names(overlay) or None, workers=workers, memory=memory, no_lease=not lease or None,
                               **_engine.recorded(_engine.job_name(job)))
        return _table(_Records(records))

    def lookup(self, keys: Any, key: str | None = None, *, memory: int | None = None, job: str | None = None) -> dict[str, Any]:
        """Where the rows are that have one of the keys, as ``dsi lookup --json`` says it: rows, how many; segments, of each its id,
        partition, the rows in it and their positions in the table, which ``take`` takes; keys, with how many of them no row has.

        keys and key are as in ``delete``. Of large segments only the tables of keys are read, and the stripes that these name.

        UsageError: the feature is no integer, string or bytes, or there is no request key and no key is given; NotFoundError: no such feature.
        """
        started = _engine.begin("lookup", **self._place, **_keys(keys, key, memory), **_engine.recorded(_engine.job_name(job)))
        found: dict[str, Any] = _engine.wait(started, until_cancelled=True)
        return found

    def overlay(self, name: str, source: Any = None, *, expr: str | Sequence[str] | None = None,
                key: str | Sequence[str] | None = None, features: Sequence[str] | None = None, format: str = "auto",
                mapping: str | os.PathLike[str] | None = None, ddl: str | os.PathLike[str] | None = None,
                over: str | Sequence[str] = (), label: bool = False,
                missing_rows: Literal["fallthrough", "null"] = "fallthrough",
                missing_layers: Literal["fallthrough", "null", "refuse"] = "fallthrough",
                replace: bool = False, memory: int | None = None,
                progress: Callable[[str, int, int, int], None] | None = None) -> dict[str, Any]:
        """Lays features over the table, without rewriting it, as one commit, and returns the report of ``dsi overlay add``.

        source  rows to join by a key: what ``Store.ingest`` takes, a path or a pyarrow Table for one
        expr    or what features are computed from: ``label_v2 = click = 1 AND dwell > 10`` is 1, 0, or null where it is unknown;
                ``ctr = clicks / shows`` is a number, float64 where it divides or a feature is a float, else int64, null where it is
                computed from null, divides by 0, or is beyond its type
        key     the feature that the rows of source and of the table have in common, or several that are a key together; default: the
                request key of the table. A key comes once in source, and is not null
        features  those of source to take; default: all but the key. They add features to the table's, or replace some of the same name
        format, mapping, ddl  say how to read source, as in ``Store.ingest``
        over    overlays that the features of expr are read under, the lowest first, besides those of the table and its branch
        label   features that the table does not have are labels
        missing_rows  what the features are in rows of the table that source has not: what they are below, or null
        missing_layers  the same in segments that are ingested later, and in those without any such row; ``refuse``: to read there is an error
        replace drops an overlay of the name, in the same commit
        memory  bounds, in bytes, what is held; progress is called now and then with (phase, rows, bytes done, bytes in all)

        The overlay lies over the newest snapshot of the table, not over this one: open the table again to read it. Interrupted
        or failed, the table is as it was.

        ExistsError: there is an overlay of the name; UsageError: what is asked for makes no sense; NotFoundError: there is no such key or
        feature; ConflictError: others kept changing the table.
        """
        return self._cover(
            name, source, expr, format, progress, key=None if key is None else names(key),
            features=None if features is None else names(features), mapping=_path(mapping), ddl=_path(ddl), over=names(over) or None, label=label,
            missing_rows=missing_rows, missing_layers=missing_layers, replace=replace, memory=memory,
        )

    def extend_overlay(self, name: str, source: Any = None, *, expr: str | Sequence[str] | None = None,
                       key: str | Sequence[str] | None = None, format: str = "auto", mapping: str | os.PathLike[str] | None = None,
                       ddl: str | os.PathLike[str] | None = None, over: str | Sequence[str] = (), memory: int | None = None,
                       progress: Callable[[str, int, int, int], None] | None = None) -> dict[str, Any]:
        """Covers rows that an overlay of the table does not cover, such as those ingested since, as one commit, and returns the report of
        ``dsi overlay extend``: that of ``overlay``, and under ``before`` what was covered before.

        The parameters are those of ``overlay``. source, or the expressions, must have the features of the overlay, in types that its types
        hold. Rows that it covers keep what they have; its missing-value policies stay.

        NotFoundError: there is no such overlay; ConflictError: others kept changing the table. The overlay is part of the table, or
        of a branch: DsistoreError.
        """
        return self._cover(
            name, source, expr, format, progress, key=None if key is None else names(key), mapping=_path(mapping), ddl=_path(ddl),
            over=names(over) or None, memory=memory, extend=True,
        )

    def _cover(self, name: str, source: Any, expr: str | Sequence[str] | None, format: str,
               progress: Callable[[str, int, int, int], None] | None, **more: Any) -> dict[str, Any]:
        """Makes or extends an overlay."""
        exprs = None if expr is None else names(expr)
        if (source is None) == (exprs is None):
            raise errors.UsageError("an overlay is made from a source or from an expression: give one of them")
        params: dict[str, Any] = dict(uri=self.store._root, table=self.name, overlay=name, exprs=exprs, **_engine.recorded(_engine.job_name(None)), **more)
        if source is not None:
            return _land("overlay", source, format, progress, params)
        return _report(_engine.begin("overlay", **params), progress)

    def torch(self, features: str | Sequence[str], *, labels: str | Sequence[str] = (), integers: str | Sequence[str] = (),
              partitions: str | None = None, filter: str | None = None, sample_list: str | SampleList | None = None, downsample: str | None = None,
              overlay: str | Sequence[str] = (),
              batch_size: int = 4096, shuffle: Literal["session", "row"] | Shuffle | None = None,
              seed: int = 0, rank: int | None = None, world_size: int | None = None, output: Literal["kjt", "ikjt"] = "kjt",
              expand: str | Sequence[str] = (), transforms: Mapping[str, str] | None = None, drop_last: bool = False, presence: bool = False,
              device: Device = None, shards: int | None = None, prefetch: int | None = None, workers: int | None = None,
              memory: int | None = None, job: str | None = None, lease: bool = True) -> TorchDataset:
        """An IterableDataset of training batches (dsistore.torch.Batch), prefetched by the engine's threads.

        features    names, globs or sets, as in ``features``; nothing else is read
        labels      the same: of one name ("click") they come as [B], of a list as [B, L]; default: the features that have the role
        integers    the same: dense integers that come as int64, one by one. An integer among the others that float32 does not hold is an
                    error, and never rounded
        partitions  a predicate over partition keys, as in ``scan``
        filter      a predicate over features, as in ``scan``, of values before transforms
        sample_list a list of rows, as in ``scan``
        downsample  leaves rows of a class out but for a sample, as in ``scan``: Batch.sample_weight stands for the rest
        overlay     names of overlays, the lowest first, as in ``scan``
        batch_size  rows of a batch, B
        shuffle     None (the table's order), "session" (sessions stay whole), "row", or a dsistore.torch.Shuffle
        seed        of the shuffle
        rank, world_size  both or neither; default: torch.distributed's, else RANK and WORLD_SIZE of the environment, else 0 of 1;
                    DataLoader's workers have the rank of the process that starts them
        output      "kjt": every row has its lists; "ikjt": lists that rows share come once, with an inverse
        expand      names, globs or sets whose lists come a row each with output="ikjt" too, in Batch.plain_sparse_features
        transforms  what is done to the values of names or globs: {"user_history_*": "first(50) | mod(1000000)"}
        drop_last   leaves out the short batch, and what is too little for all ranks: each rank gives as many batches
        presence    adds masks that tell null from 0 and from the empty list
        device      where batches are moved; default: they stay in the engine's memory, without a copy
        shards      in how many places an epoch is read at once (default: the world size); the order depends on it
        prefetch    batches made ahead; workers: the engine's threads; memory: bytes of stripes in memory
        job         what usage records call this, as in ``scan``
        lease       False: none is taken while batches are read, as in ``scan``

        dsistore.torch.TorchDataset says more of order, ranks and states. NotFoundError: no such feature, or the snapshot is gone;
        UsageError: options that make no sense; ImportError: there is no PyTorch.
        """
        try:
            import torch  # noqa: F401
        except ImportError as e:
            raise ImportError("Table.torch needs PyTorch: pip install 'dsistore[torch]'") from e
        from .torch import TorchDataset

        return TorchDataset(
            self, features, labels=labels, integers=integers, partitions=partitions, filter=filter, sample_list=sample_list, downsample=downsample, overlay=overlay,
            batch_size=batch_size, shuffle=shuffle, seed=seed, rank=rank, world_size=world_size, output=output,
            expand=expand, transforms=transforms, drop_last=drop_last, presence=presence, device=device,
            shards=shards, prefetch=prefetch, workers=workers, memory=memory, job=job, lease=lease)


# struct ArrowArrayStream of the Arrow C stream interface: four functions and a pointer.
_STREAM_BYTES = 5 * ctypes.sizeof(ctypes.c_void_p)
_NAME = b"arrow_array_stream"
_api = ctypes.pythonapi
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyMem_RawCalloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_api.PyMem_RawCalloc.restype = ctypes.c_void_p
_api.PyMem_RawFree.argtypes = [ctypes.c_void_p]
_api.PyMem_RawFree.restype = None


def _address(capsule: Any) -> int:
    address: int = _api.PyCapsule_GetPointer(capsule, _NAME)
    return address


def _capsule(records: int) -> Any:
    """A capsule with a new ArrowArrayStream of the engine's records."""
    address = _api.PyMem_RawCalloc(1, _STREAM_BYTES)
    try:
        _engine.stream(address, records)
    except BaseException:
        _api.PyMem_RawFree(address)
        raise
    return _api.PyCapsule_New(address, _NAME, _engine.destructor())


class _Records:
    """Records of the engine, for one reader."""

    def __init__(self, records: int):
        self._records = records

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _capsule(self._records)


def _reader(stream: Any) -> pyarrow.RecordBatchReader:
    try:
        import pyarrow
    except ImportError as e:
        raise ImportError("to read rows here needs pyarrow: pip install 'dsistore[arrow]'") from e
    return pyarrow.RecordBatchReader.from_stream(stream)


def _table(stream: Any) -> pyarrow.Table:
    reader = _reader(stream)  # first: where pyarrow is missing it says what to install
    import pyarrow

    # By batches, and not read_all, so that the interpreter can be interrupted between two.
    return pyarrow.Table.from_batches(list(reader), reader.schema)


def _places(rows: Any) -> bytes:
    """Places as the engine takes them: 8 bytes each, little endian."""
    kind = getattr(getattr(rows, "dtype", None), "kind", None)
    if kind in ("i", "u"):  # numpy's
        packed: bytes = rows.astype("<i8").tobytes()
        return packed
    for name in ("to_pylist", "tolist"):  # of pyarrow; of torch
        if hasattr(rows, name):
            rows = getattr(rows, name)()
            break
    try:
        rows = list(rows)
        if rows and isinstance(rows[0], (bool, str, bytes)):
            raise TypeError(f"{type(rows[0]).__name__} is no place")
        places = array.array("q", rows)
    except (TypeError, OverflowError) as e:
        raise errors.UsageError(f"rows: want integers: {e}") from e
    if sys.byteorder != "little":
        places.byteswap()
    return places.tobytes()


class Samples:
    """The sample lists of a table, of its newest snapshot, or of the one that it was opened at: what they do does not change the version that
    the table is at, and they are made and dropped in the newest alone."""

    def __init__(self, table: Table):
        self._table = table
        self._place: dict[str, Any] = {"uri": table.store._root, "table": table.name}
        if table._pinned:
            self._place["snapshot"] = table.snapshot.number

    def create(self, name: str, filter: str | None = None, *, partitions: str | None = None, lists: str | None = None,
               keys: Any = None, key: str | None = None, memory: int | None = None, replace: bool = False,
               dry_run: bool = False) -> dict[str, Any]:
        """Keeps rows under a name, and returns the report of ``dsi samples create``: rows, table_rows, share, and what became of keys.

        Rows must be in all that is given, as in ``Table.delete``. lists joins other lists: ``"a AND NOT (b OR c)"``. Rows that are
        ingested later are not in it. replace takes the place of the list that has the name.

        ExistsError: the name is taken; UsageError: nothing is given, it makes no sense, or the table was opened at a version or a branch.
        """
        started = _engine.begin(
            "samples_create", **self._table._newest("sample lists are made"), name=name, filter=filter, partitions=partitions, lists=lists,
            replace=replace or None, dry_run=dry_run or None, **_keys(keys, key, memory),
            **_engine.recorded(_engine.job_name(None)))
        report: dict[str, Any] = _engine.wait(started, until_cancelled=True)
        return report

    def list(self) -> Sequence[SampleList]:
        """All sample lists, in name order."""
        return [_sample_list(i) for i in _engine.call("samples_list", **self._place)]

    def show(self, name: str) -> SampleList:
        """The sample list of a name; NotFoundError names the nearest."""
        return _sample_list(_engine.call("samples_list", **self._place, name=name)[0])

    def drop(self, name: str | SampleList) -> None:
        """Drops a sample list. Its rows stay."""
        _engine.call("samples_drop", **self._table._newest("sample lists are dropped"), name=list_name(name))


def _sample_list(info: dict[str, Any]) -> SampleList:
    return SampleList(name=info["sample_list"], definition=info["definition"], added=info["added"], rows=info["rows"],
                      share=info["share"], deleted=info["rows_deleted"])


def _keys(keys: Any, key: str | None, memory: int | None) -> dict[str, Any]:
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
        if isinstance(k, bool) or not isinstance(k, (int, str)):
            raise errors.UsageError(f"keys: {k!r} at {i}: want integers or strings")
        texts.append(str(k))
    return {**out, "key_texts": texts}


class Scan:
    """Rows as Arrow: anything that takes ``__arrow_c_stream__`` reads it (``pyarrow.table``, DuckDB, ``polars.DataFrame``), any
    number of times, each from the start.

    Record batches share the engine's memory, without a copy, and may outlive the scan. What goes wrong while they are read is
    raised by the reader, in its own exceptions, with the engine's message.
    """

    def __init__(self, uri: str, plan: dict[str, Any], options: dict[str, Any], job: str):
        self._uri = uri
        self._plan = plan
        self._options = options
        self._job = job

    @property
    def rows(self) -> int:
        """How many rows a whole read gives."""
        rows: int = self._plan["rows"]
        return rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule with a new ArrowArrayStream. requested_schema is what a consumer would like; it gets the table's types."""
        options = {**self._options, **_engine.recorded(self._job)}
        records = _engine.call("records_open", uri=self._uri, hash=self._plan["hash"], **options)
        if records is None:  # the engine, perhaps another process's, does not know the plan any more
            records = _engine.call("records_open", uri=self._uri, plan=self._plan["plan"], **options)
        return _capsule(records)

    def reader(self) -> pyarrow.RecordBatchReader:
        """A pyarrow reader of the record batches."""
        return _reader(self)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow Table."""
        return _table(self)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        """The record batches, of batch_size rows but the last."""
        return iter(self.reader())


def open(uri: str | os.PathLike[str]) -> Store:
    """The store at a root: a directory, or file:///path. Nothing is read yet."""
    return Store(uri)
