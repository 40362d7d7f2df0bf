from __future__ import annotations

from uncanny.models.vllm.watcher import cause_lines

ENGINE = """\
(APIServer pid=7) WARNING 01-31 12:00:00 [system_utils.py:255] Errors like `OSError: too many files`
(EngineCore pid=8) INFO 01-31 12:00:01 [core.py:1] Initializing
(EngineCore pid=8) ERROR 01-31 12:00:02 [core.py:12] Traceback (most recent call last):
(EngineCore pid=8) ERROR 01-31 12:00:02 [core.py:12]   File "/v/core.py", line 12, in run
(EngineCore pid=8) ERROR 01-31 12:00:02 [core.py:12]     raise ValueError(
(EngineCore pid=8) ERROR 01-31 12:00:02 [core.py:12]     ^^^^^^^^^^^^^^^^^
(EngineCore pid=8) ERROR 01-31 12:00:02 [core.py:12] ValueError: No available memory for the cache blocks.
(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File "/v/serve.py", line 3, in main
(APIServer pid=7)     launch()
(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above.
/lib/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked objects
  warnings.warn('resource_tracker: There appear to be %d '
"""

ARGUMENTS = """\
usage: vllm [-h] [-v]
vllm: error: unrecognized arguments: --no-such-flag
"""


def test_the_root_cause_comes_before_what_follows_from_it() -> None:
    root, end = cause_lines(ENGINE.splitlines())
    assert root.endswith("ValueError: No available memory for the cache blocks.")
    assert "Engine core initialization failed" in end


def test_without_an_exception_the_end_of_the_log_is_the_cause() -> None:
    assert cause_lines(ARGUMENTS.splitlines())[-1] == "vllm: error: unrecognized arguments: --no-such-flag"


def test_no_frame_of_an_unfinished_traceback_is_a_cause() -> None:
    lines = ENGINE.splitlines()
    assert cause_lines(lines[1:6]) == []
    assert cause_lines(lines[7:10]) == []


def test_an_empty_log_has_no_cause() -> None:
    assert cause_lines([]) == []


def test_long_lines_are_cut() -> None:
    assert len(cause_lines(["ValueError: " + "x" * 10_000])[0]) == 400
