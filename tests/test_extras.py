"""Hints to install an extra: worded in one place, true to pyproject.toml, never from the package index."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.extras import Extra, install_hint, optional

ROOT = Path(__file__).parents[1]
PRODUCT = ("src", "agents", "graphs", "prompts", "eval")
PAGES = ("docs", "examples", "deploy", "benchmarks", "README.md", "CONTRIBUTING.md", "SECURITY.md")
SUFFIXES = {
    ".py",
    ".md",
    ".ipynb",
    ".html",
    ".j2",
    ".js",
    ".txt",
    ".toml",
    ".yml",
    ".yaml",
    ".sh",
    ".vllm",
    "",
}
# The index has another package of this name; `uncanny[…]` would be asked for there, too.
FROM_THE_INDEX = re.compile(
    r"""(?:pipx?3?|uv\ pip|uv\ tool|uv)\ (?:install|add)(?:\ -\S+)*\ ['"]?uncanny\b | \buncanny\[\w""",
    re.VERBOSE,
)
EXTRAS_NAMED = re.compile(r"install .*[.})]\"?\[([a-z]+(?:,[a-z]+)*)\]['\"]")


def texts(*places: str) -> dict[Path, str]:
    paths = (path for place in places for path in [ROOT / place, *(ROOT / place).rglob("*")])
    return {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for path in paths
        if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts
    }


def declared() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def test_the_extras_are_those_that_are_declared() -> None:
    assert set(get_args(Extra)) == declared()


def test_nothing_says_to_install_from_the_index() -> None:
    files = texts(*PRODUCT, *PAGES)
    assert len(files) > 500
    assert FROM_THE_INDEX.search("pip install 'uncanny[service]'")
    assert FROM_THE_INDEX.search("uv pip install -U uncanny")
    assert FROM_THE_INDEX.search("or `uncanny[formats]` for both")
    assert [str(path) for path, text in files.items() if FROM_THE_INDEX.search(text)] == []


def test_hints_are_worded_in_one_place() -> None:
    said = [path for path, text in texts(*PRODUCT).items() if "pip install" in text]
    assert said == [Path("src/uncanny/extras.py")]


def test_every_extra_that_is_named_exists() -> None:
    named = {
        (str(path), extra)
        for path, text in texts(*PRODUCT, *PAGES, "Makefile", ".ci").items()
        for extras in EXTRAS_NAMED.findall(text)
        for extra in extras.split(",")
    }
    assert {extra for _, extra in named} >= {"service", "review", "frames", "semantic"}
    assert [each for each in named if each[1] not in declared()] == []


def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError) as raised:
        optional("pandas", "frames", "A data frame")
    assert str(raised.value) == (
        "A data frame needs pandas, which is not installed. "
        "Run `pip install -e '.[frames]'` in your clone of uncanny."
    )
    assert install_hint("vllm", instead="start a server") == (
        "Run `pip install -e '.[vllm]'` in your clone of uncanny, or start a server."
    )


def test_a_package_that_breaks_when_it_is_imported_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_package.py").write_text(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ImportError('no use') from error\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="which cannot be imported: division by zero"):
        optional("broken_package", "learn", "Training")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (("review", "."), "fastapi", "review"),
        (("mcq", "people", "scenes", "-o", "run"), "fastapi", "review"),
        (("mcq", "author", "items.jsonl"), "fastapi", "review"),
        (("edits", "people", "scenes", "-o", "run"), "fastapi", "review"),
        (("serve",), "sqlalchemy", "service"),
        (("token", "list"), "sqlalchemy", "service"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_command_without_its_extra_says_what_to_install(
    command: tuple[str, ...], package: str, extra: Extra, tmp_path: Path
) -> None:
    """A package that cannot be imported is as if it were not there."""
    code = f"import sys; sys.modules[{package!r}] = None; from uncanny.cli import main; main()"
    refused = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    words = command[: 2 if command[0] in ("mcq", "edits", "token") else 1]
    assert f"`uncanny {' '.join(words)}` needs {package}, which is not installed. " in refused.stderr
    assert install_hint(extra) in refused.stderr
    assert f"Needs the extra `{extra}`." in " ".join(uncanny_here(*words, "--help").out.split())
