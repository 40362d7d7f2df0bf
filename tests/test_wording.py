"""Messages are in the words of the interface that was used: options at a command line, else parameters."""

from __future__ import annotations

import ast
import copy
import io
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.cli import main
from uncanny.cli import uncanny as command_line
from uncanny.cli.common.terminal import as_shown, note_command, running
from uncanny.errors import ItemsError, NotAlikeError, ParamsError, Problem, UsageError
from uncanny.eval.audit import run as audit_run
from uncanny.service.jobs.child import FORECAST
from uncanny.service.jobs.run import order
from uncanny.wording import Interface, Words, cost, duration, either, environment, marked, option, rendered

SOURCE = Path(uncanny.__file__).parent
# The mechanism itself, the options of another program, commands that are put together to be started, and a
# card that shows them in blocks of shell.
MENTIONS = (
    *("wording.py", "models/vllm/server.py", "models/vllm/fleet.py", "models/vllm/in_process.py"),
    *("models/presets.py", "images/discover.py"),
    *("service/jobs/kinds.py", "service/jobs/params.py", "service/web/new_page.py", "service/web/views.py"),
    *("service/jobs/references.py", "eval/mcq/data/card.py", "parameters.py"),
    *("learn/common/card.py", "learn/reasoning/card.py"),
)
# What only programs can give.
OF_PYTHON_ALONE = {"agents", "deadline_s", "stop"}


def commands(*words: str) -> Iterator[click.Command]:
    command: click.Command = command_line
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(click.Context(command)):
        yield from commands(*words, name)


@pytest.mark.parametrize(
    ("text", "python", "terminal", "service"),
    [
        (option("max_cost_usd"), "`max_cost_usd`", "--max-cost-usd", "`max_cost_usd`"),
        (option("limit", 5), "`limit=5`", "--limit 5", "`limit: 5`"),
        (option("device", "cpu"), "`device='cpu'`", "--device cpu", '`device: "cpu"`'),
        (option("allow_mixed", True), "`allow_mixed=True`", "--allow-mixed", "`allow_mixed: true`"),
        (option("out", Path("é")), "`out='é'`", "--out é", '`out: "é"`'),
        (either("f()", terminal="f"), "f()", "f", "f"),
        (either("f()", terminal="f", service=""), "f()", "f", ""),
        (either(option("a"), service=environment("A")), "`a`", "--a", "A in the environment of the service"),
        ("Give `limit=5`.", *["Give `limit=5`."] * 3),
    ],
)
def test_each_interface_names_a_parameter_in_its_own_way(
    text: str, python: str, terminal: str, service: str
) -> None:
    said: dict[Interface, str] = {"python": python, "terminal": terminal, "service": service}
    for interface, words in said.items():
        assert rendered(f"Is {text}?", interface) == f"Is {words}?"
        assert rendered(Words(text), interface) == words
    assert Words(text) == str(Words(text)) == python


@pytest.mark.parametrize(
    ("words", "name", "value", "flag"),
    [
        (("annotate",), "out", None, "-o"),
        (("annotate",), "out", "runs/a", "-o runs/a"),
        (("annotate",), "roles", None, "--role"),
        (("annotate",), "timeout_s", 5, "--timeout 5"),
        (("annotate",), "cache", False, "--no-cache"),
        (("annotate",), "keep_missing", True, "--keep-missing"),
        (("report",), "run", None, "RUN"),
        (("audit",), "conditions", None, "--fail-if"),
        (("edits", "perturb"), "magnitudes", None, "--magnitude"),
        (("import",), "format", None, "--format"),
        (("annotate",), "not_an_option", None, "--not-an-option"),
    ],
)
def test_the_terminal_calls_a_parameter_as_its_command_does(
    words: tuple[str, ...], name: str, value: object, flag: str
) -> None:
    (command,) = commands(*words)
    with running("terminal"):
        note_command(command)
        assert as_shown(option(name, value)) == flag
    with running("service"):
        note_command(command)
        assert as_shown(option(name)) == f"`{name}`"


def test_every_parameter_that_a_message_names_is_one_of_a_command() -> None:
    known = {parameter.name for command in commands() for parameter in command.params}
    # `rglob` does not follow the links, which lead to the rooms at the top.
    files = [
        file for room in ("", "agents", "eval", "prompts") for file in (SOURCE / room / ".").rglob("*.py")
    ]
    calls = re.compile(r"(?<![\w.])option\(\s*[\"'](\w+)[\"']")
    named = {name for file in files for name in calls.findall(file.read_text())}
    assert len(named) > 50
    assert named - known == OF_PYTHON_ALONE


def an_error() -> UsageError:
    return UsageError(f"{option('repeats')} must be 1", remedy=f"Give {option('repeats', 1)}.")


