"""The order of batches where DataLoader's workers read: epochs that follow one another, are left early, or resumed."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import dsistore

from test_order import FORKSERVER, ROWS, data, epochs_alone, ids_of, over, parts, saved  # parts is a fixture


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("steps", [5, 12, 13])
def test_set_epoch_and_stateful_data_loader(parts, workers, persistent, steps):
    """The usual loop with a StatefulDataLoader, whose epochs have 12 batches; 13: the state is saved after the loop
    over the epoch."""
    table, _ = parts
    options = {"batch_size": 64, "shuffle": "session", "rank": 0, "world_size": 1}
    want = epochs_alone(table, 3, 1, batch_size=64, shuffle="session")
    context = {"multiprocessing_context": FORKSERVER, "persistent_workers": persistent} if workers else {}

    def loader():
        return StatefulDataLoader(data(table, **options), batch_size=None, num_workers=workers, **context)

    first = loader()
    first.dataset.set_epoch(1)
    running = iter(first)
    assert [ids_of(b) for b in itertools.islice(running, steps)] == want[1][:steps]
    state = json.loads(json.dumps(first.state_dict()))
    del running
    other = loader()
    other.load_state_dict(state)
    for epoch in (1, 2) if steps <= 12 else (2,):
        other.dataset.set_epoch(epoch)
        assert [ids_of(b) for b in other] == want[epoch][steps if epoch == 1 else 0:]


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_of_len_batches(parts, workers):
    """A loop that takes len(dataset) batches, and never asks for one more: all ranks are in the same epoch."""
    table, _ = parts
    batch_size = next(n for n in (64, 66, 70) if -(-ROWS // n) % 2)
    (want, following, third) = epochs_alone(table, 3, 2, batch_size=batch_size, shuffle="session")
    given = []
    for rank in range(2):
        d = data(table, batch_size=batch_size, shuffle="session", rank=rank, world_size=2)
        batches = DataLoader(d, batch_size=None, num_workers=2, multiprocessing_context=FORKSERVER) if workers else d
        given.append([[ids_of(b) for b in itertools.islice(batches, len(d))] for _ in range(3)])
    assert [[b for pair in itertools.zip_longest(*epoch) for b in pair if b] for epoch in zip(*given, strict=True)] == [
        want, following, third]


@pytest.mark.parametrize(("context", "persistent"), [("fork", False), (FORKSERVER, False), (FORKSERVER, True)])
def test_a_resumed_epoch_that_is_left_early(parts, context, persistent):
    """The pass after it is of the epoch that the workers have loaded, and has its shards."""
    table, _ = parts
    options = {"batch_size": 64, "shuffle": "session", "rank": 0, "world_size": 1}
    want = epochs_alone(table, 4, 3, batch_size=64, shuffle="session")

    def loader(**more):
        return StatefulDataLoader(data(table, **options, **more), batch_size=None, num_workers=2,
                                  multiprocessing_context=context, persistent_workers=persistent)

    first = loader(shards=3)
    first.dataset.set_epoch(2)
    running = iter(first)
    assert [ids_of(b) for b in itertools.islice(running, 5)] == want[2][:5]
    state = json.loads(json.dumps(first.state_dict()))
    del running
    other = loader()
    other.load_state_dict(state)
    running = iter(other)
    assert [ids_of(b) for b in itertools.islice(running, 2)] == want[2][5:7]
    del running
    assert [ids_of(b) for b in other] == want[2]
    assert [ids_of(b) for b in other] == want[3]


def test_workers_that_begin_late(parts):
    """A pass is left after its first batch, when its other workers have hardly begun, and another begins, of another
    loader perhaps: all workers of a pass agree on where it begins."""
    table, _ = parts
    options = {"batch_size": 32, "shuffle": "row", "rank": 0, "world_size": 1}
    want = epochs_alone(table, 2, 1, batch_size=32, shuffle="row")
    state = saved(table, 0, 7, **options)
    d = data(table, **options)

    def loader(workers, of=d):
        return DataLoader(of, batch_size=None, num_workers=workers, multiprocessing_context=FORKSERVER)

    d.load_state_dict(state)
    assert ids_of(next(iter(loader(1)))) == want[0][7]
    assert [ids_of(b) for b in loader(3)] == want[0]
    assert [ids_of(b) for b in d] == want[1]
    d.load_state_dict(state)
    d.set_epoch(0)
    running = iter(loader(3))
    d.set_epoch(1)  # of the pass after that
    assert [ids_of(b) for b in running] == want[0][7:]
    assert [ids_of(b) for b in loader(2)] == want[1]
    d.load_state_dict(state)
    running = iter(loader(2))
    d.load_state_dict({**state, "global_position": 9})
    assert [ids_of(b) for b in running] == want[0][7:]
    assert [ids_of(b) for b in loader(2)] == want[0][9:]


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_follow_one_another_whatever_the_seed_of_torch(parts, persistent):
    """A loop that seeds torch alike before each epoch gives its workers the same seeds."""
    table, _ = parts
    options = {"batch_size": 32, "shuffle": "row", "rank": 0, "world_size": 1}
    want = epochs_alone(table, 3, 1, batch_size=32, shuffle="row")
    d = data(table, **options)
    d.load_state_dict(saved(table, 0, 7, **options))
    for epoch, workers in enumerate((1, 3, 3) if not persistent else (2, 2, 2)):
        if epoch == 0 or not persistent:
            loader = DataLoader(d, batch_size=None, num_workers=workers, persistent_workers=persistent,
                                multiprocessing_context=FORKSERVER)
        torch.manual_seed(3)
        assert [ids_of(b) for b in loader] == want[epoch][7 if epoch == 0 else 0:]


@pytest.mark.parametrize("persistent", [False, True])
def test_set_epoch_reaches_workers(parts, persistent):
    table, _ = parts
    d = data(table, batch_size=64, shuffle="session", rank=0, world_size=1)
    epochs = epochs_alone(table, 6, 1, batch_size=64, shuffle="session")
    loader = DataLoader(d, batch_size=None, num_workers=2, persistent_workers=persistent,
                        multiprocessing_context=FORKSERVER)
    d.load_state_dict({**d.state_dict(), "epoch": 3, "global_position": 5})
    assert [ids_of(b) for b in loader] == epochs[3][5:]  # goes on, once
    assert [ids_of(b) for b in loader] == epochs[4]
    with pytest.raises(dsistore.UsageError, match="StatefulDataLoader"):
        d.state_dict()
    d.set_epoch(2)
    assert d.state_dict()["epoch"] == 2
    running = iter(loader)
    assert [ids_of(next(running)) for _ in range(2)] == epochs[2][:2]  # and is left before the workers are through
    if not persistent:
        del running
    assert [ids_of(b) for b in loader] == epochs[2]
    assert [ids_of(b) for b in itertools.islice(loader, 12)] == epochs[3]  # nobody asks for one more
    assert [ids_of(b) for b in loader] == epochs[4]
    running = iter(loader)
    next(running)
    d.set_epoch(5)
    rest = [ids_of(b) for b in running]
    assert rest == epochs[5][1:]  # that it ends does not count: the epoch was set meanwhile
    assert [ids_of(b) for b in loader] == epochs[5]
    d.set_epoch(1)
    assert [ids_of(b) for b in loader] == epochs[1]


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_of_several_ranks(parts, workers):
    table, _ = parts
    given = {}
    for rank in range(2):
        d = data(table, batch_size=50, shuffle="row", rank=rank, world_size=2)
        for b in DataLoader(d, batch_size=None, num_workers=workers, multiprocessing_context=FORKSERVER):
            assert b.index % 2 == rank and b.index not in given
            given[b.index] = ids_of(b)
    (alone,) = epochs_alone(table, 1, 2, batch_size=50, shuffle="row")
    assert [given[i] for i in range(len(given))] == alone


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [0, 1, 4, 11, 12])
def test_stateful_data_loader(parts, workers, steps):
    """12 batches/epoch: from before the first to after the last."""
    table, _ = parts
    options = {"batch_size": 64, "shuffle": "session", "rank": 0, "world_size": 1}
    context = {"multiprocessing_context": FORKSERVER} if workers else {}

    def loader():
        return StatefulDataLoader(data(table, **options), batch_size=None, num_workers=workers, **context)

    epochs = epochs_alone(table, 2, 1, batch_size=64, shuffle="session")
    first = loader()
    running = iter(first)
    assert [ids_of(next(running)) for _ in range(steps)] == epochs[0][:steps]
    state = json.loads(json.dumps(first.state_dict()))
    assert [ids_of(b) for b in running] == epochs[0][steps:]
    del running
    other = loader()
    other.load_state_dict(state)
    assert [ids_of(b) for b in other] == epochs[0][steps:]  # after the last, none
    assert [ids_of(b) for b in other] == epochs[1]


def test_a_state_of_workers_is_for_as_many(parts):
    """A worker's state says where that worker is. With other ranks or workers rows would come twice: it is refused."""
    table, _ = parts

    def loader(rank, world, workers=2):
        return StatefulDataLoader(data(table, batch_size=16, rank=rank, world_size=world, shards=4), batch_size=None,
                                  num_workers=workers, multiprocessing_context=FORKSERVER)

    first = loader(0, 4)
    running = iter(first)
    given = [b.index for b in itertools.islice(running, 3)]
    state = json.loads(json.dumps(first.state_dict()))
    rest = [b.index for b in running]
    del running
    again = loader(0, 4)
    again.load_state_dict(state)
    assert [b.index for b in again] == rest and not set(given) & set(rest)
    other = loader(0, 2)
    other.load_state_dict(state)
    with pytest.raises(dsistore.UsageError, match=r"\[4, 2\].*there are \[2, 2\]"):
        list(other)
