"""Stores, tables and what can be asked of them."""

from __future__ import annotations

import array
import datetime
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import _arrow, _engine, _ingest, errors
from ._arrow import Scan
from ._ingest import Progress
from ._plan import Feature, TableRef
from ._samples import Samples, key_params
from ._select import ReadOptions, SampleList, Shuffle, dedup_form, list_name, names, selected

if TYPE_CHECKING:
    import pyarrow
    from torch.types import Device

    from ._dataset import BatchOptions
    from .grain import TableSource
    from .jax import JaxDataset, Target
    from .numpy import NumpyDataset
    from .tensorflow import TensorflowDataset
    from .torch import TorchDataset

Version = int | str | datetime.datetime
_DAY = re.compile(r"\d{4}-\d\d-\d\d(T|$)")  # what a time begins with, or is
Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Snapshot:
    """An immutable version of a table: the number-th, made by an operation (ingest, overwrite, ...) at a time (UTC).

    rows (without deleted ones), segments, bytes (stored) and features are those of the whole table at it.
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
    """A root that holds tables: a directory, file:///path, or s3://bucket/prefix. A relative path is resolved when the
    store is opened.

    It pickles, with storage options that are not secret. Where another process needs the secret ones too, give them
    there by environment variables, or call open there before.
    """

    def __init__(self, uri: Path, storage_options: Mapping[str, Any] | None = None):
        self.uri = os.fspath(uri)
        # The engine's URI: it, and processes that this is sent to, may have another working directory.
        self._root = os.path.abspath(self.uri) if self.uri and "://" not in self.uri else self.uri
        _engine.use_options(self._root, storage_options)

    def __reduce__(self) -> Any:
        return _sent, (self.uri, self._root, _engine.public_options(self._root))

    def __repr__(self) -> str:
        return f"dsistore.open({self.uri!r})"

    def tables(self) -> list[str]:
        """The names of all tables."""
        names: list[str] = _engine.call("tables", uri=self._root)
        return names

    def table(self, name: str, version: Version | None = None, *, branch: str | None = None) -> Table:
        """A table at a version: a snapshot's number, a time (a datetime, or text as ``"2026-11-01"`` or
        ``"2026-11-01T06:00:00Z"``), or the name of a branch; default: the newest snapshot. With a branch, which may
        also be given as ``branch="exp"`` or ``"ads@exp"``, it is what the branch reads: its snapshot with its overlays,
        and the rows in its sample list.

        NotFoundError suggests similar names when there is no such table or branch.
        """
        return Table(self, name, version, branch)

    def ingest(self, table: str, source: Any, *, format: str = "auto", session_key: str | None = None,
               time_key: str | None = None, partition_by: str | None = None, mapping: Path | None = None,
               ddl: Path | None = None, memory: int | None = None, overwrite: bool = False, take_copies: bool = False,
               init: bool = False, on_bad_row: str = "fail", bad_row_report: Path | None = None,
               profile: Literal["speed", "balanced", "size"] | None = None,
               progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ingests a source into a table as one commit, and returns the report of ``dsi ingest``. The table is made if
        there is none.

        source       a path (a file, or a directory, whose ``key=value`` parts name partitions; of either also
                     ``s3://bucket/path``, gs://, az://), a list, or anything that has ``__arrow_c_stream__``: a pyarrow
                     Table or RecordBatchReader, a DuckDB relation, a Polars DataFrame, a Scan; or a pyarrow Dataset or
                     Scanner. A stream is read once, in its order, and its values are not copied
        memory       bounds, in bytes, what the ingest holds. A pyarrow Table or RecordBatch, which is in memory anyway,
                     does not count
        profile      what the table is stored for: speed, balanced or size. The table remembers it; default: what it
                     remembers, else balanced
        take_copies  takes every file whose bytes another file of the same partition has too; else such files are
                     refused
        init         makes the store in a directory that is not empty
        progress     is called now and then with (phase, rows, bytes done, bytes in all)

        storage_options say how the object stores of the source are reached: as in open(). Default: those of the store.

        Interrupted or failed, it leaves the table unchanged.
        """
        params: dict[str,
                     Any] = dict(uri=self._root, table=table, session_key=session_key, time_key=time_key,
                                 partition_by=partition_by, mapping=_ingest.path(mapping), ddl=_ingest.path(ddl),
                                 memory=memory, overwrite=overwrite, take_copies=take_copies, init=init,
                                 on_bad_row=on_bad_row, bad_row_report=_ingest.path(bad_row_report), profile=profile,
                                 source_options=storage_options)
        return _ingest.read_source("ingest", source, format, progress, params)


