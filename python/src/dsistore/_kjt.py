"""TorchRec's KeyedJaggedTensor (KJT) from the lists of a batch. Importing torchrec takes seconds: it happens at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._jagged import DedupGroup, Jagged

if TYPE_CHECKING:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor


def plain(lists: Jagged, rows: int) -> KeyedJaggedTensor:
    """Lists of every row, over the same memory."""
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    return KeyedJaggedTensor(
        keys=lists.keys, values=lists.values, lengths=lists.lengths, offsets=lists.offsets, weights=lists.weights, stride=rows)


def variable(groups: list[DedupGroup], part: str, rest: Jagged, rows: int) -> KeyedJaggedTensor:
    """One part (sparse or weighted) of deduplicated groups with the variable-batch form: as many lists a key as its group has
    slots, and inverse indices [keys, rows]. Keys of rest come last, with identity rows. Values of more than one source are
    copied.

    The matrix of inverse indices is made here, on the tensors' device, of one int32 inverse a group: it is as large as
    keys x rows x 8 bytes, and so should neither be pinned nor travel. Nothing here waits for the device.
    """
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    lists: list[Jagged] = [getattr(g, part) for g in groups]
    keys = [k for j in lists for k in j.keys] + rest.keys
    matrix = torch.empty((len(keys), rows), dtype=torch.int64, device=rest.values.device)
    strides: list[list[int]] = []
    for g, j in zip(groups, lists):
        matrix[len(strides): len(strides) + len(j.keys)] = g.inverse
        strides += [[g.slots]] * len(j.keys)
    matrix[len(strides):] = torch.arange(rows, device=matrix.device)
    strides += [[rows]] * len(rest.keys)
    if rest.keys:
        lists.append(rest)
    weights = [j.weights for j in lists if j.weights is not None]
    return KeyedJaggedTensor(
        keys=keys, values=_joined([j.values for j in lists]), lengths=_joined([j.lengths for j in lists]),
        weights=_joined(weights) if weights else None, stride_per_key_per_rank=strides, inverse_indices=(keys, matrix))


def record_stream(kjt: KeyedJaggedTensor, stream: Any) -> None:
    """KeyedJaggedTensor.record_stream, which (in 1.9.2) leaves the inverse indices out."""
    kjt.record_stream(stream)
    if (inverse := kjt.inverse_indices_or_none()) is not None:
        inverse[1].record_stream(stream)


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
