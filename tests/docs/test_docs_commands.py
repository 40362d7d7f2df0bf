"""Command lines on the pages are ones that `uncanny` and `make` take, and output shown is what they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from operator import attrgetter
from pathlib import Path

import click
import orjson
import pytest

import uncanny as package
from tests.runs.e2e import uncanny_here
from uncanny.annotation.parameters import AnnotateParameters
from uncanny.cli import uncanny
from uncanny.cli.common.asking import asked

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
_BLOCK = re.compile(r"^```(?:sh|console|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(make [a-z-]+)`")
_SETS_VARIABLE = re.compile(r"[A-Z_]+=")


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Every command on every page: where it stands, and its words without variables set before it."""
    for page in sorted(PAGES):
        content = page.read_text(encoding="utf-8")
        for block in _BLOCK.findall(content):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True) if "uncanny" in line else []
                while words and _SETS_VARIABLE.match(words[0]):
                    words = words[1:]
                if words and words[0] == "uncanny":
                    yield page.name, words
        for line in _INLINE.findall(content):
            yield page.name, line.split()


COMMANDS = [(page, words) for page, words in command_lines() if words[0] == "uncanny"]


def test_command_lines_are_found() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=lambda value: value if isinstance(value, str) else None
)
def test_every_command_line_is_one(
    page: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *arguments = words[1:]
    if "--config" in arguments:
        monkeypatch.chdir(tmp_path)
        file = Path(arguments[arguments.index("--config") + 1])
        file.write_text('model = "demo"\nrun = "runs/a"\nitems = "scenes"\n', encoding="utf-8")
    parent = click.Context(uncanny, info_name="uncanny", **uncanny.context_settings)
    command = uncanny.get_command(parent, name)
    assert command is not None, f"{page}: {' '.join(words)}"
    context = command.make_context(name, [each for each in arguments if each != "…"], parent=parent)
    if name == "annotate":
        asking = asked(AnnotateParameters, context.params, [context.params["model"]])
        assert AnnotateParameters(**asking).models
        assert context.params["out"] or context.params["dry_run"]


def test_every_make_target_is_one() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = {words[1] for _, words in command_lines() if words[0] == "make"}
    assert asked
    assert asked <= set(targets)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `uncanny demo` prints, and its run folder."""
    folder = tmp_path_factory.mktemp("demo")
    with chdir(folder):
        done = uncanny_here("demo")
    assert done.code == 0, done.err
    return done.out, folder / "runs/demo"


def test_the_readme_shows_what_the_demo_prints(demo: tuple[str, Path]) -> None:
    shown = _BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    block = next(each for each in shown if each.startswith("runs/demo/"))
    printed = demo[0].splitlines()
    lines = [line for line in block.splitlines() if line != "…" and not line.startswith("Time ")]
    assert [line for line in lines if line not in printed] == []


def test_every_file_and_key_of_the_demo_run_is_documented(demo: tuple[str, Path]) -> None:
    content = (ROOT / "docs/runs.md").read_text(encoding="utf-8")
    run = demo[1]
    manifest = orjson.loads((run / "run.json").read_bytes())
    annotation = orjson.loads((run / "annotations.jsonl").read_bytes().splitlines()[0])
    call = orjson.loads((run / "calls.jsonl").read_bytes().splitlines()[0])
    names = {path.name + "/" * path.is_dir() for path in run.iterdir()} - {"images/"}
    for keys in (
        names,
        manifest,
        manifest["totals"],
        manifest["pixels"],
        annotation,
        annotation["pixels"],
        call,
    ):
        assert [key for key in keys if f"`{key}`" not in content] == []


# Of the table of papers: a cell of commands, each perhaps followed by more of its options.
_CELL = re.compile(r"^\|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|[^|]*\|$", re.MULTILINE)


def paper_commands() -> Iterator[tuple[click.Command, list[str]]]:
    """Every command of the table of papers with the options behind it; its functions must be there."""
    parent = click.Context(uncanny, info_name="uncanny", **uncanny.context_settings)
    cells = _CELL.findall((ROOT / "docs/papers.md").read_text(encoding="utf-8"))[2:]
    for cell in cells:
        command: click.Command | None = None
        for words in (shlex.split(span) for span in re.findall(r"`([^`]+)`", cell)):
            if words[0].startswith("uncanny."):
                assert attrgetter(words[0].removeprefix("uncanny."))(package)
                continue
            if not words[0].startswith("--"):
                command = uncanny.get_command(parent, words.pop(0))
                if isinstance(command, click.Group):
                    command = command.commands[words.pop(0)]
            assert command is not None, cell
            yield command, words


def test_every_command_of_the_papers_is_one() -> None:
    found = list(paper_commands())
    assert len(found) > 50
    for command, words in found:
        options = {name: each for each in command.params for name in each.opts}
        for place, word in enumerate(words):
            if word.startswith("--"):
                assert word in options, (command.name, words)
            else:
                kind = options[words[place - 1]].type
                assert not isinstance(kind, click.Choice) or word in kind.choices, (command.name, words)
