"""What a run that was killed had spent, from the calls it left on disk."""

from __future__ import annotations

from pathlib import Path

import orjson

from uncanny.providers.call_log import CallRecord
from uncanny.runs.progress import Served, Spending


class Recount:
    """Counts calls a killed sitting made but did not get into `run.json`.

    Those of finished images stand in `calls.jsonl`. Those of unfinished ones come back from the run's own
    answer cache as replays; they were paid for by this run, so each is counted once, by the moment it
    started. With a cache shared between runs a replay may be another run's expense and counts as none.
    `served` is what `run.json` knew of who answered.
    """

    def __init__(self, calls: Path, started: float, *, own_cache: bool, served: Served) -> None:
        self.spending = Spending(served=served)
        self._began, self._own_cache = started, own_cache
        self._seen: set[float] = set()
        if calls.exists():
            with calls.open("rb") as file:
                for line in file:
                    self._count_line(line)

    def paid_here(self, call: CallRecord) -> bool:
        """Whether a replayed call is this run's own expense, not counted yet; says so once."""
        return self._first_time(call.started.timestamp())

    def _count_line(self, line: bytes) -> None:
        try:
            call = CallRecord.read(orjson.loads(line))
        except (ValueError, TypeError, KeyError):
            return  # half a line, or not one of ours
        self.spending.served.add(call)
        if call.replayed and not self._first_time(call.started.timestamp()):
            return
        self._seen.add(call.started.timestamp())
        call.replayed = False
        self.spending.add(call)

    def _first_time(self, moment: float) -> bool:
        if not self._own_cache or moment < self._began or moment in self._seen:
            return False
        self._seen.add(moment)
        return True
