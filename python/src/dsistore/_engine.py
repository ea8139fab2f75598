"""The link to the engine: a Go library that is loaded at the first call.

    process                  forked process
    libdsistore.so           what it inherited: it never runs again, and what was opened there is nobody's
    (its threads)   ──fork──>  first call ──> a copy of libdsistore.so, with threads and memory of its own

Go's threads do not survive a fork, so that the library of the parent cannot be used in a child. The dynamic linker
takes a copy of the file for another library, with variables of its own: its first call starts Go anew. The copy is an
anonymous file in memory, for as long as the process lives. Only Linux has such files.

ctypes releases the GIL around every call.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import multiprocessing
import multiprocessing.util
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _capsule, _credentials, _root, errors

_FORKED = (
    "this process was forked from one that had used dsistore, whose engine does not survive a fork, and a copy of it "
    "cannot be loaded ({}): use num_workers=0 (the loader prefetches by itself), or multiprocessing_context='spawn' or "
    "'forkserver'"
)
_INHERITED = "it was opened before this process was forked: open it here, iterate the dataset or the table anew"


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_int64)]


_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_pid: int | None = None
_batch_destructor = 0  # of _library: the address of the destructor of capsules that hold a batch

# A fork waits until the engine is loaded, so that no child has half of it, or a lock that nobody will release.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def _path() -> str:
    here = pathlib.Path(__file__).resolve().parent
    for name in ("libdsistore.so", "libdsistore.dylib"):
        if (here / name).exists():
            return str(here / name)
    raise ImportError(
        f"no engine in {here}: build the package with `pip install .` in python/, which needs Go and a C compiler")


@contextlib.contextmanager
def _file() -> Iterator[str]:
    """The path of the library to load. In a forked process it is that of a copy, which is gone after the with."""
    if _library is None or _pid == os.getpid():
        yield _path()
        return
    try:
        copy = os.memfd_create("libdsistore.so")
    except (AttributeError, OSError) as e:
        raise errors.ForkError(_FORKED.format(e)) from None
    try:
        with open(_path(), "rb") as source:
            size, at = os.fstat(source.fileno()).st_size, 0
            while at < size:
                sent = os.sendfile(copy, source.fileno(), at, size - at)
                if sent == 0:
                    raise OSError("the library is being replaced")
                at += sent
        # By the process: the linker takes a name that it knows for what it has loaded by it.
        yield f"/proc/{os.getpid()}/fd/{copy}"
    except OSError as e:
        raise errors.ForkError(_FORKED.format(e)) from None
    finally:
        os.close(copy)


def library() -> ctypes.CDLL:
    """The engine, loaded when first needed."""
    global _library, _pid, _batch_destructor
    if _library is not None and _pid == os.getpid():
        return _library
    with _lock, _file() as path:
        if _library is None or _pid != os.getpid():
            lib = ctypes.CDLL(path)
            i32, i64, text, pointer = ctypes.c_int32, ctypes.c_int64, ctypes.POINTER(_Text), ctypes.c_void_p
            for name, returns, *takes in (
                ("dsi_call", i32, ctypes.c_char_p, i64, i64, ctypes.POINTER(i64), text),
                ("dsi_begin", None, ctypes.c_char_p, i64, ctypes.POINTER(i64)),
                ("dsi_wait", i32, i64, i64, text),
                ("dsi_end", None, i64, i32),
                ("dsi_free", None, pointer),
                ("dsi_next", i32, i64, i64, ctypes.POINTER(_Batch), text),
                ("dsi_close", i32, i64),
                ("dsi_use_locks", None, pointer, pointer, pointer, i32),
                ("dsi_stream", i32, i64, pointer),
                ("dsi_destructor", pointer, pointer, pointer, i32),
                ("dsi_begin_stream", None, ctypes.c_char_p, i64, pointer, ctypes.POINTER(i64)),
                ("dsi_gil", None, pointer, pointer, pointer, pointer, pointer),
            ):
                function = getattr(lib, name)
                function.restype, function.argtypes = returns, takes
            api = ctypes.pythonapi
            current, ends = (("PyThreadState_GetUnchecked", "Py_IsFinalizing") if sys.version_info >= (3, 13) else
                             ("_PyThreadState_UncheckedGet", "_Py_IsFinalizing"))
            lib.dsi_gil(*(ctypes.cast(getattr(api, symbol), pointer) for symbol in (
                "PyGILState_GetThisThreadState", current, "PyEval_SaveThread", "PyEval_RestoreThread", ends)))
            _batch_destructor = lib.dsi_destructor(*_capsule.FUNCTIONS, 1)
            _library = lib
            _pid = os.getpid()  # last: another thread that looks uses the library from here on
            _at_exit()
    return _library


def usable(_getpid: Callable[[], int] = os.getpid) -> bool:
    """Whether the engine is loaded and of this process."""
    return _library is not None and _pid == _getpid()


class Handle:
    """What the engine of this process has opened. In a process forked after, it is nothing: the engine there has
    other things by the same number."""

    __slots__ = ("number", "lib", "_pid")

    def __init__(self, lib: ctypes.CDLL, number: int):
        self.number = number
        self.lib = lib
        self._pid = os.getpid()

    def usable(self, _getpid: Callable[[], int] = os.getpid) -> bool:
        """Whether it is of this process."""
        return self._pid == _getpid()


def handle(number: int) -> Handle:
    """The handle of what a call opened."""
    return Handle(library(), number)


def _take(lib: ctypes.CDLL, text: _Text) -> bytes:
    data, text.data = text.data, None  # whatever interrupts what follows, it is freed once at the most
    try:
        return ctypes.string_at(data, text.size) if data else b""
    finally:
        lib.dsi_free(data)


def _result(answer: bytes) -> Any:
    out = json.loads(answer)
    if "error" in out:
        raise errors.from_wire(out["error"])
    return out.get("result")


_AWS = (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), ("AWS_REGION", "AWS_DEFAULT_REGION"),
        ("AWS_PROFILE",), ("AWS_ACCESS_KEY_ID",), ("AWS_SECRET_ACCESS_KEY",), ("AWS_SESSION_TOKEN",),
        ("AWS_ALLOW_HTTP",))  # of each, the first that is set
_AZURE = (("AZURE_STORAGE_ENDPOINT",), ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
          ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"), ("AZURE_STORAGE_SAS_TOKEN",),
          ("AZURE_STORAGE_CONNECTION_STRING",), ("AZURE_STORAGE_USE_EMULATOR",), ("AZURE_ALLOW_HTTP",),
          ("AZURE_TENANT_ID",), ("AZURE_CLIENT_ID",), ("AZURE_CLIENT_SECRET",), ("AZURE_FEDERATED_TOKEN_FILE",))
_GOOGLE = (("GOOGLE_APPLICATION_CREDENTIALS",), ("STORAGE_EMULATOR_HOST",))
_CACHE = (("DSISTORE_CACHE",), ("DSISTORE_CACHE_SIZE",))
# What the objects of a scheme take from the environment.
_ENVIRONMENT = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _AWS), **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("az", "abfs", "abfss"), _AZURE),
}


def _scheme(uri: str) -> str | None:
    """The scheme of a URI of an object store."""
    scheme, separator, _ = uri.partition("://")
    return scheme if separator and scheme in _ENVIRONMENT else None


def _of_environment(variables: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """The storage options of this process's environment: the engine has that of when it was loaded."""
    set_ = (next((n for n in names if os.environ.get(n)), None) for names in variables)
    return {"environment." + n: os.environ[n] for n in set_ if n is not None}


