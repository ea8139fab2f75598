import io
import pickle
import queue

import pytest
import torch
from torch.utils.data import DataLoader

import dsistore
from conftest import make_rows
from test_torch import ALL, LISTS, check_rows

torchrec = pytest.importorskip("torchrec")

import trainers  # noqa: E402
from trainers import BUCKETS, bags  # noqa: E402


def hashed(table, **options):
    """(kjt, ikjt): the batches of both outputs, ids in [0, BUCKETS)."""
    options.setdefault("transforms", {k: f"hash({BUCKETS})" for k in [*LISTS, "scored"]})
    features = options.pop("features", [*LISTS, "scored", "dense_a", "dense_b"])
    return (list(table.torch(features, output=output, **options)) for output in ("kjt", "ikjt"))


@pytest.mark.parametrize("batch_size", [7, 128, 4096])
def test_bags_of_ikjt_equal_those_of_kjt(table, batch_size):
    model, weighted = bags(LISTS), bags(["scored"], is_weighted=True)
    for a, b in zip(*hashed(table, batch_size=batch_size), strict=True):
        assert a.sparse_features.keys() == LISTS and not a.sparse_features.variable_stride_per_key()
        assert a.dedup_sparse_features.keys() == [] and a.expanded_sparse_features.keys() == LISTS
        assert b.sparse_features.keys() == b.dedup_sparse_features.keys(
        ) == LISTS and b.sparse_features.variable_stride_per_key()
        assert b.sparse_features.stride() == b.dedup_sparse_features.stride() == b.rows
        assert b.expanded_sparse_features.keys() == [] and b.expanded_sparse_features.stride() == b.rows
        want = model(a.sparse_features)
        torch.testing.assert_close(model(b.sparse_features).values(), want.values())
        torch.testing.assert_close(weighted(b.weighted_features).values(), weighted(a.weighted_features).values())


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_weighted_bags_of_the_source(table, source, output):
    """A weighted collection pools what pyarrow's rows pool to."""
    weighted = bags(["scored"], is_weighted=True)
    [weights] = [p.detach() for p in weighted.parameters()]
    rows = source["scored"].to_pylist()
    at = 0
    for batch in table.torch(["scored"], output=output, batch_size=300, transforms={"scored": f"mod({BUCKETS})"}):
        kjt = batch.weighted_features
        assert kjt.keys() == ["scored"] and kjt.weights().dtype == torch.float32
        want = torch.zeros(batch.rows, weights.shape[1])
        for i, row in enumerate(rows[at:at + batch.rows]):
            for x in row:
                want[i] += torch.tensor(x["score"]) * weights[x["id"] % BUCKETS]
        torch.testing.assert_close(weighted(kjt).values().detach(), want)
        at += batch.rows
    assert at == len(rows)


@pytest.mark.parametrize("expand", ["item_*", ["user_list"], ["user_history", "scored"]], ids=str)
def test_expanded_features_are_an_ordinary_kjt(table, expand):
    """Their lists come a row each, keys in the order of the request in both outputs; the model is the same."""
    plain = ["item_list"] if expand == "item_*" else expand
    model, weighted = bags(LISTS), bags(["scored"], is_weighted=True)
    for a, b in zip(*hashed(table, batch_size=128, expand=expand), strict=True):
        assert a.sparse_features.keys() == b.sparse_features.keys() == LISTS
        assert b.dedup_sparse_features.keys() == [k for k in LISTS if k not in plain]
        assert b.expanded_sparse_features.keys() == [k for k in LISTS if k in plain]
        if expand == ["user_list"]:  # the batch is not cut between neighbours
            assert b.dedup_sparse_features.values().data_ptr() == b.sparse.feature("user_history").values.data_ptr()
        assert not b.expanded_sparse_features.variable_stride_per_key()
        assert b.expanded_sparse_features.stride() == b.rows
        for kjt in (b.weighted_features, b.dedup_weighted_features):
            assert kjt.variable_stride_per_key() == ("scored" not in plain)
        want = model(a.sparse_features).to_dict()
        for got in (model(b.sparse_features).to_dict(),
                    part(model, b.dedup_sparse_features) | part(model, b.expanded_sparse_features)):
            assert got.keys() == want.keys()
            for k, pooled in want.items():
                torch.testing.assert_close(got[k], pooled)
        alone = b.expanded_weighted_features if "scored" in plain else b.dedup_weighted_features
        for kjt in (b.weighted_features, alone):
            torch.testing.assert_close(weighted(kjt).values(), weighted(a.weighted_features).values())
    with pytest.raises(dsistore.NotFoundError, match="did you mean \"user_list\""):
        table.torch(LISTS, output="ikjt", expand="user_lits")
    with pytest.raises(dsistore.NotFoundError, match=r"nothing_\*"):
        table.torch(LISTS, output="ikjt", expand="nothing_*")