class ScanOptions(ReadOptions, total=False):
    """The options of Table.scan, which describes them."""

    fold: bool


class Table:
    """A table at one snapshot, or as a branch had it when it was opened. It pickles, and reads the same wherever it is
    unpickled.

    name is the table's, branch the branch's or None. len() is the number of rows that a scan gives: of a branch with a
    sample list those in the list.
    """

    def __init__(self, store: Store, name: str, version: Version | None = None, branch: str | None = None):
        self.store = store
        asked: dict[str, Any] = {"uri": store._root, "table": name}
        if isinstance(version, bool) or not isinstance(version, (int, str, datetime.datetime, type(None))):
            raise errors.UsageError(f"version {version!r}: want a snapshot's number, a time or a branch")
        if isinstance(version, int):
            if version < 1:  # the engine takes 0 for the newest
                raise errors.UsageError(f"version {version}: snapshots count from 1")
            asked["snapshot"] = version
        elif isinstance(version, datetime.datetime):
            asked["time"] = version.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        elif isinstance(version, str) and _DAY.match(version):
            asked["time"] = version if "T" in version else version + "T00:00:00Z"
        elif isinstance(version, str):
            if not version:  # the engine takes it for no branch
                raise errors.UsageError("version '': want a snapshot's number, a time or a branch")
            if branch is not None:
                raise errors.UsageError(f"version {version!r} and branch {branch!r}: want one")
            branch = version
        try:
            answer = _engine.call("table", **asked, branch=branch)
        except errors.NotFoundError as e:
            if branch is None or branch is not version:
                raise
            raise errors.NotFoundError(
                f"version {version!r} is no number and no time (as 2026-11-01). As a branch: {e}") from None
        params = {"uri": store._root, "table": name, **answer.pop("ref", {})}
        self.snapshot = _snapshot(answer)
        params["snapshot"] = self.snapshot.number
        self._ref = TableRef(store.uri, params)
        self.name: str = params["table"]
        self.branch: str | None = params.get("branch")
        self._rows = None if params.get("list") else self.snapshot.rows  # None: not counted yet
        self._pinned = version is not None or self.branch is not None

    def __repr__(self) -> str:
        version = self.snapshot.number if self.branch is None else f"branch={self.branch!r}"
        return f"{self.store!r}.table({self.name!r}, {version})"

    def __len__(self) -> int:
        if self._rows is None:
            self._rows = int(_engine.call("rows", **self._ref.params))
        return self._rows

    def _newest(self, what: str) -> dict[str, Any]:
        """The request's table, for what changes its newest snapshot. A table that was opened at a version or a branch
        would not show the change: that is an error."""
        if self._pinned:
            version = f"snapshot {self.snapshot.number}" if self.branch is None else f"branch {self.branch}"
            raise errors.UsageError(
                f"{what} in the table's newest snapshot, and this is {version}: open the table without a "
                "version or branch")
        return {"uri": self.store._root, "table": self.name}

    def snapshots(self) -> list[Snapshot]:
        """All snapshots of the table, oldest first."""
        return [_snapshot(i) for i in _engine.call("snapshots", **self._ref.params)]

    def features(self, select: str | Sequence[str] = "@all", *, overlay: str | Sequence[str] = ()) -> list[Feature]:
        """The features that names, globs (``user_*``) or sets (``@all``, ``@labels``, ``@keys``, ``@partitions``)
        select, with overlays as in ``scan``."""
        return self._ref.features(select, overlay)

    def scan(self, features: str | Sequence[str] | None = None, *, columns: str | Sequence[str] | None = None,
             partitions: str | None = None, filter: str | None = None, sample_list: str | SampleList | None = None,
             downsample: str | None = None, overlay: str | Sequence[str] = (), batch_size: int = 65536,
             fold: bool = False, dedup: bool | Literal["partial"] = False, workers: int | None = None,
             memory: int | None = None, job: str | None = None, lease: bool = True) -> Scan:
        """The rows as Arrow.

        features     names, globs or sets; default: ``@all``. columns is another name for it
        partitions   a predicate over partition keys: ``ds >= '2026-11-01' AND hr = 3``
        filter       a predicate over features too: only rows for which it is true are given. ``click = 1 AND country IN
                     ('US', 'CA')``, ``dwell BETWEEN 3 AND 10``, ``len(hist) > 3``, ``contains(hist, 17)``, ``any(hist)
                     > 100``, ``name LIKE 'a%'``, ``x IS NULL``, and ``click = 1 OR sample(0.1, key=request_id,
                     seed=7)``, which selects the same tenth of all keys every time. It is SQL's: a comparison with null
                     is not true. NaN is compared as NumPy does. Its features are read at once, in the segments and
                     stripes that statistics do not decide, so that len() and batches are exact
        sample_list  the name of a sample list, or one of ``samples.list()``: only rows in it are given. The table's
                     version must have it
        downsample   leaves out rows of a class but for a sample: with ``click = 0 AND sample(0.1, key=request_id,
                     seed=7)`` a tenth of the rows with click = 0 stays. The column sample_weight, the last, is 10 for
                     them and 1 for all others
        overlay      the name of an overlay, or a list of names, the lowest first: features come from them where they
                     have values, and from those of the branch or the table elsewhere, as each overlay declares. Filters
                     see the result
        fold         puts the features of a source map or struct back into one column
        dedup        True: lists that rows share come once in a record batch, as a dictionary: ``dictionary<int32,
                     list>``, whose indices are the inverse. "partial": lists that are slices of others share their
                     values too, as ``list_view``. Maps, and what is folded, stay plain
        batch_size   bounds the rows of a record batch
        workers      the engine's threads
        memory       bytes of stripes in memory
        job          the job's name in usage records; default: DSISTORE_JOB of the environment, else the name of the
                     program
        lease        False: no lease is taken while the rows are read, for a store that may not be written to. Snapshots
                     that expire meanwhile may be deleted

        Nothing but the filter's features is read yet. NotFoundError: no such feature or overlay; UsageError: the
        predicate makes no sense.
        """
        if batch_size < 1:
            raise errors.UsageError(f"batch_size {batch_size}: want 1 or more")
        plan = self._ref.plan(
            features=names(selected(features, columns, "@all")), partitions=partitions, filter=filter,
            sample_list=list_name(sample_list), downsample=downsample, overlay=names(overlay) or None,
            batch_size=batch_size, dedup=dedup_form(dedup))
        options = {"fold": fold, "workers": workers, "memory": memory, "no_lease": not lease or None}
        return Scan(self.store._root, plan, options, _engine.job_name(job))

    def arrow(self, features: str | Sequence[str] | None = None, *, dedup: bool | Literal["partial"] = False,
              **options: Unpack[ScanOptions]) -> Scan:
        """``scan``, by the name of the other outputs. dedup and the options are its: dedup=True keeps what rows share
        in dictionaries."""
        return self.scan(features, dedup=dedup, **options)

    def delete(self, filter: str | None = None, *, partitions: str | None = None,
               sample_list: str | SampleList | None = None, keys: Any = None, key: str | None = None,
               memory: int | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Deletes rows of the table's newest snapshot in a new snapshot, and returns the report of ``dsi delete``:
        rows_deleted, rows_left, and segments, with the rows of each.

        A row is deleted if all conditions that are given hold: filter is true for it, it is of the partitions, in the
        sample list, and has one of the keys. keys is a path of a file, a list of paths (pathlib's), or the keys
        themselves: a list, a numpy or pyarrow array of integers or strings. key is the feature that has them; default:
        the request key. The report says how many keys no row has. memory bounds, in bytes, the keys held at once.
        dry_run reports, and deletes nothing.

        This object, and every other reader of an older snapshot, goes on reading the rows: ``store.table(name)`` is the
        table without them. Their bytes stay until ``dsi erase``. Rows that are ingested meanwhile stay.

        UsageError: nothing is given, or it makes no sense, or the table was opened at a version or a branch;
        NotFoundError: no such feature or list.
        """
        return _ingest.report(_engine.begin(
            "delete", **self._newest("rows are deleted"), filter=filter, partitions=partitions,
            sample_list=list_name(sample_list), dry_run=dry_run or None, **key_params(keys, key, memory),
            **_engine.recorded(_engine.job_name(None))))

    @property
    def samples(self) -> Samples:
        """The table's sample lists: rows kept under a name."""
        at: dict[str, Any] = {"uri": self.store._root, "table": self.name}
        if self._pinned:
            at["snapshot"] = self.snapshot.number
        return Samples(at, self._newest)

    def take(self, rows: Any, features: str | Sequence[str] = "@all", *, overlay: str | Sequence[str] = (),
             fold: bool = False, workers: int | None = None, memory: int | None = None, job: str | None = None,
             lease: bool = True) -> pyarrow.Table:
        """The rows at row positions as a pyarrow Table: in the order given, a row as often as its position is given.

        rows is any sequence of integers, a numpy or pyarrow array or a tensor among them. Positions count from 0, in
        the order in which ``scan`` without partitions gives the rows; of a branch with a sample list they count the
        rows in it. Only the stripes that have the rows are read. Stripes that are read again are kept decoded, and
        taking from them is faster, in half of memory (bytes, default 256 MiB) for each of the two selections of
        features that were used last. overlay, fold, workers, job and lease are as in ``scan``.

        UsageError: the table has no such row; NotFoundError: no such feature.
        """
        records = _engine.call(
            "take", **self._ref.params, features=names(features), following=_positions(rows), fold=fold or None,
            overlay=names(overlay) or None, workers=workers, memory=memory, no_lease=not lease or None,
            **_engine.recorded(_engine.job_name(job)))
        return _arrow.to_table(_arrow.Records(records))

    def lookup(self, keys: Any, key: str | None = None, *, memory: int | None = None,
               job: str | None = None) -> dict[str, Any]:
        """Where the rows are that have one of the keys, as ``dsi lookup --json`` reports it: rows, how many; segments,
        each with its id, partition, the rows in it and their positions in the table, which ``take`` takes; keys, with
        how many of them no row has.

        keys and key are as in ``delete``. Of large segments only the tables of keys are read, and the stripes that
        these name.

        UsageError: the feature is no integer, string or bytes, or there is no request key and no key is given;
        NotFoundError: no such feature.
        """
        return _ingest.report(_engine.begin(
            "lookup", **self._ref.params, **key_params(keys, key, memory), **_engine.recorded(_engine.job_name(job))))

    def overlay(self, name: str, source: Any = None, *, expr: str | Sequence[str] | None = None,
                key: str | Sequence[str] | None = None, features: Sequence[str] | None = None, format: str = "auto",
                mapping: Path | None = None, ddl: Path | None = None, over: str | Sequence[str] = (),
                label: bool = False, missing_rows: Literal["fallthrough", "null"] = "fallthrough",
                missing_layers: Literal["fallthrough", "null", "refuse"] = "fallthrough", replace: bool = False,
                memory: int | None = None, progress: Progress | None = None) -> dict[str, Any]:
        """Adds or replaces features of the table without rewriting it, as one commit, and returns the report of ``dsi
        overlay add``.

        source    rows to join by a key: what ``Store.ingest`` takes, a path or a pyarrow Table for instance
        expr      or what features are computed from: ``label_v2 = click = 1 AND dwell > 10`` is 1, 0, or null where it
                  is unknown; ``ctr = clicks / shows`` is a number, float64 where it divides or a feature is a float,
                  else int64, null where it is computed from null, divides by 0, or is beyond its type
        key       the feature that the rows of source and of the table have in common, or several that are a key
                  together; default: the request key of the table. Each key occurs once in source, and is not null
        features  the features of source to take; default: all but the key. They add features to the table's, or replace
                  features of the same name
        format, mapping, ddl  say how to read source, as in ``Store.ingest``
        over      overlays that the features of expr are read with, the lowest first, besides those of the table and its
                  branch
        label     features that the table does not have are labels
        missing_rows    what the features are in rows of the table that source does not have: what they are below, or
                        null
        missing_layers  the same in segments that are ingested later, and in those without any such row; ``refuse``:
                        reading there is an error
        replace   drops an overlay of the same name, in the same commit
        memory    bounds, in bytes, what is held
        progress  is called now and then with (phase, rows, bytes done, bytes in all)

        The overlay is of the newest snapshot of the table, not of this one: open the table again to read it.
        Interrupted or failed, it leaves the table unchanged.

        ExistsError: there is an overlay of the name; UsageError: what is asked for makes no sense; NotFoundError: there
        is no such key or feature; ConflictError: other commits kept changing the table.
        """
        return self._write_overlay(name, source, expr, format, progress, key=None if key is None else names(key),
                                   features=None if features is None else names(features),
                                   mapping=_ingest.path(mapping), ddl=_ingest.path(ddl), over=names(over) or None,
                                   label=label, missing_rows=missing_rows, missing_layers=missing_layers,
                                   replace=replace, memory=memory,
                                   )

    def extend_overlay(self, name: str, source: Any = None, *, expr: str | Sequence[str] | None = None,
                       key: str | Sequence[str] | None = None, format: str = "auto", mapping: Path | None = None,
                       ddl: Path | None = None, over: str | Sequence[str] = (), memory: int | None = None,
                       progress: Progress | None = None) -> dict[str, Any]:
        """Adds rows that an overlay does not have values for, such as rows ingested since, as one commit, and returns
        the report of ``dsi overlay extend``: that of ``overlay``, and under ``before`` what the overlay had before.

        The parameters are those of ``overlay``. source, or the expressions, must have the features of the overlay, in
        types that fit into its types. Rows that it has values for keep them; its missing-value policies stay.

        NotFoundError: there is no such overlay; ConflictError: other commits kept changing the table; DsistoreError:
        the overlay is part of the table, or of a branch.
        """
        return self._write_overlay(name, source, expr, format, progress, key=None if key is None else names(key),
                                   mapping=_ingest.path(mapping), ddl=_ingest.path(ddl), over=names(over) or None,
                                   memory=memory, extend=True,
                                   )

    def _write_overlay(self, name: str, source: Any, expr: str | Sequence[str] | None, format: str,
                       progress: Progress | None, **more: Any) -> dict[str, Any]:
        """Makes or extends an overlay."""
        exprs = None if expr is None else names(expr)
        if (source is None) == (exprs is None):
            raise errors.UsageError("an overlay is made from a source or from an expression: give one of them")
        params: dict[str, Any] = dict(uri=self.store._root, table=self.name, overlay=name, exprs=exprs,
                                      **_engine.recorded(_engine.job_name(None)), **more)
        if source is not None:
            return _ingest.read_source("overlay", source, format, progress, params)
        return _ingest.report(_engine.begin("overlay", **params), progress)

    def torch(self, features: str | Sequence[str] | None = None, *, columns: str | Sequence[str] | None = None,
              labels: str | Sequence[str] = (), integers: str | Sequence[str] = (), sparse: str | Sequence[str] = (),
              partitions: str | None = None, filter: str | None = None,
              sample_list: str | SampleList | None = None, downsample: str | None = None,
              overlay: str | Sequence[str] = (), batch_size: int = 4096,
              shuffle: Literal["session", "row"] | Shuffle | None = None, seed: int = 0, rank: int | None = None,
              world_size: int | None = None, output: Literal["kjt", "ikjt", "partial"] = "kjt",
              expand: str | Sequence[str] = (), transforms: Mapping[str, str] | None = None, drop_last: bool = False,
              presence: bool = False, device: Device = None, pin_memory: bool | None = None, shards: int | None = None,
              prefetch: int | None = None, workers: int | None = None, memory: int | None = None,
              job: str | None = None, lease: bool = True) -> TorchDataset:
        """An IterableDataset of training batches (dsistore.torch.Batch), which the engine's threads prefetch.

        features    names, globs or sets, as in ``features``; nothing else is read. columns is another name for it
        labels      the same: of one name ("click") they come as [B], of a list as [B, L]; default: the features that
                    have the role
        integers    the same: dense integers that come as int64, one by one. An integer in another feature that float32
                    does not hold is an error, and never rounded
        sparse      the same: dense integers (categories, keys) that come as id lists of length one, for an embedding
                    table, after their transforms; null is an empty list
        partitions  a predicate over partition keys, as in ``scan``
        filter      a predicate over features, as in ``scan``, on values before transforms
        sample_list a sample list, as in ``scan``
        downsample  leaves out rows of a class but for a sample, as in ``scan``: Batch.sample_weight makes up for them
        overlay     names of overlays, the lowest first, as in ``scan``
        batch_size  rows of a batch, B
        shuffle     None (the table's order), "session" (sessions stay whole), "row", or a dsistore.Shuffle
        seed        of the shuffle
        rank, world_size  both or neither; default: torch.distributed's, else RANK and WORLD_SIZE of the environment,
                          else 0 of 1. DataLoader's workers have the rank of the process that starts them
        output      "kjt": every row has its lists; "ikjt": lists that rows share come once, with an inverse;
                    "partial": and lists that are slices of others share their values
        expand      names, globs or sets whose lists come one per row with output="ikjt" too, in
                    Batch.expanded_sparse_features
        transforms  chains of transforms by name or glob: {"user_history_*": "first(50) | mod(1000000)"}
        drop_last   leaves out a short batch at the end, and batches that are too few for all ranks: all ranks give the
                    same number
        presence    adds masks that tell null from 0 and from the empty list
        device      where batches are moved; default: they stay in the engine's memory, without a copy
        pin_memory  whether the engine's memory is page-locked; default: with a CUDA device
        shards      in how many shards an epoch is read at once (default: the world size); the order depends on it
        prefetch    batches made ahead; default: workers + 4, and fewer where these take more than a quarter of memory
        workers     the engine's threads
        memory      bytes of stripes in memory
        job         the job's name in usage records, as in ``scan``
        lease       False: no lease is taken while batches are read, as in ``scan``

        dsistore.torch.TorchDataset says more of order, ranks and states. NotFoundError: no such feature, or the
        snapshot is gone; UsageError: options that make no sense; ImportError: there is no PyTorch.
        """
        try:
            import torch  # noqa: F401
        except ImportError as e:
            raise ImportError("Table.torch needs PyTorch: pip install 'dsistore[torch]'") from e
        from ._dataset import Options
        from .torch import TorchDataset

        if output not in ("kjt", "ikjt", "partial"):
            raise errors.UsageError(f"output {output!r}: want 'kjt', 'ikjt' or 'partial'")
        return TorchDataset(
            self._ref,
            Options(selected(features, columns, () if sparse or integers else None), labels=labels, integers=integers, sparse=sparse,
                    partitions=partitions, filter=filter, sample_list=sample_list, downsample=downsample,
                    overlay=overlay, batch_size=batch_size, shuffle=shuffle, seed=seed, rank=rank,
                    world_size=world_size, dedup=output, expand=expand, transforms=transforms, drop_last=drop_last,
                    presence=presence, shards=shards, prefetch=prefetch, workers=workers, memory=memory, job=job,
                    lease=lease), device, pin_memory)

    def numpy(self, features: str | Sequence[str] | None = None, *, dedup: bool | Literal["partial"] = False,
              **options: Unpack[BatchOptions]) -> NumpyDataset:
        """Training batches as dicts of NumPy arrays by feature, without PyTorch: the batches of ``torch`` in the same
        order.

        The options are those of ``torch``. dedup=True is output="ikjt": lists that rows share come once, with an
        inverse; dedup="partial" is output="partial". dsistore.numpy.NumpyDataset says what a batch has.
        """
        from ._dataset import options_of
        from .numpy import NumpyDataset

        return NumpyDataset(self._ref, options_of(features, dedup, options))

    def jax(self, features: str | Sequence[str] | None = None, *, dedup: bool | Literal["partial"] = False,
            device: Target = None, **options: Unpack[BatchOptions]) -> JaxDataset:
        """Training batches as dicts of JAX arrays by feature: the batches of ``torch`` in the same order.

        The options are those of ``torch`` and ``numpy``; rank and world_size default to jax.process_index() and
        jax.process_count(). device, a jax.Device or a jax.sharding.Sharding, is where batches are put.
        dsistore.jax.JaxDataset says what a batch has. UsageError: a feature has 64-bit integers, jax_enable_x64 is not
        set, and no transform bounds them.
        """
        from ._dataset import options_of
        try:
            from .jax import JaxDataset
        except ImportError as e:
            raise ImportError("Table.jax needs JAX: pip install jax") from e

        return JaxDataset(self._ref, options_of(features, dedup, options), device)

    def tensorflow(self, features: str | Sequence[str] | None = None, *, dedup: bool = False,
                   **options: Unpack[BatchOptions]) -> TensorflowDataset:
        """Training batches for TensorFlow: ``.dataset()`` is a tf.data.Dataset of tensors and RaggedTensors by feature,
        the batches of ``torch`` in the same order.

        The options are those of ``torch`` and ``numpy``; rank and world_size default to those of the tf.distribute
        strategy in scope. dsistore.tensorflow.TensorflowDataset says what a batch has.
        """
        from ._dataset import options_of
        try:
            from .tensorflow import TensorflowDataset
        except ImportError as e:
            raise ImportError("Table.tensorflow needs TensorFlow: pip install tensorflow") from e

        return TensorflowDataset(self._ref, options_of(features, dedup, options))

    def grain(self, features: str | Sequence[str] | None = None, *, columns: str | Sequence[str] | None = None,
              overlay: str | Sequence[str] = (), memory: int | None = None, job: str | None = None,
              lease: bool = True) -> TableSource:
        """The rows as a Grain RandomAccessDataSource: ``grain.MapDataset.source(table.grain([...]))``. Grain shuffles,
        shards and resumes. The parameters are those of ``take``; default: all features. dsistore.grain.TableSource says
        what a row is.
        """
        from .grain import TableSource

        return TableSource(
            self._ref, selected(features, columns, "@all"), overlay, _engine.job_name(job), memory, lease)


def _positions(rows: Any) -> bytes:
    """Row positions as the engine takes them: 8 bytes each, little endian."""
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
            raise TypeError(f"{type(rows[0]).__name__} is no row position")
        positions = array.array("q", rows)
    except (TypeError, OverflowError) as e:
        raise errors.UsageError(f"rows: want integers: {e}") from e
    if sys.byteorder != "little":
        positions.byteswap()
    return positions.tobytes()


def open(uri: Path, storage_options: Mapping[str, Any] | None = None) -> Store:
    """The store at a root: a directory, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.
    Nothing is read yet.

    storage_options say how an object store is reached, by the names of fsspec and of the object_store library, in any
    case: aws_endpoint (endpoint_url), aws_region, aws_profile, aws_access_key_id, aws_secret_access_key,
    aws_session_token, aws_skip_signature (anon), aws_allow_http, aws_virtual_hosted_style_request, credential_provider
    (a function that returns a dict with access_key_id, secret_access_key, token and expires_at); of gs://
    google_base_url (endpoint_url), google_service_account (google_application_credentials), google_service_account_key,
    google_skip_signature (anon), google_allow_http; of az:// account_name, account_key, sas_token, connection_string,
    endpoint_url, tenant_id, client_id, client_secret, use_emulator, allow_http. cache_dir and cache_size keep what is
    read in a directory of this machine, which processes share. What they do not say is taken from the environment, as
    the services' command lines do, and of the cache DSISTORE_CACHE and DSISTORE_CACHE_SIZE. They hold for a store in
    the whole process: those of the newest open with some count, until something was read.
    """
    return Store(uri, storage_options)


def _sent(uri: str, root: str, options: dict[str, str]) -> Store:
    """A store that was pickled. Options that this process has for it stay."""
    store = Store.__new__(Store)
    store.uri, store._root = uri, root
    _engine.use_sent_options(root, options)
    return store
