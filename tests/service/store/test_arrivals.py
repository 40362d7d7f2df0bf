"""That a worker which waits is woken by a job, whichever process it comes from."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from uncanny.service.service import Service
from uncanny.service.store.jobs import Arrivals, Listener

LONG_S = 60.0


def test_what_comes_between_looking_and_waiting_is_not_missed() -> None:
    arrivals = Arrivals()
    seen = arrivals.seen()
    arrivals.set()
    assert arrivals.wait(seen, LONG_S)
    assert not arrivals.wait(arrivals.seen(), 0.0)


def test_all_that_wait_are_woken() -> None:
    arrivals, woken = Arrivals(), list[bool]()
    seen = arrivals.seen()
    threads = [threading.Thread(target=lambda: woken.append(arrivals.wait(seen, LONG_S))) for _ in range(5)]
    for thread in threads:
        thread.start()
    arrivals.set()
    for thread in threads:
        thread.join()
    assert woken == [True] * 5


@pytest.mark.slow
def test_a_job_of_another_process_wakes_and_so_does_one_after_the_connection_broke(
    tmp_path: Path, postgres_address: str
) -> None:
    with (
        Service.open(tmp_path, database=postgres_address) as here,
        Service.open(tmp_path, database=postgres_address) as there,
    ):
        listener = Listener(here.database, here.jobs.queued)
        seen = here.jobs.queued.seen()
        listener.start()
        # It wakes once when it listens: from then on nothing is missed.
        assert here.jobs.queued.wait(seen, LONG_S)
        for cut in (False, True, False):
            seen = here.jobs.queued.seen()
            if cut:
                with psycopg.connect(postgres_address, autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
                    )
                assert here.jobs.queued.wait(seen, LONG_S)
                seen = here.jobs.queued.seen()
            there.jobs.submit("annotate", {}, by="ann")
            assert here.jobs.queued.wait(seen, LONG_S)
        listener.stop()