def _serve_credentials(options: Mapping[str, str]) -> None:
    """Has functions ready that a request's options name."""
    for name, value in options.items():
        if name.lower() in _root.PROVIDER:
            _credentials.serve(value, _credentials_wanted, functools.partial(call, "credentials_give"))


def _credentials_wanted(of: str) -> None:
    """Waits until credentials of a function are wanted."""
    wait(begin("credentials_wanted", provider=of), milliseconds=3_600_000)


# How long a call waits before the interpreter looks for signals.
_WAIT_MILLISECONDS = 50


def _text(method: str, params: dict[str, Any], following: bytes = b"") -> bytes:
    """A request. Parameters that are None are left out. source_options, of which the values may be secrets, are no
    parameter: they are the storage options of paths that are URIs, by default those of the store."""
    params = dict(params)
    sources: Mapping[str, Any] | None = params.pop("source_options", None)
    request: dict[str, Any] = {"method": method, "params": {k: v for k, v in params.items() if v is not None}}
    uri: str = params.get("uri") or ""
    own = uri.options if isinstance(uri, _root.Root) else {}
    if (scheme := _scheme(uri)) is not None:
        request["storage_options"] = {**_of_environment(_ENVIRONMENT[scheme] + _CACHE), **own}
    elif own:
        request["storage_options"] = own
    of = next((s for p in params.get("paths") or () if (s := _scheme(str(p))) is not None), None)
    if of is not None:
        same = scheme is not None and _ENVIRONMENT[scheme] is _ENVIRONMENT[of]
        given = {k: v for k, v in own.items() if same and not k.lower().startswith("cache_")} if sources is None else {
            **_root.values(sources)}
        request["source_options"] = {**_of_environment(_ENVIRONMENT[of]), **given}
    for options in request.get("storage_options"), request.get("source_options"):
        _serve_credentials(options or {})
    text = json.dumps(request).encode()
    return text + b"\0" + following if following else text


