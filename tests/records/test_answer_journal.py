"""The journal of answers on their way: whole entries survive, and only those of dead processes move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from uncanny.records.answer_journal import AnswerJournal, take_over

Entries = list[tuple[str, bytes]]


def abandon(journal: AnswerJournal) -> None:
    """What a kill does: the lock goes, the files stay."""
    journal._lock.release()


def taken(folder: Path) -> Entries:
    found: Entries = []
    take_over(folder, found.extend)
    return found


def pending(folder: Path) -> list[Path]:
    return [path for path in folder.glob("pending-*") if path.suffix != ".lock"]


def test_what_was_left_is_taken_over_once_in_the_order_it_came(tmp_path: Path) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"1")
    journal.turn()
    journal.append("ä\n", b"\x00\xff")
    journal.turn()  # the first file still holds what nobody has committed
    journal.append("a", b"")
    abandon(journal)
    assert taken(tmp_path) == [("a", b"1"), ("ä\n", b"\x00\xff"), ("a", b"")]
    assert taken(tmp_path) == []
    assert not list(tmp_path.glob("pending-*"))


def test_what_was_committed_is_forgotten_and_what_came_since_is_not(tmp_path: Path) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"1")
    journal.turn()
    journal.append("b", b"2")
    journal.forget()
    journal.turn()
    journal.append("c", b"3")
    abandon(journal)
    assert taken(tmp_path) == [("b", b"2"), ("c", b"3")]


def test_entries_of_a_process_that_runs_stay_its_own(tmp_path: Path) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"1")
    assert taken(tmp_path) == []
    journal.turn()
    journal.forget()
    journal.close()
    assert not list(tmp_path.glob("pending-*"))


def test_closed_with_something_left_it_is_taken_over(tmp_path: Path) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"1")
    journal.close()
    assert taken(tmp_path) == [("a", b"1")]


def test_what_could_not_be_kept_stays(tmp_path: Path) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"1")
    abandon(journal)

    def refuse(_: Entries) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        take_over(tmp_path, refuse)
    assert taken(tmp_path) == [("a", b"1")]


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda data: data[:-1], id="value cut off"),
        pytest.param(lambda data: data[: len(data) // 2 + 3], id="header cut off"),
        pytest.param(lambda data: data[:-1] + b"?", id="another byte"),
        pytest.param(lambda data: data[: len(data) // 2] + b"\xff" * 40, id="nonsense"),
    ],
)
def test_an_entry_that_is_not_whole_is_left_out_with_all_after_it(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    journal = AnswerJournal(tmp_path)
    journal.append("a", b"12345")
    journal.append("b", b"12345")
    abandon(journal)
    (path,) = (path for path in pending(tmp_path) if path.stat().st_size)
    path.write_bytes(harm(path.read_bytes()))
    assert taken(tmp_path) == [("a", b"12345")]
