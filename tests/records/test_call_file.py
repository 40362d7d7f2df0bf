"""Calls in blocks: what has no record is dropped when the file is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from uncanny.records import record_file as call_file
from uncanny.records.record_file import CallFile


def block(image: str, calls: int, size: int = 0) -> bytes:
    lines = (
        {"image": image, "call": n, "nested": {"image": "other"}, "answer": "x" * size} for n in range(calls)
    )
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def among(*images: str) -> Callable[[str], bool]:
    return set(images).__contains__


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def reopened(path: Path, content: bytes, *recorded: str) -> bytes:
    path.write_bytes(content)
    CallFile(path, among(*recorded)).close()
    return path.read_bytes()


def test_a_new_file_is_made_and_appended_to(path: Path) -> None:
    calls = CallFile(path, among())
    calls.append(block("a", 2))
    calls.append(block("b", 1))
    calls.close()
    assert path.read_bytes() == block("a", 2) + block("b", 1)


def test_calls_of_recorded_images_stay(path: Path) -> None:
    whole = block("b", 3) + block("a", 2)
    assert reopened(path, whole, "a", "b") == whole


def test_the_block_of_an_image_without_a_record_goes(path: Path) -> None:
    assert reopened(path, block("a", 2) + block("b", 3), "a") == block("a", 2)
    assert reopened(path, block("b", 3), "a") == b""


def test_only_the_end_is_cut(path: Path) -> None:
    # An image whose file is gone keeps its calls: what was asked was asked.
    whole = block("gone", 2) + block("a", 2)
    assert reopened(path, whole + block("b", 1), "a") == whole


def test_a_last_line_that_only_lacks_its_end_stands(path: Path) -> None:
    whole = block("b", 1) + block("a", 2)
    assert reopened(path, whole[:-1], "a", "b") == whole
    assert reopened(path, block("a", 2) + block("b", 1)[:-1], "a") == block("a", 2)


def test_a_file_that_was_deleted_meanwhile_is_put_back_whole(path: Path) -> None:
    path.write_bytes(block("a", 2))
    calls = CallFile(path, among("a"))
    path.unlink()
    calls.append(block("b", 2))
    calls.close()
    assert path.read_bytes() == block("a", 2) + block("b", 2)


@pytest.mark.parametrize("torn", [b"{", b'{"image":"a","call"', b'{"image":"a"'])
def test_a_torn_last_line_goes(path: Path, torn: bytes) -> None:
    assert reopened(path, block("a", 2) + torn, "a") == block("a", 2)
    assert reopened(path, block("a", 2) + block("b", 1) + torn, "a") == block("a", 2)
    assert reopened(path, torn, "a") == b""


def test_a_line_that_is_no_call_counts_as_torn(path: Path) -> None:
    assert reopened(path, block("a", 1) + b'[1]\n{"image":7}\nnull\n\n', "a") == block("a", 1)


def test_blocks_larger_than_the_window_are_dropped_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_file, "_BLOCK", 100)
    kept = block("a", 3, size=70)
    for orphan in (block("b", 1), block("b", 40), block("b", 2, size=5_000), block("b", 300, size=30)):
        assert reopened(path, kept + orphan, "a") == kept
        assert reopened(path, kept + orphan + orphan[:-3], "a") == kept
        assert reopened(path, orphan, "a") == b""


def test_a_window_that_begins_anywhere_in_a_line_cuts_at_a_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, orphan = block("a", 2), block("b", 1)
    for window in range(1, len(kept + orphan) + 2):
        monkeypatch.setattr(call_file, "_BLOCK", window)
        assert reopened(path, kept + orphan, "a") == kept


def test_appending_goes_on_after_the_cut(path: Path) -> None:
    path.write_bytes(block("a", 2) + block("b", 2) + b'{"im')
    calls = CallFile(path, among("a"))
    calls.append(block("b", 1))
    calls.close()
    assert path.read_bytes() == block("a", 2) + block("b", 1)


@pytest.mark.parametrize("foreign", [b"hello\nworld", b'{"a": 1}\n', b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"])
def test_what_is_no_call_is_moved_aside_not_dropped(path: Path, foreign: bytes) -> None:
    whole = block("a", 2)
    assert reopened(path, whole + foreign, "a") == whole
    kept = path.with_name("calls.broken.jsonl").read_bytes()
    assert kept == foreign.removesuffix(b"\n") + b"\n"


def test_a_call_that_a_kill_cut_off_is_dropped(path: Path) -> None:
    whole = block("a", 2)
    assert reopened(path, whole + block("b", 1)[:-9], "a") == whole
    assert not path.with_name("calls.broken.jsonl").exists()
