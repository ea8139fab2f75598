"""Table.tensorflow: values and order of Table.torch, resume, and tf.distribute's input pipelines."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dsistore
from dsistore.numpy import Masked, Ragged
from programs import run, torchrec_first

torchrec_first()
tf = pytest.importorskip("tensorflow")

FEATURES = ["user_*", "item_list", "scored", "dense_*", "vector", "numbers", "country", "@keys"]
OPTIONS = [{}, {"presence": True, "batch_size": 77, "shuffle": "session", "seed": 2},
           {"dedup": True, "presence": True, "expand": "item_list"}, {"dedup": True},
           {"integers": "dense_b", "filter": "click = 1"}, {"shuffle": "row", "rank": 1, "world_size": 3},
           {"downsample": "click = 0 AND sample(0.5, key=request_id, seed=7)", "presence": True}]


def check(got, want, rows) -> None:
    """A part of a batch is numpy's, which is held against torch and the source."""
    parts = got if isinstance(got, dict) else {"values": got}
    if isinstance(want, Ragged):
        for name, values in (("values", want.values), ("weights", want.weights)):
            assert (name in parts) == (values is not None)
            if values is not None:
                assert isinstance(parts[name], tf.RaggedTensor) and parts[name].dtype == values.dtype
                assert np.array_equal(parts[name].values, values)
                assert np.array_equal(parts[name].row_splits, want.offsets)
        if "inverse" in parts:
            assert parts["inverse"].numpy().tolist() == (
                list(range(rows)) if want.inverse is None else want.inverse.tolist())
        else:
            assert want.inverse is None
        assert ("present" in parts) == (want.present is not None)
        assert want.present is None or np.array_equal(parts["present"], want.present)
        return
    if isinstance(want, Masked):
        assert np.array_equal(parts["present"], want.present)
        want = want.values
    if want.dtype == object:
        assert [x.decode() for x in parts["values"].numpy().tolist()] == [x or "" for x in want]
    else:
        assert parts["values"].dtype == want.dtype and np.array_equal(parts["values"], want)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_are_those_of_numpy(table, options):
    options = {"batch_size": 100, "labels": ["click"], **options}
    data, want = table.tensorflow(FEATURES, **options), table.numpy(FEATURES, **options)
    dataset = data.dataset()
    assert isinstance(dataset, tf.data.Dataset) and dataset.element_spec == data.element_spec
    for _ in range(2):  # epochs
        batches = 0
        for got, batch in zip(dataset, want, strict=True):
            assert set(got) == set(batch)
            for name in batch:
                check(got[name], batch[name], len(batch["click"]) if not isinstance(batch["click"], Masked) else len(
                    batch["click"].values))
            assert data.state_dict() == want.state_dict()
            batches += 1
        assert batches == len(data) > 0


def test_rows_of_shared_lists(table, source):
    at = 0
    for batch in table.tensorflow("user_history", dedup=True, batch_size=150).dataset():
        rows = tf.gather(batch["user_history"]["values"], batch["user_history"]["inverse"])
        want = source["user_history"].slice(at, rows.shape[0]).to_pylist()
        assert rows.to_list() == want and len(batch["user_history"]["values"].values) < sum(map(len, want))
        at += rows.shape[0]
    assert at == len(source)


def test_the_order_is_that_of_torch(table):
    pytest.importorskip("torch")
    options = {"batch_size": 64, "shuffle": "session", "seed": 5, "rank": 0, "world_size": 1}
    got = [b["event_time"].numpy().tolist() for b in table.tensorflow("@keys", **options).dataset()]
    assert got == [b.keys["event_time"].tolist() for b in table.torch("@keys", **options)]


def test_resume(table):
    """From the middle, exactly: tf.data reads no batch ahead."""
    def times(batches):
        return [b["event_time"].numpy().tolist() for b in batches]

    options = {"batch_size": 50, "shuffle": "session", "seed": 1, "shards": 1}
    first = table.tensorflow("@keys", **options)
    whole = [times(first.dataset()) for _ in range(2)]
    assert whole[0] != whole[1]
    first.set_epoch(0)
    running = iter(first.dataset())
    head = [next(running) for _ in range(7)]
    state = json.loads(json.dumps(first.state_dict()))
    assert state["global_position"] == 7
    other = table.tensorflow("@keys", **options)
    other.load_state_dict(state)
    dataset = other.dataset()
    assert times(head) + times(dataset) == whole[0] and times(dataset) == whole[1]


def test_input_pipelines_of_a_strategy(table):
    """What distribute_datasets_from_function gives each pipeline is its rank's, and it is sharded no further."""
    want = [[b["event_time"].tolist() for b in table.numpy("@keys", batch_size=100, rank=r, world_size=3)]
            for r in range(3)]
    for pipeline in range(3):
        context = tf.distribute.InputContext(num_input_pipelines=3, input_pipeline_id=pipeline)
        dataset = table.tensorflow("@keys", batch_size=100).dataset(context)
        assert [b["event_time"].numpy().tolist() for b in dataset] == want[pipeline]
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    data = table.tensorflow("@keys", batch_size=100)
    given = [b["event_time"].numpy().tolist() for b in strategy.distribute_datasets_from_function(data.dataset)]
    given_too = [b["event_time"].numpy().tolist() for b in strategy.experimental_distribute_dataset(
        table.tensorflow("@keys", batch_size=100).dataset())]
    assert given == given_too == [b["event_time"].tolist() for b in table.numpy(
        "@keys", batch_size=100, rank=0, world_size=1)]


class Resolver:
    """The second worker of a cluster of a chief and two."""

    task_type, task_id = "worker", 1

    def cluster_spec(self):
        return tf.train.ClusterSpec({"chief": ["a:1"], "worker": ["b:1", "c:1"]})


def test_the_rank_is_that_of_the_strategy(table):
    """tf.data reads in threads of its own, where no strategy is in scope; a state is saved out of scope."""
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    strategy.extended._cluster_resolver = Resolver()
    want = table.numpy("dense_a", batch_size=100, rank=2, world_size=3)
    batches = [b["dense_a"].tolist() for b in want]
    data = table.tensorflow("dense_a", batch_size=100)
    assert len(data) == 10
    with strategy.scope():
        assert len(data) == 3
        assert [b["dense_a"].numpy().tolist() for b in data] == batches
        dataset = table.tensorflow("dense_a", batch_size=100)
        given = dataset.dataset()
    assert [b["dense_a"].numpy().tolist() for b in given] == batches
    assert dataset.state_dict() == want.state_dict()


def test_a_dataset_is_of_one_rank(table):
    data = table.tensorflow("@keys", batch_size=100)
    contexts = [tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=p) for p in range(2)]
    data.dataset(contexts[0])
    data.dataset(contexts[0])
    for other in (contexts[1], None):
        with pytest.raises(dsistore.UsageError, match="rank 0 of 2"):
            data.dataset(other)


def test_what_makes_no_sense(table):
    with pytest.raises(dsistore.UsageError, match="partial"):
        table.tensorflow("user_list", dedup="partial")
    with pytest.raises(TypeError, match="batch_sise"):
        table.tensorflow("user_list", batch_sise=1)


WITHOUT_TENSORFLOW = """
    import sys
    sys.modules["tensorflow"] = None
    import dsistore
    try:
        dsistore.open(sys.argv[1]).table("ads").tensorflow("dense_a")
    except ImportError as e:
        print(e)
"""


def test_without_tensorflow(store_path):
    assert "pip install tensorflow" in run(WITHOUT_TENSORFLOW, store_path)
