"""The answer cache: what is put stays, survives a kill, and is never unpickled."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from uncanny.errors import StorageError, UsageError
from uncanny.records.answer_cache import AnswerCache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "answers"


@pytest.fixture
def cache(folder: Path) -> Iterator[AnswerCache]:
    opened = AnswerCache(folder)
    yield opened
    opened.close()


async def test_what_is_put_is_there_after_reopening(folder: Path) -> None:
    values = {"": b"", "k": b"\x00\xff", "ä" * 64: b"x" * 3_000_000, "newline\n": b"\n"}
    first = AnswerCache(folder)
    for key, value in values.items():
        await first.put(key, value)
        assert first.get(key) == value
    first.close()
    second = AnswerCache(folder)
    assert {key: second.get(key) for key in values} == values
    assert second.get("missing") is None
    assert len(second) == len(values)
    second.close()


async def test_the_last_value_of_a_key_stands(cache: AnswerCache) -> None:
    await cache.put("k", b"old")
    await cache.put("k", b"new")
    assert cache.get("k") == b"new"
    assert len(cache) == 1


async def test_many_at_once_are_all_there(cache: AnswerCache) -> None:
    await asyncio.gather(*(cache.put(str(n), b"%d" % n) for n in range(2_000)))
    assert len(cache) == 2_000
    assert cache.get("1234") == b"1234"


async def test_two_caches_on_one_folder_see_each_other(cache: AnswerCache, folder: Path) -> None:
    other = AnswerCache(folder)
    await asyncio.gather(*(each.put(f"{n}", b"v") for n in range(50) for each in (cache, other)))
    await other.put("only there", b"v")
    other.close()
    assert cache.get("only there") == b"v"
    assert len(cache) == 51


async def test_what_is_put_is_there_at_once_and_soon_for_others(cache: AnswerCache, folder: Path) -> None:
    other = AnswerCache(folder)
    await cache.put("k", b"v")
    assert cache.get("k") == b"v"
    while other.get("k") is None:  # noqa: ASYNC110  another process has nothing to wait on either
        await asyncio.sleep(0.001)
    other.close()


def test_what_was_put_survives_a_kill(folder: Path) -> None:
    script = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from uncanny.records.answer_cache import AnswerCache\n"
        "async def main():\n"
        "    cache = AnswerCache(Path(sys.argv[1]))\n"
        "    await asyncio.gather(*(cache.put(str(n), b'v') for n in range(100)))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    cache = AnswerCache(folder)
    assert len(cache) == 100
    cache.close()


@pytest.mark.parametrize("value", ["text", 1, None, ["list"]])
async def test_only_bytes_are_taken(cache: AnswerCache, value: object) -> None:
    with pytest.raises(TypeError, match="cache values are bytes"):
        await cache.put("k", value)  # type: ignore[arg-type]
    assert cache.get("k") is None
    await cache.put("k", b"the writer goes on")


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from uncanny.errors import StorageError
from uncanny.records.answer_cache import AnswerCache

async def main():
    cache = AnswerCache(Path(sys.argv[1]))
    await cache.put("before", b"v")
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    puts = (cache.put(str(n), b"x" * 100_000) for n in range(40))
    ended = await asyncio.gather(*puts, return_exceptions=True)
    assert StorageError in map(type, ended), ended
    kept = [n for n, end in enumerate(ended) if end is None]
    assert all(cache.get(str(n)) for n in kept)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await cache.put("after", b"v")
    assert (cache.get("before"), cache.get("after")) == (b"v", b"v")
    cache.close()
    print(next(end for end in ended if end is not None))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_fails_the_calls_that_wait_and_not_the_writer(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"cannot be written: .*Free some disk space", done.stdout)


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(UsageError, match=r"The answer cache in .*file cannot be opened.*`cache_dir`"):
        AnswerCache(blocked)


async def test_closing_twice_does_no_harm(folder: Path) -> None:
    cache = AnswerCache(folder)
    await cache.put("k", b"v")
    cache.close()
    cache.close()


async def test_closing_waits_for_what_is_on_its_way(folder: Path) -> None:
    cache = AnswerCache(folder)
    tasks = [asyncio.create_task(cache.put(str(n), b"v")) for n in range(200)]
    await asyncio.sleep(0)
    await asyncio.to_thread(cache.close)
    await asyncio.gather(*tasks)
    again = AnswerCache(folder)
    assert len(again) == 200
    again.close()


async def test_what_was_cancelled_on_its_way_is_kept(folder: Path) -> None:
    cache = AnswerCache(folder)
    task = asyncio.create_task(cache.put("k", b"v"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.to_thread(cache.close)
    assert task.cancelled()
    again = AnswerCache(folder)
    assert again.get("k") == b"v"
    again.close()


async def test_a_closed_cache_takes_nothing(folder: Path) -> None:
    cache = AnswerCache(folder)
    cache.close()
    with pytest.raises(RuntimeError, match="closed"):
        await cache.put("k", b"v")


async def test_a_database_that_takes_nothing_fails_each_call_and_not_the_writer(
    cache: AnswerCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(folder / "answers.db") as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    message = r"The answer cache cannot be written: .*full.*Free some disk space"
    for key in "ab":
        with pytest.raises(StorageError, match=message):
            await cache.put(key, b"v")
        with pytest.raises(StorageError, match=message):
            cache.check()
    monkeypatch.setattr("uncanny.records.answer_cache.AGAIN_S", 0.0)
    cache.check()
    database.execute("DROP TRIGGER full")
    database.close()
    await cache.put("c", b"v")
    assert (cache.get("a"), cache.get("c"), len(cache)) == (None, b"v", 1)


def test_only_open_caches_leave_a_lock(folder: Path) -> None:
    first, second = AnswerCache(folder), AnswerCache(folder)
    assert len(list(folder.glob("in-use-*"))) == 2
    closing = threading.Thread(target=first.close)  # also from another thread than opened it
    closing.start()
    closing.join()
    second.close()
    assert not list(folder.glob("in-use-*"))
