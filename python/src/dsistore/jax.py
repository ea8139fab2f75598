"""Batches as JAX arrays. PyTorch is not needed.

    for batch in table.jax(["user_*", "age"], labels=["click"], batch_size=4096, transforms={"user_*": "mod(1000000)"}):
        batch["age"], batch["click"]                # [B] float32
        batch["user_history"].values                # ids of all rows
        batch["user_history"].offsets               # list i is values[offsets[i]:offsets[i + 1]]

A batch is that of dsistore.numpy with jax.Arrays: a dict of arrays, Ragged, Slices and Masked, which are pytrees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Union

import jax
import numpy as np

from . import errors
from ._block import Block
from ._dataset import Dataset, Options
from ._epoch_start import EpochStart
from ._plan import TableRef
from ._rank import Rank
from .numpy import Masked, NumpyMaker, Ragged, Slices

__all__ = ["JaxDataset", "Masked", "Ragged", "Slices"]

JaxBatch = dict[str, Any]
Target = Union[None, jax.Device, jax.sharding.Sharding]

_INT32 = ("bool", "int8", "int16", "int32", "uint8", "uint16")  # types whose values are int32's
# Transforms after which all ids are in [0, n), of those that have n.
_BOUNDED = re.compile(r"(?:mod|hash|sigrid_hash)\((\d+)")
_KEEP = ("first", "list", "scores.")  # and those that leave ids as they are


def of_process() -> Rank:
    """The rank of this process among JAX's: jax.process_index() of jax.process_count()."""
    return Rank(jax.process_index(), jax.process_count())


class JaxDataset(Dataset[JaxBatch]):
    """Training batches as dicts of JAX arrays, in an order that depends only on the arguments and the epoch. Made by
    Table.jax. dsistore.numpy.NumpyDataset describes a batch.

    Arrays that begin at a multiple of 64 bytes share the engine's memory by DLPack; others are copied. With device, a
    jax.Device or a Sharding, the whole batch is put there. A dataset with a device cannot be pickled, because JAX's
    devices cannot. Keys and strings that are not numbers stay NumPy arrays.

    rank and world_size, given together, default to ``jax.process_index()`` and ``jax.process_count()``, which are
    looked up where the dataset is iterated.

    JAX has no 64-bit numbers unless ``jax_enable_x64`` is set, and would silently cut ids to int32. If it is not set,
    ids are int32, and features must fit: by their type, or by a transform (``mod(n)``, ``hash(n)``, ``cast(int32)``,
    ``clamp(0, n)``, ``bucketize(...)``). Any other feature is a UsageError that names it.
    """

    _ask_rank = staticmethod(of_process)

    def __init__(self, table: TableRef, options: Options, device: Target = None):
        super().__init__(table, options, EpochStart())
        self._maker = NumpyMaker(self)
        self._device = device
        self._refuse_wide()

    def _refuse_wide(self) -> None:
        """Refuses features that JAX would cut to 32 bits."""
        if jax.config.jax_enable_x64:
            return
        chains = {f["name"]: f.get("transforms", "") for f in json.loads(self._plan.text)["features"]}
        exact = self._integers | {f["name"] for f in self._plan.features if f["role"].endswith(" key")}
        wide = [
            f["name"] for f in self._plan.features
            if (f["kind"] in ("sparse", "weighted") and f["elem"] not in ("float32", "float64")
                or f["name"] in exact and f["kind"] == "dense" and f["elem"] != "float32")
            and f["elem"] not in _INT32 and not bounded(chains[f["name"]])]
        if wide:
            raise errors.UsageError(
                f"JAX would make 32-bit numbers of the 64-bit ones of {', '.join(wide)}: set jax_enable_x64, or bound "
                'them: transforms={"' + wide[0] + '": "mod(1000000)"} or "cast(int32)"')

    def _make(self, block: Block) -> JaxBatch:
        batch = {name: _of_parts(part, _array) for name, part in self._maker.make(block).items()}
        if self._device is None:
            return batch
        return {name: _of_parts(part, self._put) for name, part in batch.items()}

    def _put(self, array: Any) -> Any:
        return jax.device_put(array, self._device) if isinstance(array, jax.Array) else array


def bounded(chain: str) -> bool:
    """Whether all ids are in int32 after a chain of transforms, as text, whatever their type."""
    for transform in reversed([t.strip() for t in chain.split(" | ")]):
        if match := _BOUNDED.match(transform):
            return int(match[1]) <= 2**31
        if match := re.fullmatch(r"clamp\((-?\d+), (-?\d+)\)", transform):
            return -2**31 <= int(match[1]) <= int(match[2]) < 2**31
        if transform.startswith("bucketize("):
            return True
        if transform != "fill" and not transform.startswith(_KEEP):
            return False
    return False


def _of_parts(part: Any, f: Callable[[Any], Any]) -> Any:
    """A part of a batch with f applied to its arrays."""
    if isinstance(part, tuple):
        parts: Any = type(part)
        return parts(*(None if x is None else f(x) for x in part))
    return f(part)


def _array(a: Any) -> Any:
    """A NumPy array as JAX's, over the same memory where that is possible. What JAX has no type for stays as it is."""
    if a.dtype.kind not in "biuf":
        return a
    if a.dtype.itemsize == 8 and not jax.config.jax_enable_x64:  # it is within 32 bits: see _refuse_wide
        a = a.astype({"i": np.int32, "u": np.uint32, "f": np.float32}[a.dtype.kind])
    return jax.dlpack.from_dlpack(np.ascontiguousarray(a))
