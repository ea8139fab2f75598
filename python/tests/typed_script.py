"""What a user's script looks like to a type checker: it is checked and not run (see test_package.py)."""

import datetime

import torch
from torch.utils.data import DataLoader

import dsistore
from dsistore import Shuffle
from dsistore.numpy import NumpyDataset
from dsistore.torch import Batch, DedupGroup, Jagged, TorchDataset


def train(path: str) -> float:
    store: dsistore.Store = dsistore.open(path)
    report: dict[str, object] = store.ingest("ads", [f"{path}/a.parquet"], session_key="session_id", overwrite=True)
    names: list[str] = store.tables()
    table: dsistore.Table = store.table("ads", version=datetime.datetime.now())
    kinds: list[str] = [f.kind for f in table.features("user_*")]
    rows: int = table.scan(["click"], partitions="ds = '2026-11-01'").rows
    dataset: TorchDataset = table.torch(
        ["user_*"], labels=["click"], batch_size=4096, shuffle=Shuffle("session", 8), seed=1, output="ikjt",
        transforms={"user_*": "first(50)"}, presence=True, drop_last=True, device=torch.device("cpu"))
    table.torch("user_*", batch_sise=4096)  # type: ignore[call-arg]
    table.torch("user_*", output="jagged")  # type: ignore[arg-type]
    arrays: NumpyDataset = table.numpy(columns=["user_*"], dedup="partial", sparse="item_id", batch_size=64)
    table.numpy("user_*", batch_sise=4096)  # type: ignore[call-arg]
    table.jax("user_*", labels="click", dedup=True).set_epoch(1)
    table.tensorflow("user_*", shuffle="row").dataset()
    print(len(table.grain("user_*")), table.arrow("user_*", dedup=True).rows, len(arrays))
    dataset.set_epoch(1)
    dataset.load_state_dict(dataset.state_dict())
    total = 0.0
    loader: DataLoader[Batch] = DataLoader(dataset, batch_size=None)
    for batch in dataset:
        dense: torch.Tensor = batch.dense
        lists: Jagged = batch.sparse
        groups: list[DedupGroup] = batch.groups
        mask: torch.Tensor | None = batch.to("cpu").dense_present
        total += float(dense.sum()) + len(groups) + len(lists.keys) + (0 if mask is None else mask.numel())
    try:
        len(dataset)
    except dsistore.CorruptError as e:
        where: str | None = e.object
        print(where, report, names, kinds, rows, loader)
    return total
