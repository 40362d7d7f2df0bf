"""For all tests: how many examples Hypothesis tries, and what would cost each of them time for nothing."""

from __future__ import annotations

import contextlib
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.bundled_runs import BundledRuns

# `.ci/run` and `make test-all` try the full number, by `--hypothesis-profile=full`. Both try the same
# examples every time, so that a change fails for what it does; `explore` tries new ones. No example has a
# deadline: nothing may depend on how busy the machine is.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=300, deadline=None, derandomize=True)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile("quick")

# What cannot have text in it, and what takes long to read.
_NO_TEXT = (".png", ".jpg", ".jpeg", ".webp", ".avif", ".npy", ".npz", ".safetensors")
_MOST_READ = 4_000_000
_MARK = re.compile(rb"(\xef\xb7\x90|\\ufdd0)(\[\"|\{\"|\[\\\"|\{\\\")")

# No test leaves this machine, and each HTTP client would read all the world's certificates, 25 ms a time.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent / "data")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a server, or for the end of a process."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker("hypothesis") for item in session.items):
        _read_sources()
    # What all tests share stays to the end: the collector need not walk through it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """No file that a test leaves behind has a mark of `uncanny.wording`: those are for this process alone."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        assert not list(marked_files(folder)), "a mark was written to a file"


def marked_files(folder: Path) -> Iterator[Path]:
    """Files in `folder` with the beginning of a mark, as it is or as JSON escapes it, but for pictures."""
    for directory, _, names in os.walk(folder):
        for file in (Path(directory, name) for name in names if not name.endswith(_NO_TEXT)):
            if file.is_file() and file.stat().st_size < _MOST_READ:
                with contextlib.suppress(OSError):
                    # With what stands behind it: random bytes of a key or an archive may be the first three.
                    if _MARK.search(file.read_bytes()):
                        yield file


@settings(max_examples=1, database=None)
@given(st.integers())
def _read_sources(_: int) -> None:
    """Hypothesis reads all imported modules for constants when it first draws, a second or more.

    Within a test it would count as that test's, which then fails its health check on a busy machine.
    """


@pytest.fixture(scope="session")
def bundled_run(tmp_path_factory: pytest.TempPathFactory) -> BundledRuns:
    """`bundled_run(kind)` is the demo model's finished run; who writes into its folder takes a `copy`."""
    from tests.bundled_runs import BundledRuns

    return BundledRuns(tmp_path_factory.mktemp("bundled"))


@pytest.fixture(scope="session", autouse=True)
def _disk_is_not_waited_for() -> Iterator[None]:
    """What tests write has to outlive a kill, for which the system's memory is enough, but no power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