class Begun:
    """A call that was begun. Each is waited for, once; one that is left, by an exception of a signal handler before it
    has a name, is cancelled."""

    def __init__(self) -> None:
        self.number = ctypes.c_int64()

    def __del__(self) -> None:
        if self.number.value and _library is not None and _pid == os.getpid():
            _library.dsi_end(self.number.value, 0)


def begin(method: str, **params: Any) -> Begun:
    """Starts a method of the engine."""
    request, begun = _text(method, params), Begun()
    library().dsi_begin(request, len(request), ctypes.byref(begun.number))
    return begun


def begin_stream(method: str, address: int, **params: Any) -> Begun:
    """begin for a method that reads the ArrowArrayStream at an address, ingest or overlay. The stream is taken over."""
    request, begun = _text(method, params), Begun()
    library().dsi_begin_stream(request, len(request), address, ctypes.byref(begun.number))
    return begun


def wait(begun: Begun, progress: Callable[[dict[str, Any]], None] | None = None, *,
         until_cancelled: bool = False, milliseconds: int = _WAIT_MILLISECONDS) -> Any:
    """The result of a call that was begun. Until it is there progress is told now and then how far the call is, after
    so many milliseconds each time. What interrupts it cancels the call, and until_cancelled waits for that."""
    lib, text, kept, started = library(), _Text(), False, begun.number.value
    try:
        try:
            while lib.dsi_wait(started, milliseconds, ctypes.byref(text)):
                if progress is not None:
                    progress(call("progress", call=started))
        except BaseException:
            if until_cancelled:
                call("cancel", call=started)
                while lib.dsi_wait(started, _WAIT_MILLISECONDS, ctypes.byref(text)):
                    pass
            raise
        answer = _take(lib, text)
        kept = True
    finally:
        _end(lib, started, text, kept)
        begun.number.value = 0
    return _result(answer)


def _end(lib: ctypes.CDLL, started: int, text: _Text, kept: bool) -> None:
    """Forgets a call: unless kept it is cancelled, what it opened is closed, and its answer freed."""
    if not kept:
        _take(lib, text)
    lib.dsi_end(started, kept)


def call(method: str, /, following: bytes = b"", **params: Any) -> Any:
    """Runs a method of the engine. What interrupts it cancels it. following are its numbers, where there are many: 8
    bytes each, little endian."""
    lib, text, request, kept = library(), _Text(), _text(method, params, following), False
    # An exception of a signal handler is raised when dsi_call has returned, before what it returns has a name: that the
    # call has begun, and may have opened something, is known by its number.
    started = ctypes.c_int64()
    try:
        # As a rule it is all that is needed.
        if lib.dsi_call(request, len(request), _WAIT_MILLISECONDS, ctypes.byref(started), ctypes.byref(text)):
            while lib.dsi_wait(started.value, _WAIT_MILLISECONDS, ctypes.byref(text)):
                pass
        answer = _take(lib, text)
        kept = True
    finally:
        if started.value or not kept:
            _end(lib, started.value, text, kept)
    return _result(answer)


def stream(address: int, records: int) -> None:
    """Fills the ArrowArrayStream at an address with records, which a call opened and which are no one else's from then
    on."""
    if library().dsi_stream(records, address):
        raise errors.DsistoreError("the records are closed")


def records_error(records: Handle) -> errors.DsistoreError | None:
    """Why the engine gives no more records of a stream, or None: it knows of no error, or no more."""
    if not records.usable():
        return errors.ForkError(_INHERITED)
    try:
        call("records_error", handle=records.number)
    except errors.DsistoreError as e:
        return e
    return None


