"""The command line as such: help, version, unknown commands, and errors as one line."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import click
import pytest

import uncanny as package
from tests.runs.e2e import check_no_traceback, uncanny, uncanny_here
from uncanny import cli, errors
from uncanny.schema import StepError
from uncanny.wording import rendered


def kinds(base: type[errors.UncannyError] = errors.UncannyError) -> Iterator[type[errors.UncannyError]]:
    yield base
    for kind in base.__subclasses__():
        if kind.__module__ == "uncanny.errors":
            yield from kinds(kind)


def make(kind: type[errors.UncannyError]) -> errors.UncannyError:
    if issubclass(kind, errors.RecordError):
        return kind("It broke", path=Path("x.jsonl"), line=7)
    if issubclass(kind, errors.ImageError):
        return kind("It broke", kind="damaged")
    if issubclass(kind, errors.TransientError):
        return kind("It broke", kind="http_500")
    if issubclass(kind, errors.ItemsError):
        return kind("It broke", [errors.Problem("7", "id", "is missing", line=3)], remedy="Mend it.")
    if issubclass(kind, errors.ParamsError):
        return kind([("model", "It broke")], remedy="Mend it.")
    if issubclass(kind, errors.NotAlikeError):
        return kind("It broke", ["one has two"], remedy="Mend it.")
    if issubclass(kind, errors.StepFailedError):
        return kind(
            errors.AnswerError("It broke"), StepError(agent="a", step=1, kind="k", message="It broke")
        )
    if "remedy" not in signature(kind).parameters:
        return kind("It broke")
    return kind("It broke", remedy="Mend it.")


def test_python_m_uncanny_is_the_command() -> None:
    done = uncanny("--version")
    assert (done.code, done.out, done.err) == (0, f"uncanny, version {package.__version__}\n", "")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_fits_one_screen(option: str) -> None:
    done = uncanny_here(option)
    assert (done.code, done.told) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert all(name in done.out for name in cli.COMMANDS)
    # Each first step stands on a line of its own.
    assert {"uncanny demo", "export OPENAI_API_KEY=…"} <= {line.strip().split("   ")[0] for line in lines}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_of_normal_width(name: str) -> None:
    done = uncanny_here(name, "--help")
    assert (done.code, done.told) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"Usage: uncanny {name}")
    assert "\b" not in done.out  # it was not on a line of its own, and the paragraph was wrapped
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "arguments",
    [["anotate"], ["annotate"], ["annotate", "x", "--model"], ["demo", "--nonsense"], ["report"]],
    ids=" ".join,
)
def test_wrong_words_are_exit_code_2(arguments: list[str]) -> None:
    done = uncanny_here(*arguments)
    assert (done.code, done.out) == (2, "")
    check_no_traceback(done)
    assert done.told.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["anotate"], ["No such command 'anotate'", "Did you mean annotate or artifacts?"]),
        (["mcq", "rn"], ["No such command 'rn'", "Did you mean run?"]),
        (["zzz"], ["The commands are demo, annotate, detect"]),
        (["annotate", "x", "--modle", "demo"], ["No such option '--modle'", "--model"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_mistyped_word_gets_a_suggestion(arguments: list[str], words: list[str]) -> None:
    done = uncanny_here(*arguments)
    assert done.code == 2
    assert all(word in done.err for word in words), done.err


def test_without_a_command_the_help_is_shown() -> None:
    done = uncanny_here()
    assert done.code in (0, 2)
    check_no_traceback(done)
    assert "annotate" in done.out + done.told


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_no_error_of_ours_is_a_traceback(
    kind: type[errors.UncannyError], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def failing() -> None:
        raise make(kind)

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: failing)
    done = uncanny_here("demo")
    check_no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert done.told.splitlines() == f"Error: {rendered(make(kind).text, 'terminal')}".splitlines()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, click.Abort])
def test_an_interrupt_outside_of_a_run(raised: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def slow() -> None:
        raise raised

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: slow)
    done = uncanny_here("demo")
    assert (done.code, done.told.strip()) == (130, "Interrupted.")


@pytest.mark.slow
def test_demo_finishes_with_a_report(tmp_path: Path) -> None:
    done = uncanny("demo", "-o", tmp_path / "run", env={"OPENAI_API_KEY": None})
    assert (done.code, done.told) == (0, "")
    assert "Report" in done.out
    assert (tmp_path / "run" / "report.html").is_file()
    again = uncanny_here("demo", "-o", tmp_path / "run", "--json")
    assert (again.code, again.json()["state"]) == (0, "finished")


def test_report_of_what_is_no_run(tmp_path: Path) -> None:
    done = uncanny_here("report", tmp_path)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
