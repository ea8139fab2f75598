import pytest
import torch

import dsistore
from conftest import make_rows
from test_torch import LISTS, check_rows, ALL

torchrec = pytest.importorskip("torchrec")

from torchrec.modules.embedding_configs import EmbeddingBagConfig  # noqa: E402
from torchrec.modules.embedding_modules import EmbeddingBagCollection  # noqa: E402

BUCKETS = 1000


def bags(keys, **options):
    torch.manual_seed(1)
    return EmbeddingBagCollection(tables=[
        EmbeddingBagConfig(name=f"t_{k}", embedding_dim=8, num_embeddings=BUCKETS, feature_names=[k]) for k in keys
    ], **options)


def hashed(table, **options):
    """(kjt, ikjt): the batches of both outputs, ids in [0, BUCKETS)."""
    options.setdefault("transforms", {k: f"hash({BUCKETS})" for k in [*LISTS, "scored"]})
    features = options.pop("features", [*LISTS, "scored", "dense_a", "dense_b"])
    return (list(table.torch(features, output=output, **options)) for output in ("kjt", "ikjt"))


@pytest.mark.parametrize("batch_size", [1, 128, 4096])
def test_bags_of_ikjt_equal_those_of_kjt(table, batch_size):
    model, weighted = bags(LISTS), bags(["scored"], is_weighted=True)
    for a, b in zip(*hashed(table, batch_size=batch_size), strict=True):
        assert a.sparse_features.keys() == LISTS and not a.sparse_features.variable_stride_per_key()
        assert a.dedup_sparse_features.keys() == [] and a.plain_sparse_features.keys() == LISTS
        assert sorted(b.sparse_features.keys()) == sorted(LISTS) and b.sparse_features.variable_stride_per_key()
        assert b.sparse_features.stride() == b.dedup_sparse_features.stride() == b.rows
        want = model(a.sparse_features)
        torch.testing.assert_close(model(b.sparse_features).values(), want.values())
        torch.testing.assert_close(weighted(b.weighted_features).values(), weighted(a.weighted_features).values())
        got = part(model, b.dedup_sparse_features) | part(model, b.plain_sparse_features)
        for k, pooled in want.to_dict().items():
            torch.testing.assert_close(got[k], pooled)


def part(model, kjt):
    """The pooled embeddings of a KJT's own keys."""
    bag = bags(kjt.keys())
    bag.load_state_dict({k: v for k, v in model.state_dict().items() if k.split(".")[1].removeprefix("t_") in kjt.keys()})
    return bag(kjt).to_dict()


def test_groups_are_the_same_in_every_batch(tmp_path, source):
    """Segments that store features differently still give a model the same groups."""
    store = dsistore.open(tmp_path)
    plain = make_rows(5, 320).drop_columns(["user_history"])
    store.ingest("t", make_rows(4, 640), session_key="session_id", time_key="event_time")
    store.ingest("t", plain.set_column(  # every row its own list: nothing to share
        plain.column_names.index("user_list"), "user_list", [[[i, i * i] for i in range(320)]]), session_key="session_id")
    store.ingest("t", make_rows(6, 160))
    t = store.table("t")
    rows = t.scan([n for n in source.column_names]).to_arrow()
    names, at = None, 0
    for batch in t.torch(ALL, labels="click", batch_size=100, output="ikjt"):
        shape = ([[g.sparse.keys, g.weighted.keys, g.floats.keys] for g in batch.groups], batch.sparse.keys)
        names = names or shape
        assert shape == names
        want = rows.slice(at, batch.rows).to_pydict()
        want = {k: v for k, v in want.items()}
        check_rows(batch, want)
        at += batch.rows
    assert at == 1120 and names[0]
