"""Runs under review that are kept open, as a service has them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from uncanny.service.review.run import ReviewRun

MOST_RUNS: Final = 16


class ReviewRuns:
    """`ReviewRun` by folder. Safe from threads; all that ask for a folder share one."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._runs: OrderedDict[Path, ReviewRun] = OrderedDict()
        self._opening: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, folder: Path) -> ReviewRun:
        """With what the run has added since. Raises UsageError, RecordError as `ReviewRun.open`."""
        with self._lock:
            opening = self._opening.setdefault(folder, threading.Lock())
        # Of many who want a large run at once one reads it.
        with opening:
            with self._lock:
                run = self._runs.get(folder)
            if run is None:
                run = ReviewRun.open(folder)
            else:
                run.refresh()
            with self._lock:
                self._runs[folder] = run
                self._runs.move_to_end(folder)
                while len(self._runs) > self._most:
                    gone, _ = self._runs.popitem(last=False)
                    self._opening.pop(gone, None)
        return run

    def forget(self, folder: Path) -> None:
        """Of a folder that is deleted."""
        with self._lock:
            self._runs.pop(folder, None)
            self._opening.pop(folder, None)
