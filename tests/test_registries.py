"""What can be chosen is documented, and what is there can be chosen."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import uncanny.cli
from uncanny.agents.steps import ROLES
from uncanny.cli import COMMANDS
from uncanny.cli.annotate import command as annotate
from uncanny.models.registry import PROVIDERS

ROOT = Path(__file__).parents[1]


def command_named(name: str) -> click.Command:
    command = uncanny.cli.uncanny.get_command(click.Context(uncanny.cli.uncanny), name)
    assert command is not None
    return command


def words(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if name != "noop"])
def test_every_provider_is_documented(provider: str) -> None:
    assert re.search(rf"`{re.escape(provider)}[`/]", words("docs/providers.md"))


def test_the_help_names_the_command_that_lists_every_provider() -> None:
    assert "`uncanny providers`" in (uncanny.cli.uncanny.help or "")
    listed = CliRunner().invoke(uncanny.cli.uncanny, ["providers"]).output
    assert [each for each in PROVIDERS if not re.search(rf"(?m)(^| ){each}(/|,|\.$)", listed)] == ["noop"]


@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_named_in_the_help(role: str) -> None:
    assert re.search(rf"\b{role}\b", annotate.help or "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_found_by_its_own_name(name: str) -> None:
    _, line = COMMANDS[name]
    command = command_named(name)
    assert command.name == name
    assert line.endswith(".")
    assert command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    page = ROOT / "docs" / "commands.md"
    text = words("docs/commands.md" if page.exists() else "README.md")
    assert f"uncanny {name}" in text


def test_every_command_in_a_module_is_one() -> None:
    folder = Path(uncanny.cli.__file__).parent
    files = [path for path in folder.rglob("[a-z]*.py") if path.parent.name not in ("common", "server")]
    modules = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__") for path in files
    }
    commands = {
        f"{module}:{name}": value
        for module in modules
        for name, value in vars(import_module(f"uncanny.cli.{module}")).items()
        if isinstance(value, click.Command)
    }
    groups = [command for command in commands.values() if isinstance(command, click.Group)]
    inner = {id(command) for group in groups for command in group.commands.values()}
    own = {place for place, command in commands.items() if id(command) not in inner}
    assert own == {place for place, _ in COMMANDS.values()}


def command_group(name: str) -> click.Group:
    group = command_named(name)
    assert isinstance(group, click.Group)
    return group


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    command = command_named(name)
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.opts


def test_help_groups_options_under_headings_of_their_parameters() -> None:
    text = CliRunner().invoke(command_named("annotate"), ["--help"]).output
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings[:3] == ["Options", "Agents", "Sampling"]
    assert len(headings) == len(set(headings))
    sampling = text.partition("\nSampling:\n")[2].partition("\n\n")[0]
    assert re.findall(r"--[\w-]+", sampling) == ["--temperature", "--top-p", "--max-output-tokens"]
    main = text.partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert {"--model", "--run", "--limit", "--max-cost-usd", "--help"} <= set(re.findall(r"--[\w-]+", main))
