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
from ._root import Root
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
    """An immutable version of a table. operation (ingest, overwrite, ...) says what made it; time is in UTC.

    rows (without deleted rows), segments, bytes (stored) and features are counts of the whole table in this snapshot.
    """

    number: int
    time: datetime.datetime
    operation: str
    rows: int
    segments: int
    bytes: int
    features: int


def _snapshot(info: dict[str, Any]) -> Snapshot:
    # A datetime has microseconds, a commit nanoseconds. Rounded up, the time as version= opens this snapshot.
    whole, _, fraction = info["time"].removesuffix("Z").partition(".")
    microseconds = -(-int(fraction.ljust(9, "0")[:9]) // 1000)
    time = (datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc) +
            datetime.timedelta(microseconds=microseconds))
    return Snapshot(**{**info, "time": time})


class Store:
    """A store of tables: a directory, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix. A
    relative path is resolved when the store is opened.

    A pickle has the storage options that are not secret. If another process needs secret options, give them there in
    environment variables, or call open there first, with the same other options (those of the cache may differ).
    """

    def __init__(self, uri: Path, storage_options: Mapping[str, Any] | None = None):
        self.uri = os.fspath(uri)
        # The engine's URI: it, and processes that this is sent to, may have another working directory.
        self._root = Root.opened(os.path.abspath(self.uri) if self.uri and "://" not in self.uri else self.uri,
                                 storage_options)

    def __repr__(self) -> str:
        return f"dsistore.open({self.uri!r})"

    def tables(self) -> list[str]:
        """The names of all tables."""
        names: list[str] = _engine.call("tables", uri=self._root)
        return names

    def table(self, name: str, version: Version | None = None, *, branch: str | None = None) -> Table:
        """A table at a version: the number of a snapshot, a time (a datetime, or text such as ``"2026-11-01"`` or
        ``"2026-11-01T06:00:00Z"``), or the name of a branch; default: the newest snapshot. A branch can also be given
        as ``branch="exp"`` or ``"ads@exp"``; the table is then what the branch reads: its snapshot with its overlays,
        and the rows in its sample list.

        NotFoundError: there is no such table or branch; the message suggests similar names.
        """
        return Table(self, name, version, branch)

    def ingest(self, table: str, source: Any, *, format: str = "auto", session_key: str | None = None,
               time_key: str | None = None, partition_by: str | None = None, mapping: Path | None = None,
               ddl: Path | None = None, memory: int | None = None, overwrite: bool = False, new_only: bool = False,
               take_copies: bool = False, init: bool = False, on_bad_row: str = "fail",
               bad_row_report: Path | None = None,
               profile: Literal["speed", "balanced", "size"] | None = None,
               progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ingests a source into a table as one commit, and returns the report of ``dsi ingest``. The table is created
        if it does not exist.

        source       a path: a file, or a directory whose ``key=value`` parts name partitions, also at s3://, gs:// or
                     az://. Or a list of paths. Or anything with ``__arrow_c_stream__``: a pyarrow Table or
                     RecordBatchReader, a DuckDB relation, a Polars DataFrame, a Scan; or a pyarrow Dataset or Scanner.
                     A stream is read once, in its order, and its values are not copied
        memory       bound, in bytes, of what the ingest holds. A pyarrow Table or RecordBatch does not count
        profile      store for speed, balanced, or for size. The table remembers it; default: what it remembers, else
                     balanced
        overwrite    replaces the partitions that the source has rows of; a table without partitions as a whole. Rows
                     that were deleted or erased are back if the source still has them. The report counts replaced rows
                     that were deleted (deleted_rows_replaced), but not those that compaction had removed
        new_only     leaves out the files that were ingested before, and counts them in the report (files_known). A file
                     whose bytes have changed is new, with all its rows, beside those that it had: the report counts
                     such files (files_changed, first_file_changed) by their paths. To replace their rows, ingest all
                     files of their partitions with overwrite. With nothing new the report's committed is False
        take_copies  accepts files that have the same bytes as another file of the same partition; else they are
                     refused
        init         creates the store in a directory that is not empty
        on_bad_row   "fail" at the first bad row, or "quarantine": leaves bad rows out
        bad_row_report  a new file that lists the rows that were left out, as JSON lines; an existing file is an error
        progress     is called from time to time with (phase, rows, bytes done, bytes in all)

        storage_options are those of the source's object store, as in open(). Default: those of the store.

        If the ingest fails or is interrupted, the table is unchanged.
        """
        params: dict[str,
                     Any] = dict(uri=self._root, table=table, session_key=session_key, time_key=time_key,
                                 partition_by=partition_by, mapping=_ingest.path(mapping), ddl=_ingest.path(ddl),
                                 memory=memory, overwrite=overwrite, new_only=new_only, take_copies=take_copies,
                                 init=init, on_bad_row=on_bad_row, bad_row_report=_ingest.path(bad_row_report),
                                 profile=profile, source_options=storage_options)
        return _ingest.read_source("ingest", source, format, progress, params)


class ScanOptions(ReadOptions, total=False):
    """The options of Table.scan, which describes them."""

    fold: bool


class Table:
    """A table at one snapshot, or as a branch had it when it was opened. It can be pickled; the copy reads the same
    rows.

    name is the name of the table, snapshot what is read of it, branch the name of the branch or None.
    """

    name: str
    snapshot: Snapshot
    branch: str | None

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
        params = {"table": name, **answer.pop("ref", {}), "uri": store._root}
        self.snapshot = _snapshot(answer)
        params["snapshot"] = self.snapshot.number
        self._ref = TableRef(store.uri, params)
        self.name = params["table"]
        self.branch = params.get("branch")
        self._rows = None if params.get("list") else self.snapshot.rows  # None: not counted yet
        self._pinned = version is not None or self.branch is not None

    def __repr__(self) -> str:
        version = self.snapshot.number if self.branch is None else f"branch={self.branch!r}"
        return f"{self.store!r}.table({self.name!r}, {version})"

    def __len__(self) -> int:
        """The number of rows that a scan gives; for a branch with a sample list, the rows in the list."""
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
        filter       a predicate over features too: only rows for which it is true are given. Examples: ``click = 1 AND
                     country IN ('US', 'CA')``, ``dwell BETWEEN 3 AND 10``, ``len(hist) > 3``, ``contains(hist, 17)``,
                     ``any(hist) > 100``, ``name LIKE 'a%'``, ``x IS NULL``, and ``click = 1 OR sample(0.1,
                     key=request_id, seed=7)``, which selects the same tenth of all keys every time. As in SQL, a
                     comparison with null is not true; NaN compares as in NumPy. The filter's features are read at
                     once, in the segments and stripes that statistics do not decide, so len() and batches are exact
        sample_list  the name of a sample list, or one of ``samples.list()``: only rows in it are given. The table's
                     version must have it
        downsample   keeps only a sample of some rows: with ``click = 0 AND sample(0.1, key=request_id, seed=7)`` a
                     tenth of the rows with click = 0 stays. The last column, sample_weight, is 10 for them and 1 for
                     all others
        overlay      the name of an overlay, or a list of names, lowest first. Features come from these overlays where
                     they have values, and elsewhere from the branch or the table, according to the missing-value
                     policies. Filters see the result
        fold         puts the features of a source map or struct back into one column
        dedup        True: lists that rows share come once in a record batch, as a dictionary: ``dictionary<int32,
                     list>``, whose indices are the inverse. "partial": lists that are slices of others share their
                     values too, as ``list_view``. Maps and folded columns are not deduplicated
        batch_size   maximum number of rows of a record batch
        workers      number of threads of the engine; default: one for each processor
        memory       maximum bytes of stripes in memory; default: 256 MiB, from object stores 512 MiB
        job          name of the job in usage records; default: DSISTORE_JOB of the environment, else the name of the
                     program
        lease        False: no lease is taken while the rows are read, for a read-only store. Snapshots that expire
                     meanwhile may be deleted

        This call reads only the filter's features. NotFoundError: no such feature or overlay; UsageError: a predicate
        is wrong.
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
        """The same as ``scan``, named like the other outputs. dedup=True keeps shared lists in dictionaries."""
        return self.scan(features, dedup=dedup, **options)

    def delete(self, filter: str | None = None, *, partitions: str | None = None,
               sample_list: str | SampleList | None = None, keys: Any = None, key: str | None = None,
               memory: int | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Deletes rows of the table's newest snapshot in a new snapshot, and returns the report of ``dsi delete``:
        rows_deleted, rows_left, and segments, with the rows of each.

        A row is deleted if all conditions that are given hold: filter is true for it, it is in the partitions and in
        the sample list, and it has one of the keys. keys is the path of a file, a list of pathlib paths, or the keys
        themselves: a list, a numpy or pyarrow array of integers or strings. key is the feature that has them; default:
        the request key. The report says how many keys no row has. memory is the maximum of bytes of keys held at once.
        With dry_run nothing is deleted.

        This object, and every other reader of an older snapshot, still reads the rows; ``store.table(name)`` is the
        table without them. Their bytes stay until ``dsi erase``, or until compaction, expiry and gc remove them. Rows
        that are ingested meanwhile stay.

        UsageError: no condition is given, one is wrong, or the table was opened at a version or a branch;
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
        """The rows at row positions as a pyarrow Table, in the order given. A position may be given more than once.

        rows is any sequence of integers, for example a numpy or pyarrow array or a tensor. Positions count from 0, in
        the order in which ``scan`` without partitions gives the rows; in a branch with a sample list they count the
        rows in the list. Only the stripes that have the rows are read. Stripes that are read again are kept decoded,
        which makes later calls faster: for each of the last two selections of features, in half of memory (bytes,
        default 256 MiB, from object stores 512 MiB). overlay, fold, workers, job and lease are as in ``scan``.

        UsageError: the table has no such row; NotFoundError: no such feature.
        """
        _arrow.need_pyarrow()
        records = _engine.call(
            "take", **self._ref.params, features=names(features), following=_positions(rows), fold=fold or None,
            overlay=names(overlay) or None, workers=workers, memory=memory, no_lease=not lease or None,
            **_engine.recorded(_engine.job_name(job)))
        return _arrow.Records(records).to_table()

    def lookup(self, keys: Any, key: str | None = None, *, memory: int | None = None,
               job: str | None = None) -> dict[str, Any]:
        """Finds the rows that have one of the keys, and returns the report of ``dsi lookup --json``: rows, their
        number; segments, each with its id, its partition, the rows in it and their positions in the table, for
        ``take``; keys, and how many of them no row has.

        keys and key are as in ``delete``. In large segments only the key tables are read, and the stripes that these
        name.

        UsageError: the feature is not an integer, string or bytes, or key is not given and the table has no request
        key; NotFoundError: no such feature.
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

        source    rows to join by a key: what ``Store.ingest`` takes, for example a path or a pyarrow Table
        expr      or an expression: ``label_v2 = click = 1 AND dwell > 10`` is 1, 0, or null where it is unknown;
                  ``ctr = clicks / shows`` is a number: float64 if it divides or reads a float, else int64. It is null
                  if an input is null, the divisor is 0, or the type cannot hold the result
        key       the feature to join by, or several that form one key; default: the request key of the table. A key
                  occurs at most once in source, and is not null
        features  the features of source to use; default: all but the key. They are added to the table's features, or
                  replace features of the same name
        format, mapping, ddl  say how to read source, as in ``Store.ingest``
        over      overlays to apply when the features of expr are read, lowest first, in addition to those of the table
                  and its branch
        label     features that the table does not have become labels
        missing_rows    value in rows of the table that have no row in source: ``fallthrough``, the value below, or
                        ``null``
        missing_layers  the same for segments that are ingested later; ``refuse``: reading there is an error
        replace   drops an overlay of the same name, in the same commit
        memory    maximum bytes held
        progress  is called from time to time with (phase, rows, bytes done, bytes in all)

        The overlay is added to the newest snapshot of the table, not to this one: open the table again to read it. If
        the call fails or is interrupted, the table is unchanged.

        ExistsError: an overlay of this name exists; UsageError: the arguments are wrong; NotFoundError: no such key or
        feature; ConflictError: other commits kept changing the table.
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
        """Adds values for rows that have none in an overlay, such as rows ingested since, as one commit. Returns the
        report of ``dsi overlay extend``: that of ``overlay``, and under ``before`` the state before.

        The parameters are those of ``overlay``. source, or the expressions, must have the features of the overlay, in
        types that fit into its types. Existing values and missing-value policies stay.

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
        labels      names, globs or sets; one name ("click") gives [B], a list gives [B, L]. Default: those of role
                    label that features selects. Null is 0; without presence= this is a warning
        integers    names, globs or sets of dense integers that come as int64, one tensor each. In other dense features,
                    an integer that float32 cannot hold is an error; it is never rounded
        sparse      names, globs or sets of dense integers (categories, keys) that come as id lists of length one, for
                    an embedding table, after their transforms; null is an empty list
        partitions  a predicate over partition keys, as in ``scan``
        filter      a predicate over features, as in ``scan``, on values before transforms
        sample_list a sample list, as in ``scan``
        downsample  keeps only a sample of some rows, as in ``scan``; their weights are in Batch.sample_weight
        overlay     names of overlays, lowest first, as in ``scan``
        batch_size  rows of a batch, B
        shuffle     None (the table's order), "session" (sessions stay whole), "row", or a dsistore.Shuffle
        seed        seed of the shuffle
        rank, world_size  both or neither; default: torch.distributed's, else RANK and WORLD_SIZE of the environment,
                          else 0 of 1. DataLoader's workers have the rank of the process that starts them
        output      "kjt": every row has its lists; "ikjt": lists that rows share come once, with an inverse;
                    "partial": and lists that are slices of others share their values
        expand      names, globs or sets whose lists come one per row even with output="ikjt", in
                    Batch.expanded_sparse_features
        transforms  chains of transforms by name or glob: {"user_history_*": "first(50) | mod(1000000)"}
        drop_last   leaves out a short last batch, and batches that are too few for all ranks, so that all ranks give
                    the same number
        presence    adds masks that tell null from 0 and from the empty list
        device      where batches are moved; default: they stay in the engine's memory, without a copy
        pin_memory  whether the engine's memory is page-locked; default: only with a CUDA device
        shards      number of shards of an epoch that are read at once; the order depends on it. Default: the world size
        prefetch    batches made ahead; default: workers + 4, or fewer if these need more than a quarter of memory
        workers     number of threads of the engine; default: one for each processor
        memory      maximum bytes of stripes in memory; default: 256 MiB, from object stores 512 MiB
        job         name of the job in usage records, as in ``scan``
        lease       False: no lease is taken while batches are read, as in ``scan``. Default: one is taken after 5
                    minutes, of a branch at once. It ends within a minute after the iteration, or with the process

        dsistore.torch.TorchDataset explains order, ranks and states. NotFoundError: no such feature, or the snapshot is
        gone; UsageError: the options are wrong; ImportError: PyTorch is not installed.
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
            Options(selected(features, columns, () if sparse or integers else None), labels=labels, integers=integers,
                    sparse=sparse, partitions=partitions, filter=filter, sample_list=sample_list,
                    downsample=downsample, overlay=overlay, batch_size=batch_size, shuffle=shuffle, seed=seed,
                    rank=rank, world_size=world_size, dedup=output, expand=expand, transforms=transforms,
                    drop_last=drop_last, presence=presence, shards=shards, prefetch=prefetch, workers=workers,
                    memory=memory, job=job, lease=lease), device, pin_memory)

    def numpy(self, features: str | Sequence[str] | None = None, *, dedup: bool | Literal["partial"] = False,
              **options: Unpack[BatchOptions]) -> NumpyDataset:
        """Training batches as dicts of NumPy arrays by feature, without PyTorch: the batches of ``torch`` in the same
        order.

        The options are those of ``torch``. dedup=True is output="ikjt": lists that rows share come once, with an
        inverse; dedup="partial" is output="partial". dsistore.numpy.NumpyDataset describes a batch.
        """
        from ._dataset import options_of
        from .numpy import NumpyDataset

        return NumpyDataset(self._ref, options_of(features, dedup, options))

    def jax(self, features: str | Sequence[str] | None = None, *, dedup: bool | Literal["partial"] = False,
            device: Target = None, **options: Unpack[BatchOptions]) -> JaxDataset:
        """Training batches as dicts of JAX arrays by feature: the batches of ``torch`` in the same order.

        The options are those of ``torch`` and ``numpy``; rank and world_size default to ``jax.process_index()`` and
        ``jax.process_count()``. device is a jax.Device or a jax.sharding.Sharding where batches are put.
        dsistore.jax.JaxDataset describes a batch. UsageError: a feature has 64-bit integers, jax_enable_x64 is not set,
        and no transform bounds them.
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
        strategy in scope. dsistore.tensorflow.TensorflowDataset describes a batch.
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
        shards and resumes. The parameters are those of ``take``; default: all features. dsistore.grain.TableSource
        describes a row.
        """
        from .grain import TableSource

        return TableSource(
            self._ref, selected(features, columns, "@all"), overlay, _engine.job_name(job), memory, lease)


def _positions(rows: Any) -> bytes:
    """Row positions as the engine takes them: 8 bytes each, little endian."""
    kind = getattr(getattr(rows, "dtype", None), "kind", None)
    if kind in ("i", "u"):  # of numpy and pandas
        if getattr(rows, "ndim", 1) != 1:
            raise errors.UsageError(f"rows: an array of {rows.ndim} dimensions: want one")
        packed: bytes = getattr(rows, "to_numpy", lambda: rows)().astype("<i8").tobytes()
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
    """Opens a store: a directory, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix. This
    reads nothing yet.

    storage_options say how an object store is reached. They have the names of fsspec and of the object_store library,
    in any case; docs/reference/configuration.md lists them. The most common for s3:// are aws_endpoint, aws_region,
    aws_profile, aws_access_key_id, aws_secret_access_key, anon, and credential_provider (a function that returns a dict
    with access_key_id, secret_access_key, token and expires_at); for gs:// google_service_account; for az://
    account_name and account_key. cache_dir and cache_size set a cache in a directory of this machine, which processes
    share. Options that are not given, or are None, are taken from the environment.

    The options apply to this Store and what is made of it. A store of the same URI with other options is another one.
    """
    return Store(uri, storage_options)