def part(model, kjt):
    """The pooled embeddings of a KJT's own keys."""
    bag = bags(kjt.keys())
    bag.load_state_dict(
        {k: v
         for k, v in model.state_dict().items() if k.split(".")[1].removeprefix("t_") in kjt.keys()})
    return bag(kjt).to_dict()


def test_rows_of_segments_that_are_stored_differently(tmp_path, source):
    """Some lack a feature, or share nothing of one, or are not clustered: rows are the source's, keys in one order."""
    store = dsistore.open(tmp_path)
    plain = make_rows(5, 320).drop_columns(["user_history"])
    store.ingest("t", make_rows(4, 640), session_key="session_id", time_key="event_time")
    store.ingest(
        "t",
        plain.set_column(  # every row its own list: nothing to share
            plain.column_names.index("user_list"), "user_list", [[[i, i * i] for i in range(320)]]),
        session_key="session_id")
    store.ingest("t", make_rows(6, 160))
    t = store.table("t")
    rows = t.scan([n for n in source.column_names]).to_arrow()
    at, groups = 0, set()
    for batch in t.torch(ALL, labels="click", batch_size=100, output="ikjt"):
        assert (batch.sparse.keys, batch.weighted.keys, batch.floats.keys) == (LISTS, ["scored"], ["numbers"])
        groups.add(str([g.keys for g in batch.groups]))
        check_rows(batch, rows.slice(at, batch.rows).to_pydict())
        at += batch.rows
    assert at == 1120 and len(groups) > 1


def tensors_of(batch):
    """Every tensor of a batch, in the order of map."""
    found = []
    batch.map(lambda t: found.append(t) or t)
    return found


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(tensors_of(a), tensors_of(b), strict=True))


def kjt_tensors(kjt):
    return [t for t in (kjt.values(), kjt.weights_or_none(), kjt.lengths(), kjt.inverse_indices()[1]) if t is not None]


def one_batch(table, output="ikjt", **options):
    return next(
        iter(
            table.torch([*LISTS, "scored", "numbers", "vector", "dense_a", "@keys"], labels=["click"], output=output,
                        batch_size=100, **options)))


def test_a_kjt_is_made_once_and_stays_behind(table):
    batch = one_batch(table)
    whole = batch.sparse_features
    assert batch.sparse_features is whole and batch.to("cpu").sparse_features is not whole
    assert batch.dense_features is batch.dense
    # What travels: an int32 a row and group, not an int64 a row and key.
    assert [g.inverse.dtype for g in batch.groups] == [torch.int32] * len(batch.groups)
    assert whole.inverse_indices()[1].dtype == torch.int64 and whole.inverse_indices()[1].shape == (len(LISTS), 100)
    # the matrix of inverse indices has 2,400
    assert abs(len(pickle.dumps(batch)) - len(pickle.dumps(one_batch(table)))) < 100
    # Nothing is copied: all KJTs lie in one memory.
    assert len(batch.groups) > 1
    for kjt in (whole, batch.dedup_sparse_features):
        assert kjt.values().data_ptr() == batch.sparse.values.data_ptr() and kjt.lengths().data_ptr(
        ) == batch.sparse.lengths.data_ptr()
    split = one_batch(table, expand="item_list")
    assert split.expanded_sparse_features.values().data_ptr() == split.sparse.values[split.sparse.counts[0] +
                                                                                  split.sparse.counts[1]:].data_ptr()
    # What is known of lengths is said: TorchRec would add them up, and wait for the device.
    for kjt in (whole, split.sparse_features, split.dedup_sparse_features, split.expanded_sparse_features,
                one_batch(table, "kjt").sparse_features):
        assert kjt.length_per_key_or_none() == [sum(x.lengths().tolist()) for x in kjt.split([1] * len(kjt.keys()))]


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_batches_pickle(table, output):
    from torchrec.streamable import Pipelineable

    batch = one_batch(table, output)
    made = batch.sparse_features
    other = pickle.loads(pickle.dumps(batch))
    assert isinstance(other, Pipelineable) and same(other, batch)
    assert torch.equal(other.sparse_features.values(), made.values()) and other.sparse_features.keys() == made.keys()
    assert other.keys["session_id"].tolist() == batch.keys["session_id"].tolist()
    held = io.BytesIO()
    torch.save(batch, held)
    held.seek(0)
    assert same(torch.load(held, weights_only=False), batch)


