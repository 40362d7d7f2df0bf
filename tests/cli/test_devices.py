"""Devices and pipes where a file or folder is meant: refused at once, by every command and every reader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import pytest

import uncanny
from tests.runs.e2e import check_no_traceback, uncanny_here
from uncanny.cli import uncanny as cli
from uncanny.cli.common.places import Place
from uncanny.client.prices import PriceTable
from uncanny.errors import UncannyError, UsageError
from uncanny.eval.edits.people.data import read_form
from uncanny.files import MOST_LINE, open_file, read_file
from uncanny.records.jsonl import LinesByImage, read_records
from uncanny.schema import Annotation
from uncanny.service.people.authoring import ItemsFile

pytestmark = pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs the devices of Linux")
KINDS = ["/dev/zero", "/dev/full", "pipe"]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Whoever waits for a pipe would wait for ever, and whoever reads a device fills the memory."""

    def over(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    kind: str = request.param
    if kind == "pipe":
        os.mkfifo(tmp_path / "pipe.jsonl")
        return tmp_path / "pipe.jsonl"
    if kind == "socket":
        import socket

        path = tmp_path / "s.jsonl"
        here = os.getcwd()  # noqa: PTH109
        os.chdir(tmp_path)  # the name of a socket has to be short
        try:
            with socket.socket(socket.AF_UNIX) as each:
                each.bind("s.jsonl")
        finally:
            os.chdir(here)
        return path
    return Path(kind)


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


PLACES = {
    " ".join(words): [
        [param.opts[0]] if isinstance(param, click.Option) else []
        for param in command.params
        if isinstance(param.type, click.Path | Place)
    ]
    for words, command in commands(cli)
}


@pytest.mark.parametrize("odd", ["/dev/zero", "pipe"], indirect=True)
@pytest.mark.parametrize("command", [command for command, places in PLACES.items() if places])
def test_no_command_opens_them(command: str, odd: Path) -> None:
    """As any argument, or with any option, that names a file or a folder."""
    for place in PLACES[command]:
        with within(10):
            done = uncanny_here(*command.split(), *place, odd)
        check_no_traceback(done)
        assert (done.code, done.out) == (2, ""), done
        assert f"{odd} is a {'device' if odd.is_char_device() else 'named pipe'}, not a file" in done.told


@pytest.mark.parametrize("odd", ["/dev/zero", "pipe"], indirect=True)
@pytest.mark.parametrize("words", [("compare", "a={}"), ("semantic", "--truth", "scenes", "a=b={}")])
def test_nor_by_a_name(words: tuple[str, ...], odd: Path) -> None:
    with within(10):
        done = uncanny_here(*(word.format(odd) for word in words))
    assert done.code == 2
    assert "not a file" in done.told


READERS: dict[str, Callable[[Path, Path], object]] = {
    "mcq.load": lambda odd, _: uncanny.mcq.load(odd),
    "mcq.check": lambda odd, _: uncanny.mcq.check(odd),
    "mcq.score": lambda odd, _: uncanny.mcq.score("scenes", [odd]),
    "mcq.overlay": lambda odd, out: uncanny.mcq.overlay(odd, out=out / "drawn"),
    "mcq.plan": lambda odd, _: uncanny.mcq.plan(scores=odd),
    "realism.load": lambda odd, _: uncanny.realism.load(odd),
    "realism.score": lambda odd, _: uncanny.realism.score(odd),
    "edits.load": lambda odd, _: uncanny.edits.load(odd),
    "edits.measure": lambda odd, _: uncanny.edits.measure(odd),
    "edits.gate": lambda odd, _: uncanny.edits.gate(odd),
    "edits.stress": lambda odd, _: uncanny.edits.stress({"d": odd}, meta=odd),
    "edits.perturb": lambda odd, out: uncanny.edits.perturb(odd, model="demo", out=out / "run"),
    "edits.prompts": lambda odd, out: uncanny.edits.prompts(odd, model="demo", out=out / "run"),
    "edits.people": lambda odd, _: uncanny.edits.score_people("scenes", [odd]),
    "edits.rate": lambda odd, _: uncanny.edits.score_ratings("scenes", [odd]),
    "artifacts.load": lambda odd, _: uncanny.artifacts.load(odd),
    "artifacts.score": lambda odd, _: uncanny.artifacts.score({"d": odd}, truth="scenes"),
    "semantic": lambda odd, _: uncanny.semantic.score(odd, truth="scenes", similarity="chrf"),
    "audit": lambda odd, _: uncanny.audit({"a": odd, "b": odd}),
    "compare": lambda odd, _: uncanny.compare({"a": odd, "b": odd}),
    "report": lambda odd, _: uncanny.report(odd),
    "export": lambda odd, out: uncanny.export(odd, to="csv", out=out / "x"),
    "annotate": lambda odd, out: uncanny.annotate([odd], model="demo", out=out / "run"),
    "annotate_image": lambda odd, _: uncanny.annotate_image(odd, model="demo"),
    "annotate, prompts": lambda odd, out: uncanny.annotate(
        [uncanny_image()], model="demo", out=out / "run", prompts=odd
    ),
    "prices": lambda odd, _: PriceTable.load(odd),
    "form": lambda odd, _: read_form(str(odd)),
    "author": lambda odd, _: ItemsFile(odd, images=uncanny_image().parent),
    "records": lambda odd, _: list(read_records(odd, Annotation)),
    "lines": lambda odd, _: LinesByImage(odd),
    "file": lambda odd, _: read_file(odd),
    "open": lambda odd, _: open_file(odd),
}


def uncanny_image() -> Path:
    from uncanny.demo.scenes import scenes

    return scenes()[0].image_path


@pytest.mark.parametrize("odd", KINDS, indirect=True)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_no_reader_reads_them(reader: Callable[[Path, Path], object], odd: Path, tmp_path: Path) -> None:
    with within(10):
        try:
            result = reader(odd, tmp_path)
        except (UncannyError, OSError):
            return
    # A run over images has a record of each that cannot be read; a check lists what is wrong.
    assert isinstance(result, uncanny.AnnotateRun | tuple)
    if isinstance(result, uncanny.AnnotateRun):
        assert [record.status for record in result.annotations] == ["unreadable"]
    else:
        assert result


@pytest.mark.parametrize("odd", ["/dev/urandom", "socket"], indirect=True)
def test_others_are_none_either(odd: Path) -> None:
    with within(10), pytest.raises((UsageError, OSError)):
        open_file(odd)


def test_the_null_device_is_an_empty_file() -> None:
    assert read_file(Path("/dev/null")) == b""
    assert list(open_file(Path("/dev/null"))) == []


def test_a_line_has_a_limit_and_the_error_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"image":"a"}\n')
        file.truncate(MOST_LINE + 100)  # zeros, on disk nothing
    with pytest.raises(UsageError, match=r"a.jsonl:2: the line has more than 64 MiB"):
        list(open_file(path))
    for reader in (lambda: uncanny.mcq.load(path), lambda: LinesByImage(path)):
        with pytest.raises(UsageError, match=r"a.jsonl:2: the line has more than 64 MiB"):
            reader()


def test_a_line_of_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(MOST_LINE - 1)
        file.seek(0, os.SEEK_END)
        file.write(b"\n{}\n")
    assert [len(line) for line in open_file(path)] == [MOST_LINE, 3]


def shell(command: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command.replace("UNCANNY", f"{sys.executable} -m uncanny")],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_pipes_that_a_shell_opens_are_read_and_endless_ones_are_not(tmp_path: Path) -> None:
    run = tmp_path / "m"
    assert uncanny_here("mcq", "run", "scenes", "-m", "demo", "-o", run, "--limit", "2").code == 0
    answers = run / "answers.jsonl"
    score = "UNCANNY mcq score scenes {} --resamples 0 --no-report --json -"
    named = shell(score.format(answers)).stdout
    for source in (
        shell(score.format("/dev/stdin"), answers.read_bytes()),
        shell(score.format("/dev/stdin") + f" < {answers}"),
        shell(score.format(f"<(cat {answers})")),
    ):
        assert (source.returncode, source.stdout) == (0, named), source.stderr
    for endless in ("/dev/stdin < /dev/zero", "/dev/zero"):
        done = shell(score.format(endless))
        assert done.returncode == 2
        assert b"is a device, not a file" in done.stderr