def test_an_error_is_in_the_words_of_python_until_an_interface_shows_it() -> None:
    error = an_error()
    words = "`repeats` must be 1. Give `repeats=1`."
    assert (str(error), error.lines(), error.args) == (words, (words,), ("`repeats` must be 1",))
    assert (error.message, error.remedy) == ("`repeats` must be 1", "Give `repeats=1`.")
    assert repr(error) == "UsageError('`repeats` must be 1')"
    assert rendered(error.text, "terminal") == "--repeats must be 1. Give --repeats 1."
    assert orjson.loads(orjson.dumps([error.text, error.message])) == [words, "`repeats` must be 1"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_from_another_process_is_shown_as_one_of_this(protocol: int) -> None:
    for error in (an_error(), copy.deepcopy(an_error())):
        there: UsageError = pickle.loads(pickle.dumps(error, protocol))
        assert rendered(there.text, "terminal") == "--repeats must be 1. Give --repeats 1."
        assert str(there) == str(error)


def test_an_error_made_of_another_names_the_same_parameter() -> None:
    error = an_error()
    again = UsageError(f"a: {marked(error.message)}", remedy=error.remedy)
    assert rendered(again.text, "terminal") == "a: --repeats must be 1. Give --repeats 1."


def test_errors_of_several_lines_name_parameters_in_each() -> None:
    remedy = f"Leave out {option('root')}."
    items = ItemsError("items.jsonl", [Problem("a", "id", "is empty")], remedy=remedy)
    assert [rendered(line, "terminal") for line in items.lines()][-1] == "Leave out --root."
    assert str(items).endswith("\nLeave out `root`.")
    unlike = NotAlikeError("Not alike", ["model: a, b"], remedy=remedy)
    assert rendered(unlike.text, "terminal") == "Not alike:\n  model: a, b\nLeave out --root."
    params = ParamsError([("images.0", "is missing"), ("model", f"needs {option('base_url')}")])
    assert rendered(params.text, "terminal") == "--images: is missing; --model: needs --base-url"
    assert rendered(params.text, "service") == "images.0: is missing; model: needs `base_url`"
    assert params.fields == (("images.0", "is missing"), ("model", "needs `base_url`"))


@given(st.text(st.sampled_from('\ufdd0\ufdd1[]{}",:python null\\a1')) | st.text())
def test_characters_like_those_of_marks_are_no_marks(text: str) -> None:
    for interface in ("python", "terminal", "service"):
        assert rendered(f"\ufdd0{text}\ufdd1", interface).count("\ufdd0") == text.count("\ufdd0") + 1
    assert str(UsageError(text)) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_a_mark_that_is_nested_without_end_is_no_mark() -> None:
    text = f"\ufdd0{'[' * 100_000}\ufdd1"
    assert rendered(text, "terminal") == text


def test_a_program_that_also_runs_the_command_line_has_words_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads that raise the same error at the same time, one of them in a command."""
    both, check = threading.Barrier(2, timeout=60), audit_run.annotating_of

    def together(*arguments: Any, **options: Any) -> Any:
        both.wait()
        return check(*arguments, **options)

    monkeypatch.setattr(audit_run, "annotating_of", together)

    def call() -> str:
        with pytest.raises(UsageError) as caught:
            uncanny.audit({"drawn": "scenes:drawn"})
        return str(caught.value)

    def run() -> str:
        with redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit):
            main(["audit", "drawn=scenes:drawn", "-o", "runs/a"])
        return err.getvalue()

    with ThreadPoolExecutor(2) as pool:
        python, terminal = (each.result() for each in (pool.submit(call), pool.submit(run)))
    assert python.endswith("Pass `model` to annotate them.")
    assert terminal.endswith("Pass --model to annotate them.\n")


@pytest.mark.slow
def test_a_command_of_a_service_advises_nothing_that_its_pages_have_not(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_URL"))}
    for model, advice in (
        ("openai-compatible/x", "Set OPENAI_COMPATIBLE_BASE_URL in the environment of the service."),
        ("anthropic/x", "Set ANTHROPIC_API_KEY in the environment of the service."),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "uncanny.service.jobs.child", FORECAST],
            input=order(["detect"], {"images": ["scenes"], "out": str(tmp_path / "run"), "model": model}),
            env=clean,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 2
        assert advice in done.stderr.decode()
        assert b"--base-url" not in done.stderr


def test_the_same_mistake_is_answered_in_the_words_of_its_interface() -> None:
    scenes = {"drawn": "scenes:drawn"}
    with pytest.raises(UsageError, match=r"no model is named\. Pass `model`"):
        uncanny.audit(scenes)
    done = uncanny_here("audit", "drawn=scenes:drawn")
    assert "Pass --model" in done.err
    with pytest.raises(UsageError, match=r"`original` and `edited` must be given together"):
        uncanny.realism.load(original="a")


def test_no_message_is_in_the_words_of_the_command_line_alone() -> None:
    """Options stand in `option(…)`; documentation of modules and functions may name them."""
    rooms = [room for room in SOURCE.iterdir() if room.is_dir() and room.name != "cli"]
    for file in [*SOURCE.glob("*.py"), *(file for room in rooms for file in (room / ".").rglob("*.py"))]:
        if str(file.relative_to(SOURCE)) in MENTIONS:
            continue
        tree = ast.parse(file.read_text())
        documentation = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        } | {
            # How the command line shows a parameter stands beside the parameter.
            id(shown.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Shown"
            for shown in node.keywords
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                option_named = re.search(r"(?<![\w-])(-o|--[a-z][a-z-]+)\b", node.value)
                assert option_named is None or id(node) in documentation, f"{file}:{node.lineno}"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59.96, "1 min 0 s"), (754.2, "12 min 34 s"), (7260, "2 h 1 min")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("dollars", "words"),
    [(0.0, "$0"), (0.00042, "$0.00042"), (0.0009996, "$0.00100"), (0.12, "$0.1200"), (1234.5, "$1,234.50")],
)
def test_small_costs_keep_their_digits(dollars: float, words: str) -> None:
    assert cost(dollars) == words