def test_batches_of_workers_are_pipelineable(table):
    from torchrec.distributed.train_pipeline.utils import _to_device

    data = table.torch([*LISTS, "dense_a"], output="ikjt", batch_size=200)
    for batch in DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="spawn"):
        assert _to_device(batch, torch.device("cpu"), non_blocking=True).sparse_features.stride() == batch.rows


def test_devices(table):
    want = one_batch(table)
    assert same(one_batch(table, device="cpu"), want)
    meta = one_batch(table, device="meta")
    assert all(t.device.type == "meta" for t in tensors_of(meta)) and len(tensors_of(meta)) == len(tensors_of(want))
    assert [t.shape for t in tensors_of(meta)] == [t.shape for t in tensors_of(want)]
    for a, b in ((meta.sparse_features, want.sparse_features), (meta.dedup_sparse_features,
                                                                want.dedup_sparse_features)):
        assert a.keys() == b.keys() and a.stride_per_key() == b.stride_per_key()
        assert [t.shape for t in kjt_tensors(a)] == [t.shape for t in kjt_tensors(b)]
        assert all(t.device.type == "meta" for t in kjt_tensors(a))


@pytest.mark.parametrize("output", ["kjt", "ikjt", "partial"])
def test_parts_without_features_are_on_the_device_too(table, output):
    batch = next(iter(table.torch("dense_a", device="meta", output=output, presence=True)))
    found = tensors_of(batch)
    for kjt in (batch.sparse_features, batch.dedup_sparse_features, batch.weighted_features):
        found += [kjt.values(), kjt.lengths(), kjt.offsets()]
    assert {t.device.type for t in found} == {"meta"}


class CopyStream(torch.cpu.Stream):
    """A stream that says what happens on it."""

    def __init__(self, happened):
        self.happened = happened

    def wait_stream(self, stream):
        self.happened.append(("waits", stream))


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_copies_on_a_stream(table, output, monkeypatch):
    """As TorchRec's pipelines ask for it: allocated on the current stream, filled on the other, which waits first."""
    from torchrec.distributed.train_pipeline.utils import _to_device

    batch, happened = one_batch(table, output), []
    stream, copy = CopyStream(happened), torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda t, source, non_blocking=False: happened.append(
        ("copies", torch.cpu.current_stream(), non_blocking)) or copy(t, source, non_blocking))
    before = torch.cpu.current_stream()
    moved = _to_device(batch, torch.device("cpu"), non_blocking=True, data_copy_stream=stream)
    assert happened[:2] == [("waits", before), ("copies", stream, True)] and before is not stream
    assert len(happened) == 2 * (1 + len(batch.keys)) and torch.cpu.current_stream() is before
    assert same(moved, batch) and moved.sparse.values.data_ptr() != batch.sparse.values.data_ptr()
    assert moved.sparse_features.keys() == LISTS


