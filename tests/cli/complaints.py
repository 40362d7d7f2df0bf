"""How commands refuse."""

from __future__ import annotations

from tests.runs.e2e import Done, check_no_traceback

# An item file with three problems on two lines.
BAD_ITEMS = '{"id":"a"}\nnot json\n'


def one_line(done: Done, *words: str) -> None:
    """The command refused, in one line, with these words in it."""
    check_no_traceback(done)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done
    assert all(word in done.err for word in words), done.err


def problems(done: Done, *words: str) -> None:
    """The command refused, with a list of what is wrong."""
    check_no_traceback(done)
    assert (done.code, done.out) == (2, ""), done
    assert all(word in done.err for word in words), done.err
