"""TorchRec's KeyedJaggedTensor (KJT) from the lists of a batch. Importing torchrec takes seconds: it happens at the
first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .lists import Jagged, Map

if TYPE_CHECKING:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor


def expanded(j: Jagged, rows: int) -> KeyedJaggedTensor:
    """Features that have a list a row, over the same memory: an ordinary KJT."""
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    return KeyedJaggedTensor(
        keys=j.keys[:], values=j.values, lengths=j.lengths, offsets=j.offsets, weights=j.weights, stride=rows,
        length_per_key=j.counts[:])


def deduplicated(j: Jagged, inverses: torch.Tensor) -> KeyedJaggedTensor:
    """Features over the same memory in the variable-batch form: as many lists a key as its group has slots, or rows
    where it is in none, and inverse indices [keys, rows], which are those of each feature, of int32.

    The matrix of inverse indices is made here, on the tensors' device: it is as large as keys x rows x 8 bytes, and so
    should neither be pinned nor travel. Nothing here waits for the device.
    """
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    keys, sizes = j.keys[:], j.sizes[:]
    return KeyedJaggedTensor(
        keys=keys, values=j.values, lengths=j.lengths, offsets=j.offsets, weights=j.weights,
        stride_per_key_per_rank=torch.tensor(sizes, dtype=torch.int32).unsqueeze(1),  # on the host, as TorchRec has it
        stride_per_key=sizes, length_per_key=j.counts[:],
        inverse_indices=(keys, inverses.long()))


def mapped(kjt: KeyedJaggedTensor, f: Map) -> KeyedJaggedTensor:
    """A KJT with f applied to every tensor of it."""
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    weights, lengths, offsets = (
        None if t is None else f(t) for t in (kjt.weights_or_none(), kjt.lengths_or_none(), kjt.offsets_or_none()))
    variable, inverse = kjt.variable_stride_per_key(), kjt.inverse_indices_or_none()
    return KeyedJaggedTensor(
        keys=kjt.keys(), values=f(kjt.values()), weights=weights, lengths=lengths, offsets=offsets,
        stride=None if variable else kjt.stride(),
        stride_per_key_per_rank=kjt.stride_per_key_per_rank() if variable else None,
        stride_per_key=kjt.stride_per_key() if variable else None, length_per_key=kjt.length_per_key_or_none(),
        inverse_indices=None if inverse is None else (inverse[0], f(inverse[1])))


def record_stream(kjt: KeyedJaggedTensor, stream: Any) -> None:
    """KeyedJaggedTensor.record_stream, which (in 1.9.2) leaves the inverse indices out."""
    kjt.record_stream(stream)
    if (inverse := kjt.inverse_indices_or_none()) is not None:
        inverse[1].record_stream(stream)