def test_pin_memory_and_record_stream_reach_every_tensor(table, monkeypatch):
    """Without a GPU: what would be called on it."""
    batch = one_batch(table)
    before = batch.sparse_features
    pinned, recorded = [], []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda t: pinned.append(t) or t.clone())
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda t, stream: recorded.append(
        (t.untyped_storage().data_ptr(), stream)))
    copy = batch.pin_memory()
    # One copy of the block, and one of each key, which may be lists.
    assert len(pinned) == 1 + len(batch.keys) and same(copy, batch)
    assert not {t.data_ptr() for t in tensors_of(copy) if t.numel()} & {t.data_ptr() for t in tensors_of(batch)}
    batch.record_stream("s1")
    after = batch.weighted_features
    parts = batch.dedup_sparse_features
    want = [*tensors_of(batch), *kjt_tensors(before), *kjt_tensors(parts), after.values(), after.weights()]
    assert {(t.untyped_storage().data_ptr(), "s1") for t in want} <= set(recorded)
    batch.record_stream("s2")
    assert {(t.untyped_storage().data_ptr(), "s2") for t in want} <= set(recorded)


def test_parts_that_are_set_stay_so(table):
    """A job may change a batch before it moves it."""
    batch = one_batch(table)
    before = batch.sparse_features
    dense, lists = batch.dense * 2 + 1, batch.sparse
    batch.dense = dense
    lists.values = lists.values % 97
    batch.sparse = lists
    for other in (batch, batch.to("cpu"), batch.to("cpu").to("cpu"), batch.map(lambda t: t.clone()),
                  pickle.loads(pickle.dumps(batch))):
        assert torch.equal(other.dense, dense) and torch.equal(other.dense_features, dense)
        assert torch.equal(other.sparse_features.values(), before.values() % 97)
        assert torch.equal(other.labels, batch.labels)


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_a_kjt_that_is_set_moves_too(table, output):
    """A job that remaps ids sets the KJT that its model takes."""
    batch = one_batch(table, output)
    weighted = batch.weighted_features
    kjt = batch.sparse_features
    kjt._values = kjt.values() % 97
    batch.sparse_features = kjt
    for other in (batch.to("cpu"), batch.map(lambda t: t.clone()), pickle.loads(pickle.dumps(batch))):
        for got, want in ((other.sparse_features, kjt), (other.weighted_features, weighted)):
            assert got.keys() == want.keys() and got.stride_per_key() == want.stride_per_key()
            assert got.length_per_key() == want.length_per_key() and torch.equal(got.values(), want.values())
            assert torch.equal(got.lengths(), want.lengths()) and torch.equal(got.offsets(), want.offsets())
            assert got.variable_stride_per_key() == want.variable_stride_per_key() == (output == "ikjt")
            assert output == "kjt" or torch.equal(got.inverse_indices()[1], want.inverse_indices()[1])
    moved = batch.to("meta").sparse_features
    assert {t.device.type for t in (moved.values(), moved.lengths(), moved.offsets())} == {"meta"}
    assert output == "kjt" or moved.inverse_indices()[1].device.type == "meta"


def test_a_part_costs_nothing_until_it_is_asked_for(table):
    batch = one_batch(table)
    assert batch._parts == {}
    assert batch.sparse_features is batch.sparse_features and set(batch._parts) == {"sparse_features", "sparse",
                                                                                    "inverses"}


def test_weighted_lists_that_are_all_empty_have_weights(tmp_path):
    import pyarrow as pa

    kind = pa.list_(pa.struct([("id", pa.int64()), ("score", pa.float32())]))
    store = dsistore.open(tmp_path)
    store.ingest("ads", pa.table({"scored": pa.array([[], None, []], kind), "user": [1, 1, 2]}), session_key="user")
    for output in ("kjt", "ikjt"):
        [batch] = store.table("ads").torch("scored", output=output)
        assert batch.weighted_features.weights().shape == (0,)
        assert bags(["scored"], is_weighted=True)(batch.weighted_features).values().tolist() == [[0.0] * 8] * 3


def test_label_shapes(table):
    assert next(iter(table.torch("dense_a", labels="click", batch_size=10))).labels.shape == (10,)
    assert next(iter(table.torch("dense_a", labels=["click"], batch_size=10))).labels.shape == (10, 1)
    assert next(iter(table.torch("dense_a", batch_size=10))).labels.shape == (10, 0)


