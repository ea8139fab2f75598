"""Batches as arrays, of NumPy and of JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baselines.engines.dsistore_engine import Dsistore
from baselines.tensors import BATCH, Projection

from .given import Given, Part


class Numpy(Dsistore):
    exact_order = True

    def given(self, opened: Any, p: Projection) -> Any:
        return opened.numpy(p.columns, batch_size=BATCH, workers=self.threads)

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Given]:
        first, lists = projection.columns[0], set(projection.sparse)
        for b in self.given(opened, projection):
            def part(name: str, b: Any = b) -> Part:
                return (b[name].values, b[name].offsets) if name in lists else b[name]

            yield Given(projection, len(b[first].offsets) - 1 if first in lists else len(b[first]), part)


class Jax(Numpy):
    """On the CPU, with 64-bit ids."""

    def __init__(self, threads: int):
        import jax

        super().__init__(threads)
        self._jax = jax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
        jax.devices()  # it starts at its first use

    def given(self, opened: Any, p: Projection) -> Any:
        for b in opened.jax(p.columns, batch_size=BATCH, workers=self.threads):
            yield self._jax.block_until_ready(b)  # what it copies is copied then
