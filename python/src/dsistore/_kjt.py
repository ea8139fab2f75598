"""TorchRec's KeyedJaggedTensor (KJT) from the lists of a batch. Importing torchrec takes seconds: it happens at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._jagged import Jagged, Lists, check_size

if TYPE_CHECKING:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor


def plain(lists: Jagged, rows: int) -> KeyedJaggedTensor:
    """Lists of every row, over the same memory."""
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    return KeyedJaggedTensor(
        keys=lists.keys, values=lists.values, lengths=lists.lengths, offsets=lists.offsets, weights=lists.weights, stride=rows)


def variable(lists: Lists, inverses: torch.Tensor, with_plain: bool) -> KeyedJaggedTensor:
    """The deduplicated lists, over the same memory, in the variable-batch form: as many lists a key as its group has slots, and
    inverse indices [keys, rows]. with_plain: the plain lists too, with identity rows.

    The matrix of inverse indices is made here, on the tensors' device, of one int32 inverse a group: it is as large as
    keys x rows x 8 bytes, and so should neither be pinned nor travel. Nothing here waits for the device.
    """
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    rows = lists.sizes[-1]
    last = len(lists.keys) if with_plain else len(lists.keys) - 1
    keys = [k for names in lists.keys[:last] for k in names]
    matrix = torch.empty((len(keys), rows), dtype=torch.int64, device=inverses.device)
    strides: list[list[int]] = []
    for i, (names, size) in enumerate(zip(lists.keys[:last], lists.sizes)):
        if names:
            matrix[len(strides): len(strides) + len(names)] = (
                inverses[i] if i < len(inverses) else torch.arange(rows, device=matrix.device))
            strides += [[size]] * len(names)
    values = slice(0, sum(lists.counts[:last]))
    check_size(values.stop)
    return KeyedJaggedTensor(
        keys=keys, values=lists.values[values], lengths=lists.lengths[: sum(n for [n] in strides)],
        weights=None if lists.weights is None else lists.weights[values], stride_per_key_per_rank=strides,
        inverse_indices=(keys, matrix))


def record_stream(kjt: KeyedJaggedTensor, stream: Any) -> None:
    """KeyedJaggedTensor.record_stream, which (in 1.9.2) leaves the inverse indices out."""
    kjt.record_stream(stream)
    if (inverse := kjt.inverse_indices_or_none()) is not None:
        inverse[1].record_stream(stream)
