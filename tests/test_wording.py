"""Messages are in the words of the interface that was used: options at a command line, else parameters."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.service.jobs.child import FORECAST
from uncanny.service.jobs.run import order
from uncanny.wording import cost, duration, either, on_command_line, option

SOURCE = Path(uncanny.__file__).parent
# The mechanism itself, the options of another program, commands that are put together to be started, and a
# card that shows them in blocks of shell.
MENTIONS = (
    *("wording.py", "models/vllm/server.py", "models/presets.py", "images/discover.py"),
    *("service/jobs/kinds.py", "service/jobs/params.py", "service/web/new_page.py", "service/web/command.py"),
    *("eval/mcq/data/card.py", "parameters.py"),
)


def test_an_option_is_called_as_it_is_written() -> None:
    assert (option("max_cost_usd"), option("limit", 5)) == ("`max_cost_usd`", "`limit=5`")
    assert option("allow_mixed", True) == "`allow_mixed=True`"
    with on_command_line():
        assert (option("max_cost_usd"), option("limit", 1)) == ("--max-cost-usd", "--limit 1")
        assert (option("out"), option("allow_mixed", True)) == ("-o", "--allow-mixed")
        assert either(python="f()", command_line="f") == "f"
    assert either(python="f()", command_line="f") == "f()"


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
    with pytest.raises(UsageError, match=r"no model is named\. .* with `model`\."):
        uncanny.audit(scenes)
    done = uncanny_here("audit", "drawn=scenes:drawn")
    assert "with --model." in done.err
    with pytest.raises(UsageError, match=r"`original` and `edited` go together"):
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
