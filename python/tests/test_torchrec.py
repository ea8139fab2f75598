import pytest
import torch

import dsistore
from conftest import make_rows
from test_torch import LISTS, check_rows, ALL

torchrec = pytest.importorskip("torchrec")

from torchrec.modules.embedding_configs import EmbeddingBagConfig  # noqa: E402
from torchrec.modules.embedding_modules import EmbeddingBagCollection  # noqa: E402

BUCKETS = 1000


def bags(keys):
    torch.manual_seed(1)
    return EmbeddingBagCollection(tables=[
        EmbeddingBagConfig(name=f"t_{k}", embedding_dim=8, num_embeddings=BUCKETS, feature_names=[k]) for k in keys
    ])


def test_the_forward_of_ikjt_equals_that_of_kjt(table):
    hashed = {k: f"hash({BUCKETS})" for k in LISTS}
    kjt = list(table.torch(LISTS, batch_size=128, transforms=hashed))
    ikjt = list(table.torch(LISTS, batch_size=128, transforms=hashed, output="ikjt"))
    model = bags(LISTS)
    for a, b in zip(kjt, ikjt, strict=True):
        want = model(a.sparse_kjt()).to_dict()
        dedup = b.dedup_kjt()
        assert set(dedup.keys()) | set(b.sparse.keys) == set(LISTS) and dedup.stride() == b.rows
        got = bags_of(model, dedup) | bags_of(model, b.sparse_kjt())
        for k in LISTS:
            torch.testing.assert_close(got[k], want[k])


def bags_of(model, kjt):
    """The pooled embeddings of a KJT's own keys."""
    if not kjt.keys():
        return {}
    part = bags(kjt.keys())
    part.load_state_dict({k: v for k, v in model.state_dict().items() if k.split(".")[1].removeprefix("t_") in kjt.keys()})
    return part(kjt).to_dict()


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
