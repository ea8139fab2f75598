"""The engine among processes: forks, workers, and another Go library in the same process."""

from __future__ import annotations

import pytest

from programs import finish, run, start

FORK_WHILE_ITERATING = """
    import os, signal, sys, threading
    import dsistore
    from dsistore import _engine
    data = dsistore.open(sys.argv[1]).table("ads").torch(["user_list"], batch_size=50, prefetch=2)
    running, scan = iter(data), iter(dsistore.open(sys.argv[1]).table("ads").scan(["click"], batch_size=50))
    kept = [next(running), next(running)]
    records = next(scan)
    for ending in ("exit", "_exit", "exception"):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            assert sum(b.rows for b in data) == 1000 and data.stats().rows == 1000
            assert dsistore.open(sys.argv[1]).tables() == ["ads"]
            try:
                next(running)
                os._exit(10)
            except dsistore.ForkError as e:
                assert "before this process was forked" in str(e)
            running.close()
            made = [next(iter(data)).sparse.values.sum() for _ in kept]
            assert made[0] == kept[0].sparse.values.sum()  # memory of the parent's, and of the child's
            try:
                next(scan)
                os._exit(11)
            except dsistore.ForkError as e:
                assert "before this process was forked" in str(e)
            del running, kept, records, scan, data, made
            assert _engine.call("open_counts") == {**_engine.call("open_counts"), "batches": 0, "loaders": 0}
            if ending == "_exit":
                os._exit(0)
            if ending == "exception":
                sys.stderr = open(os.devnull, "w")
                raise SystemError("for the test")
            sys.exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == (1 if ending == "exception" else 0), (ending, status)
    kept += list(running)
    assert sum(b.rows for b in kept) == 1000 and records.num_rows == 50
    counts = _engine.call("open_counts")
    assert counts["batches"] == len(kept) and counts["loaders"] == 0, counts
    del kept
    assert _engine.call("open_counts")["batches"] == 0
"""


def test_a_fork_while_an_iterator_lives(store_path):
    run(FORK_WHILE_ITERATING, store_path)


# Modules are imported first: where a process is forked while a thread imports a module, Python's lock of that module is
# never released in the child, with or without dsistore.
FORK_BEFORE_USE = """
    import os, signal, sys, threading
    import pyarrow
    import dsistore
    def rows():
        return dsistore.open(sys.argv[1]).table("ads").scan(["click"]).to_arrow().num_rows
    def in_child(f):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                os._exit(f())
            except BaseException as e:
                print(repr(e), file=sys.stderr)
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert in_child(lambda: rows() // 1000) == 1 and in_child(lambda: 0) == 0
    # Forks while another thread loads the engine: a child loads its own, and never waits.
    loading = threading.Thread(target=rows)
    loading.start()
    seen = [in_child(lambda: min(rows(), 1)) for _ in range(20)]
    loading.join()
    assert set(seen) == {1}, seen
    # A child of a child has an engine too.
    assert rows() == 1000 and in_child(lambda: (rows() + 1000 * in_child(lambda: rows() // 1000)) // 1000) == 2
"""


def test_a_fork_before_the_engine_is_used(store_path):
    run(FORK_BEFORE_USE, store_path)


FORKED_WORKERS = """
    import multiprocessing, sys
    import dsistore
    from torch.utils.data import DataLoader
    multiprocessing.set_start_method("fork")
    data = dsistore.open(sys.argv[1]).table("ads").torch(["event_time"], batch_size=50, shuffle="session", seed=1)
    def epochs(*loaders):
        return [[b.keys["event_time"].tolist() for b in loader] for loader in loaders]
    want = []
    for epoch in range(4):
        data.set_epoch(epoch)
        want += epochs(data)
    assert len(want[0]) == 20 and want[0] != want[1]
    for persistent in (False, True):
        data.set_epoch(0)
        loader = DataLoader(data, batch_size=None, num_workers=int(sys.argv[2]), persistent_workers=persistent)
        assert epochs(loader, loader) == want[:2]
        assert epochs(data, loader) == want[2:]
        data.set_epoch(1)
        state = data.state_dict()
        data.load_state_dict({**state, "global_position": 3})
        assert epochs(loader) == [want[1][3:]]
        assert next(iter(loader)).keys["event_time"].tolist() == want[2][0]
        assert epochs(loader) == [want[2]]  # it was left at its begin
    print(len(loader))
"""


@pytest.mark.parametrize("workers", [1, 4])
def test_forked_workers(store_path, workers):
    """Workers that are forked after the engine was used give what there is without workers, in epochs that follow one
    another. test_torch.test_workers has the other ways to start them."""
    status, out, err = finish(start(FORKED_WORKERS, store_path, workers))
    assert (status, out.split()) == (0, ["20"]), err


