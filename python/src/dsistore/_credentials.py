"""Credentials that a function of the program has: storage_options={"credential_provider": function}.

    engine ──credentials_wanted──> a thread, one for each function ──> function()
      ^ <────credentials_give─────────┘

The engine asks before the credentials expire, and when the service refuses them. It calls nothing in Python: a thread
of this process waits for its question in a call. In the storage options the function's number stands for it. Neither is
pickled. A forked process has the functions, and threads of its own.
"""

from __future__ import annotations

import datetime
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import errors

_functions: list[Callable[[], Any]] = []
_threads: set[tuple[int, int]] = set()  # of which process, for which function
_lock = threading.Lock()

# Forks wait, as those of the engine do.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

_WANT = "want a dict with access_key_id, secret_access_key, and where it has them token and expires_at"


def number(function: Any) -> str:
    """What stands for a function in the storage options."""
    if not callable(function):
        raise errors.UsageError(f"credential_provider: {type(function).__name__}: want a function")
    with _lock:
        for i, known in enumerate(_functions):
            if known == function:  # bound methods are made anew each time, and equal
                return str(i)
        _functions.append(function)
        return str(len(_functions) - 1)


def serve(of: str, wanted: Callable[[str], Any], give: Callable[..., Any]) -> None:
    """Starts the thread of a function, if this process has none. wanted waits until the engine wants what the function
    returns, give gives it."""
    with _lock:
        thread = os.getpid(), int(of)
        if thread in _threads:
            return
        threading.Thread(target=_serve, args=(of, wanted, give), name=f"dsistore-credentials-{of}", daemon=True).start()
        _threads.add(thread)


def _serve(of: str, wanted: Callable[[str], Any], give: Callable[..., Any]) -> None:
    while True:
        wanted(of)
        try:
            given = _ask(_functions[int(of)])
        except BaseException as e:  # one that cannot even be printed
            given = {"error": f"credential_provider: {type(e).__name__}"}
        give(provider=of, **given)


def _ask(function: Callable[[], Any]) -> dict[str, Any]:
    """What a function returns, as the engine takes it, or why it returns nothing. No value is shown."""
    try:
        got = function()
        if inspect.iscoroutine(got):
            got.close()
            raise TypeError("an async function: want one that returns the credentials")
        if not isinstance(got, Mapping):
            raise TypeError(f"{type(got).__name__}: {_WANT}")
        out: dict[str, Any] = {}
        for name, must in ("access_key_id", True), ("secret_access_key", True), ("token", False):
            value = got.get(name)
            if not isinstance(value, str) and (must or value is not None):
                raise TypeError(f"{name} is of type {type(value).__name__}: {_WANT}")
            out[name] = value
        end = got.get("expires_at")
        if end is not None:
            if not isinstance(end, datetime.datetime) or end.tzinfo is None:
                raise TypeError(f"expires_at is of type {type(end).__name__}: want a datetime with a time zone")
            out["expires_at"] = end.timestamp()
        return out
    except BaseException as e:  # of the program's own function, sys.exit too: all that the engine's caller can be told
        return {"error": f"credential_provider: {type(e).__name__}: {e}"}
