"""Trains a small DLRM of TorchRec on the CPU, from a table of dsistore.

    make demo
    python examples/dlrm.py out/demo/store workload --features 'user_dense_*' 'user_list_*' 'item_list_*' --label click

Dense features go into the bottom MLP. Each list of ids is hashed into an embedding table of its own. --ids names
integer columns, such as user_id: each row is a list of one id. --label is 0 or 1. With --output ikjt, lists that rows
share are looked up once; the losses are the same. --checkpoint writes model, optimizer and the place in the data; a run
with --resume continues from there, and reads the table as it was when the first run began, whatever was ingested since.
Expiry and gc remove old snapshots: before a long job, `dsi branch create STORE TABLE JOB`, and train from TABLE@JOB.
"""

import argparse

import torch
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

import dsistore
from dsistore.torch import check


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", help="a directory")
    p.add_argument("table")
    p.add_argument("--features", nargs="+", default=["*"],
                   help="names or globs; other kinds than numbers and ids are left out")
    p.add_argument("--ids", nargs="*", default=[], help="integers that are ids")
    p.add_argument("--label", default="click")
    p.add_argument("--output", choices=["kjt", "ikjt"], default="kjt")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--steps", type=int, help="stop after this step; steps of earlier runs count")
    p.add_argument("--batch-size", type=int, default=1024)
    p.add_argument("--buckets", type=int, default=10_000, help="rows of each embedding table")
    p.add_argument("--dim", type=int, default=16, help="dimension of the embeddings")
    p.add_argument("--rate", type=float, default=0.04, help="learning rate")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--log", type=int, default=10, help="print the loss every so many steps")
    p.add_argument("--checkpoint", help="a file to write at the end, and every --every steps")
    p.add_argument("--every", type=int, default=1000)
    p.add_argument("--resume", help="a checkpoint to continue from")
    return p.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)

    # A state fits the snapshot that it was saved for. A branch is one snapshot for ever.
    state = torch.load(args.resume, weights_only=True) if args.resume else None
    version = state["dataset"]["snapshot"] if state and "@" not in args.table else None
    table = dsistore.open(args.store).table(args.table, version=version)

    # What the table has, by kind. Keys and the label are no inputs.
    inputs = [f for f in table.features(args.features) if f.role == "feature" and f.name != args.label]
    dense = [f.name for f in inputs if f.kind == "dense" and f.name not in args.ids]
    lists = [f.name for f in inputs if f.kind == "sparse" and "int" in f.elem]

    dataset = table.torch(
        dense + lists, labels=args.label, sparse=args.ids, batch_size=args.batch_size, shuffle="session",
        seed=args.seed, output=args.output, drop_last=True,
        transforms={
            **{name: "cast(float32) | clamp(0, inf) | log1p" for name in dense},
            **{name: f"hash({args.buckets})" for name in lists + args.ids},
        })

    bags = EmbeddingBagCollection(tables=[
        EmbeddingBagConfig(name=f"table_{name}", embedding_dim=args.dim, num_embeddings=args.buckets,
                           feature_names=[name]) for name in lists + args.ids
    ])
    model = DLRMTrain(DLRM(
        bags, dense_in_features=len(dense), dense_arch_layer_sizes=[64, args.dim], over_arch_layer_sizes=[64, 32, 1]))
    if args.output == "ikjt":
        for support in check(model):
            print(support)
    # The accumulator begins above 0: else the first step would be as large for gradients that are rounding errors.
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.rate, initial_accumulator_value=1e-6)

    step = 0
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        dataset.load_state_dict(state["dataset"])
        step = state["step"]

    def save() -> None:
        if args.checkpoint:
            torch.save(
                {
                    "model": model.state_dict(), "optimizer": optimizer.state_dict(), "dataset": dataset.state_dict(),
                    "step": step
                }, args.checkpoint)

    print(f"{len(table)} rows; {len(dense)} dense features, {len(lists) + len(args.ids)} embedding tables")
    while dataset.state_dict()["epoch"] < args.epochs and step != args.steps:
        for batch in dataset:  # one epoch, or what is left of it: nothing after its last batch
            if not ((batch.labels >= 0) & (batch.labels <= 1)).all():
                raise SystemExit(f"{args.label} is not 0 or 1 in every row: make such a label, as an overlay "
                                 "(docs/guide/overlays.md)")
            optimizer.zero_grad()
            loss, _ = model(batch)
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.log == 0:
                print(f"epoch {batch.epoch} step {step} loss {loss.item():.6f}", flush=True)
            if step % args.every == 0:
                save()
            if step == args.steps:
                break
    save()


if __name__ == "__main__":
    main()
