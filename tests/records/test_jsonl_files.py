"""Files that are replaced in one step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from uncanny.records.jsonl import write_named


def test_threads_may_write_the_same_file(tmp_path: Path) -> None:
    path, content = tmp_path / "painted" / "a.png", [b"x" * 4096] * 64

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(write_named, path, content) for _ in range(64)]:
            done.result()

    assert path.read_bytes() == b"".join(content)
    assert list(path.parent.iterdir()) == [path]
