"""Which DataLoader worker this process is. Nothing here imports PyTorch: where it is not imported, there are no
workers."""

from __future__ import annotations

import sys
from typing import Any


def info() -> Any | None:
    """torch.utils.data.get_worker_info(): id, num_workers and seed of this worker; None in any other process."""
    data = sys.modules.get("torch.utils.data")
    return None if data is None else data.get_worker_info()