def stream_destructor() -> int:
    """The address of the destructor of capsules that hold an ArrowArrayStream. It is C: a capsule may go while an
    exception is on its way, and Python code that ran then would lose it."""
    address: int = library().dsi_destructor(*_capsule.FUNCTIONS, 0)
    return address


def job_name(job: str | None) -> str:
    """What usage records call a job: as it is asked for, else DSISTORE_JOB, else the name of the program."""
    if job is not None and not isinstance(job, str):
        raise errors.UsageError(f"job {job!r}: want a string")
    if job or os.environ.get("DSISTORE_JOB"):
        return job or os.environ["DSISTORE_JOB"]
    path = pathlib.PurePath(sys.argv[0] if sys.argv else "")
    return (path.parent.name if path.name == "__main__.py" else path.name) or "python"


def recorded(job: str) -> dict[str, Any]:
    """The parameters of a reader that say how usage records have it. The environment is looked at here: the engine has
    that of when it was loaded."""
    off = os.environ.get("DSISTORE_USAGE", "").lower() in ("off", "no", "false", "0")
    return {"job": job, "no_usage": off or None}


def _exit() -> None:
    """Releases the leases of readers, also of those that are open, and writes the usage records that are not written
    yet. It raises nothing: the process ends."""
    if usable():
        workers = [p.pid for p in multiprocessing.active_children() if p.daemon]
        if workers:  # a process that ends kills them
            multiprocessing.util.Finalize(None, _exit_of, (workers,), exitpriority=-1)
        with contextlib.suppress(Exception):
            call("exit")


def _exit_of(workers: list[int]) -> None:
    """Ends the leases of workers that were killed because this process ends."""
    with contextlib.suppress(Exception):
        call("exit_of", processes=workers)


def _at_exit() -> None:
    """Asks for _exit when this process ends. multiprocessing calls it in its own processes, which end without atexit,
    and in others by atexit: before it kills workers, those of pools at priority 15, and below 0 when they are gone."""
    multiprocessing.util.Finalize(None, _exit, exitpriority=100)


def flush_epoch() -> None:
    """Writes a worker's usage records of an epoch: multiprocessing kills workers that wait for the next."""
    if multiprocessing.parent_process() is not None:
        try:
            call("usage_flush_epoch")
        except errors.DsistoreError:
            pass  # a record that is lost hurts no read


_BATCH, _END, _TIMEOUT = 0, 1, 2


class _Batch(ctypes.Structure):
    _fields_ = [("block", ctypes.c_void_p), ("size", ctypes.c_int64), ("id", ctypes.c_int64),
                ("index", ctypes.c_int64), ("epoch", ctypes.c_int64)]


class Held:
    """One batch of the engine, which is released with the last of the arrays over its memory: see _block.Block."""

    __slots__ = ("_capsule", "_batch")

    def __init__(self) -> None:
        # Null until dsi_next gives a batch: there is no moment without an owner. There is no __del__, in which Python
        # drops the exception of a signal's handler, such as KeyboardInterrupt.
        self._capsule = _capsule.new(ctypes.sizeof(_Batch), None, _batch_destructor)
        self._batch = _Batch.from_address(_capsule.address(self._capsule, None))

    def batch(self) -> tuple[int, int, int, int, int]:
        """The address of its block, the block's bytes, its id, its index in the global order, and its epoch."""
        b = self._batch
        return b.block, b.size, b.id, b.index, b.epoch


def next_batch(loader: Handle) -> Held | None:
    """The loader's next batch, None after the last. It lets the interpreter handle signals while it waits."""
    if not loader.usable():
        raise errors.ForkError(_INHERITED)
    lib = loader.lib
    held, text = Held(), _Text()
    while True:
        status = lib.dsi_next(loader.number, _WAIT_MILLISECONDS, ctypes.byref(held._batch), ctypes.byref(text))
        if status == _BATCH:
            return held
        if status == _END:
            return None
        if status != _TIMEOUT:
            _result(_take(lib, text))


def use_locks(set_device: int, lock: int, unlock: int, device: int) -> None:
    """Says at which addresses the functions lie that lock pages for a device: those of cudaSetDevice, cudaHostRegister
    and cudaHostUnregister."""
    library().dsi_use_locks(set_device, lock, unlock, device)


def close(loader: Handle) -> None:
    """Closes a loader. Batches that were given stay valid. It may be called when the interpreter ends, and in a forked
    child, where there is nothing to close."""
    if loader.usable():
        loader.lib.dsi_close(loader.number)
