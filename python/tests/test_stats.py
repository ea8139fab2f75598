"""What dataset.stats() says of an epoch."""

import pickle
import threading

import pytest

import dsistore
from conftest import ROWS

FEATURES = ["user_list", "user_history", "dense_a"]


def test_nothing_was_read_before_an_epoch(table):
    stats = table.torch(FEATURES).stats()
    assert (stats.rows, stats.batches, stats.seconds, stats.stall_share, stats.samples_per_second) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("output", ["kjt", "ikjt"])
def test_an_epoch_is_counted(table, output):
    data = table.torch(FEATURES, batch_size=300, output=output)
    for epoch in range(2):  # each epoch for itself
        slots = rows = 0
        for batch in data:
            slots, rows = slots + len(batch.sparse.lengths), rows + len(batch.sparse.keys) * batch.rows
        stats = data.stats()
        assert (stats.rows, stats.batches) == (ROWS, 4)
        assert stats.requests >= 1 and stats.bytes_needed > 1000
        assert stats.sent_reads == stats.sent_lists == stats.bytes_down == stats.bytes_cached == 0  # a local disk
        assert 0 <= stats.stall_seconds <= stats.seconds
        assert stats.dedupe_factor > 1.5
    assert data.stats() == stats  # it stands still
    if output == "kjt":
        assert stats.emitted_factor == 1 and slots == rows
    else:
        assert stats.emitted_factor == rows / slots > 1.5


def test_it_counts_while_the_epoch_goes_on(table):
    data = table.torch(FEATURES, batch_size=100)
    batches = iter(data)
    next(batches)
    first = data.stats()
    next(batches)
    second = data.stats()
    assert (first.rows, second.rows) == (100, 200) and second.seconds > first.seconds
    batches.close()
    assert data.stats().rows == 200
    copy = pickle.loads(pickle.dumps(data))
    assert copy.stats().rows == 0
    assert "200 rows in 2 batches" in str(data.stats())


def test_stats_while_another_thread_ends_the_epoch(table):
    """It is no error that the loader is closed between two steps of stats."""
    data, wrong, over = table.torch(["dense_a"], batch_size=500), [], threading.Event()

    def watch():
        while not over.is_set():
            try:
                data.stats()
            except dsistore.DsistoreError as e:
                wrong.append(e)

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(100):
        list(data)
    over.set()
    thread.join()
    assert not wrong, wrong[0]