def test_dlrm_train_takes_the_batches_as_they_are(table):
    from torchrec.models.dlrm import DLRM, DLRMTrain

    losses = []
    for output in ("kjt", "ikjt"):
        model = bags(LISTS)
        torch.manual_seed(3)
        train = DLRMTrain(DLRM(model, dense_in_features=2, dense_arch_layer_sizes=[8, 8], over_arch_layer_sizes=[8, 1]))
        hashes = {k: f"hash({BUCKETS})" for k in LISTS}
        data = table.torch([*LISTS, "dense_a", "dense_b"], labels="click", batch_size=128, output=output,
                           transforms=hashes)
        losses.append([train(batch)[0].item() for batch in data])
    assert len(losses[0]) == 8
    torch.testing.assert_close(losses[0], losses[1])


def test_pipelines_without_sharding(store_path):
    want = trainers.plain_losses(store_path, "kjt")
    assert want[-1] != want[0]
    torch.testing.assert_close(trainers.plain_losses(store_path, "ikjt"), want)
    for output in ("kjt", "ikjt"):
        torch.testing.assert_close(trainers.base_losses(store_path, output), want)
        torch.testing.assert_close(trainers.base_losses(store_path, output, enable_inplace_copy_batch=True), want)


@pytest.mark.parametrize("world", [1, 2])
def test_sharded_training_pipelines(store_path, tmp_path, world):
    """Each rank is a process of its own. Losses are those of one process that takes all ranks' batches."""
    cases = [(output, sharding) for sharding in ("table_wise", "row_wise") for output in ("kjt", "ikjt")]
    if world > 1:
        # its backward gathers tensors of different sizes, which gloo refuses and NCCL does
        cases.remove(("ikjt", "row_wise"))
    cases.append(("kjt", "data_parallel"))  # dense kernels know no variable batches on a CPU: see check
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = torch.multiprocessing.spawn(
        trainers.rank_main, (world, str(store_path), tmp_path / "rendezvous", cases, results), nprocs=world, join=False)
    got = {}
    while len(got) < world * len(cases):
        try:
            rank, case, losses = results.get(timeout=1)
            got[rank, case] = losses
        except queue.Empty:
            ranks.join(timeout=0)  # raises what a rank raised
    while not ranks.join(timeout=10):
        pass
    want = trainers.plain_losses(store_path, "kjt", world)
    for (rank, case), losses in got.items():
        torch.testing.assert_close(losses, [step[rank] for step in want], rtol=1e-4, atol=1e-5,
                                   msg=lambda m: f"{case}: {m}")


@pytest.mark.parametrize("presence", [False, True])
def test_what_a_device_expands(table, presence):
    """output="kjt" with a device: slots travel, and the device makes the lists of rows. Here the device is a CPU."""
    options = dict(labels=["click"], batch_size=300, shuffle="session", presence=presence)
    plain = table.torch(ALL, **options)
    kept = table.torch(ALL, **options)
    kept._expands, kept._options["keep_slots"] = True, True
    assert kept.plan == plain.plan
    bytes_of = [0, 0]
    for a, b in zip(plain, kept, strict=True):
        for batch, i in ((a, 0), (b, 1)):
            bytes_of[i] += len(batch._block.bytes())
        b = b.to("cpu")
        for x, y in zip(tensors_of(a), tensors_of(b), strict=True):
            assert x.dtype == y.dtype and torch.equal(x, y)
        for part in ("sparse", "weighted", "floats"):
            x, y = getattr(a, part), getattr(b, part)
            assert (x.keys, x.sizes, x.counts, x.dedup) == (y.keys, y.sizes, y.counts, y.dedup)
        assert b.groups == [] and len(b.inverses) == 0
        for x, y in ((a.sparse_features, b.sparse_features), (a.weighted_features, b.weighted_features)):
            assert x.keys() == y.keys() and x.stride() == y.stride() and y.inverse_indices_or_none() is None
            assert x.length_per_key() == y.length_per_key() and torch.equal(x.values(), y.values())
    assert bytes_of[1] < 0.8 * bytes_of[0]


def test_a_device_expands_without_reading_the_block(table):
    """On a device that computes no values, so that nothing can have waited for one."""
    want, got = one_batch(table, "kjt"), one_batch(table, "kjt", device="meta")
    assert [t.shape for t in tensors_of(got)] == [t.shape for t in tensors_of(want)]
    assert all(t.device.type == "meta" for t in tensors_of(got))
    a, b = want.sparse_features, got.sparse_features
    assert a.length_per_key() == b.length_per_key_or_none() and a.values().shape == b.values().shape
