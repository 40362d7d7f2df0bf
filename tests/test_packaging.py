"""The four top-level folders are parts of the package, and nothing heavy is imported before it is used."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import uncanny

ROOT = Path(__file__).parents[1]
TOP_LEVEL = ("agents", "graphs", "prompts", "eval")
CLIENTS = "torch vllm ray openai anthropic langgraph langchain_core"


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_a_top_level_folder_is_the_package_of_that_name(name: str) -> None:
    link = ROOT / "src" / "uncanny" / name
    assert link.is_symlink()
    assert not link.readlink().is_absolute()
    assert link.resolve() == ROOT / name
    module = import_module(f"uncanny.{name}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parent == ROOT / name
    assert name not in sys.modules


def test_all_of_them_go_into_the_wheel_once() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = config["tool"]["hatch"]["build"]
    assert set(build["targets"]["wheel"]["only-include"]) == {"src/uncanny", *TOP_LEVEL}
    assert {f"/src/uncanny/{name}" for name in TOP_LEVEL} <= set(build["exclude"])
    assert build["targets"]["wheel"]["sources"] == {
        "src": "",
        **{name: f"uncanny/{name}" for name in TOP_LEVEL},
    }


def test_the_version_is_one() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["project"]["dynamic"] == ["version"]
    assert "version" not in config["project"]
    assert config["tool"]["hatch"]["version"]["path"] == "src/uncanny/__init__.py"
    assert uncanny.__version__ == version("uncanny")
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == uncanny.__version__


@pytest.mark.parametrize(("package", "least"), [("torch", (2, 6)), ("sentence-transformers", (6,))])
def test_what_loads_weights_is_new_enough_to_run_no_code_of_theirs(
    package: str, least: tuple[int, ...]
) -> None:
    """Before torch 2.6 pickles ran code, also with `weights_only` (CVE-2025-32434); before
    sentence-transformers 6 a folder's own classes were loaded without being asked for."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [*config["project"]["optional-dependencies"].values(), *config["dependency-groups"].values()]
    wanted = [re.fullmatch(rf"{package}[>=]=([0-9.]+)", each) for group in groups for each in group]
    bounds = [tuple(map(int, match[1].split("."))) for match in wanted if match]
    assert len(bounds) >= 2
    assert all(bound >= least for bound in bounds)
    assert not [each for group in groups for each in group if each == package]


def test_type_checkers_are_told_that_it_is_typed() -> None:
    assert (ROOT / "src" / "uncanny" / "py.typed").exists()


def imported_with(module: str) -> set[str]:
    """Top-level names of everything a fresh Python has imported after `module`."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})",
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "too_heavy"),
    [
        (
            "uncanny.cli",
            "torch vllm ray openai anthropic langgraph langchain_core pydantic PIL aiohttp httpx",
        ),
        ("uncanny.annotation.run", "torch vllm ray openai anthropic langgraph langchain_core"),
        ("uncanny.agents", "torch vllm ray openai anthropic langgraph langchain_core"),
        ("uncanny.eval.mcq.run", "torch vllm ray openai anthropic langgraph langchain_core scipy"),
        ("uncanny.eval.realism.run", "torch vllm ray openai anthropic langgraph langchain_core scipy"),
        ("uncanny.client.client", "openai anthropic langgraph pydantic_settings PIL"),
        ("uncanny.demo.scenes", "openai anthropic langgraph PIL"),
    ],
)
def test_importing_a_part_does_not_import_what_only_others_need(module: str, too_heavy: str) -> None:
    found = imported_with(module)
    assert module.partition(".")[0] in found
    assert not found & set(too_heavy.split())


# Asks for the help of every command and subcommand in turn, and prints a line for each: what it was called,
# then the modules that were loaded by then.
HELP_OF_ALL = """
import contextlib, io, sys
import click
from uncanny.cli import uncanny

def walk(group, path):
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from walk(command, (*path, name))

for path in ((), *walk(uncanny, ())):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = uncanny.main([*path, "--help"], standalone_mode=False)
    assert text.getvalue().startswith("Usage: "), path
    print(" ".join(path), *sys.modules, sep="\\t")
"""


def test_no_help_loads_what_only_a_run_or_a_score_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP_OF_ALL], check=True, capture_output=True, text=True, timeout=60
    )
    heavy = set(f"{CLIENTS} aiohttp httpx jinja2 matplotlib numpy pandas PIL pyarrow".split())
    heavy |= {"rich", "scipy", "transformers"}
    loaded = {}
    for line in done.stdout.splitlines():
        path, *modules = line.split("\t")
        loaded[path] = heavy & {module.partition(".")[0] for module in modules}
    assert {"", "annotate", "mcq run", "mcq score", "realism run", "realism score"} <= loaded.keys()
    assert {path: modules for path, modules in loaded.items() if modules} == {}


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {uncanny.__version__}\n" in citation


def test_the_source_distribution_has_what_the_wheel_is_built_of_and_nothing_else() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = config["tool"]["hatch"]["build"]["targets"]
    included = set(targets["sdist"]["only-include"])
    files = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml"}
    assert included == {"src", *TOP_LEVEL} | files
    assert all((ROOT / name).exists() for name in included)


@pytest.mark.parametrize("name", ["bug", "feature", "wrong-figure"])
def test_a_form_for_issues_asks_each_thing_once(name: str) -> None:
    import yaml

    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in asked} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(part["attributes"]["label"] for part in asked)
    ids = [part["id"] for part in asked]
    assert len(ids) == len(set(ids))
    assert any(part.get("validations", {}).get("required") for part in asked)