DATASETS_OF_A_FORK = """
    import os, sys
    import dsistore
    table = dsistore.open(sys.argv[1]).table("ads")
    def made():
        return table.torch(["user_list"], batch_size=500)
    def epoch(dataset):
        return next(iter(dataset)).epoch
    first = made()
    asked, answered = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        mine = made()
        mine.set_epoch(7)
        os.write(asked[1], b".")
        os.read(answered[0], 1)
        os._exit(0 if epoch(mine) == 7 else 1)
    os.read(asked[0], 1)
    # More than a page of memory has, each with an epoch of its own.
    many = [made() for _ in range(200)]
    assert epoch(many[0]) == 0, "it has the epoch of a dataset of the child"
    for i, dataset in enumerate(many):
        dataset.set_epoch(i + 100)
    assert [epoch(d) for d in (first, *many)] == [0, *range(100, 300)]
    os.write(answered[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the parent changed the child's epoch"
"""


def test_datasets_made_after_a_fork_share_no_numbers(store_path):
    run(DATASETS_OF_A_FORK, store_path)


ROWS_OF_A_FORK = """
    import os, signal, sys, threading
    import dsistore
    source = dsistore.open(sys.argv[1]).table("ads").grain(["user_list"])
    take, taking, goes_on = source.take, threading.Barrier(3), threading.Event()
    def held(rows):
        taking.wait()
        goes_on.wait()
        return take(rows)
    source[10]
    source.take = held
    # One thread takes a row, and one those that are near the row before.
    threads = [threading.Thread(target=lambda i=i: source[i]) for i in (11, 900)]
    for thread in threads:
        thread.start()
    taking.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        source.take = take
        os._exit(0 if [str(source[i]) for i in (900, 12, 500)] == [*map(str, take([900, 12, 500]))] else 1)
    status = os.waitpid(child, 0)[1]
    goes_on.set()
    for thread in threads:
        thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
"""


def test_a_fork_while_threads_take_rows(store_path):
    """A forked process has locks of its own: the threads that hold those of its parent are not in it."""
    run(ROWS_OF_A_FORK, store_path)


NO_COPY = """
    import os, sys
    import dsistore
    table = dsistore.open(sys.argv[1]).table("ads")
    if sys.argv[2] == "none":
        del os.memfd_create
    else:
        def full(*args): raise OSError(28, "No space left on device")
        os.sendfile = full
    child = os.fork()
    if child == 0:
        try:
            table.features()
        except dsistore.ForkError as e:
            print(e)
        sys.exit(0)
    os.waitpid(child, 0)
    assert len(table.features()) == 13
"""


@pytest.mark.parametrize("reason", ["none", "full"])
def test_a_fork_where_no_engine_can_be_copied(store_path, reason):
    out = run(NO_COPY, store_path, reason)
    assert "num_workers=0" in out and "forkserver" in out and ("No space left" in out) == (reason == "full")


ANOTHER_GO_LIBRARY = """
    import sys, threading
    import pyarrow as pa
    import pyarrow.flight as flight
    import adbc_driver_flightsql.dbapi

    answer = pa.table({"n": list(range(1000))})

    class Server(flight.FlightServerBase):
        def get_flight_info(self, context, descriptor):
            if b"StatementQuery" not in descriptor.command:
                raise NotImplementedError(descriptor.command)
            return flight.FlightInfo(answer.schema, descriptor, [flight.FlightEndpoint(b"ticket", [])], 1000, -1)

        def do_get(self, context, ticket):
            return flight.RecordBatchStream(answer)

    server = Server("grpc://127.0.0.1:0")
    uri = f"grpc://127.0.0.1:{server.port}"

    def driver():
        with adbc_driver_flightsql.dbapi.connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute("select n from t")
            assert cursor.fetch_arrow_table().equals(answer)
        try:
            with adbc_driver_flightsql.dbapi.connect("grpc://127.0.0.1:1") as connection, connection.cursor() as cursor:
                cursor.execute("select 1")
            raise SystemError("no error")
        except adbc_driver_flightsql.dbapi.Error:
            pass

    def ours():
        import dsistore
        table = dsistore.open(sys.argv[1]).table("ads")
        assert table.scan(["click"], batch_size=100).to_arrow().num_rows == 1000
        assert sum(b.rows for b in table.torch(["user_list"], batch_size=100)) == 1000
        try:
            table.features("user_lits")
            raise SystemError("no error")
        except dsistore.NotFoundError:
            pass

    first, second = (driver, ours) if sys.argv[2] == "driver" else (ours, driver)
    first(); second(); first()
    threads = [threading.Thread(target=f) for f in (driver, ours) * 3]
    for t in threads: t.start()
    for t in threads: t.join()
    server.shutdown()
    print("done")
"""


@pytest.mark.parametrize("first", ["driver", "dsistore"])
def test_another_go_library(store_path, first):
    pytest.importorskip("adbc_driver_flightsql")
    status, out, err = finish(start(ANOTHER_GO_LIBRARY, store_path, first))  # the driver warns of its own affairs
    assert (status, out) == (0, "done\n") and "goroutine" not in err, err
