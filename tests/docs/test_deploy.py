"""What is deployed starts commands, options, extras and variables that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from uncanny.cli import uncanny
from uncanny.models.presets import ALL

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def _serve_options(words: list[str]) -> dict[str, Any]:
    """The options of a `serve` command line as click reads them; it raises for what it does not know."""
    assert words[0] == "serve"
    command = uncanny.get_command(click.Context(uncanny), "serve")
    assert command is not None
    parser = command.make_parser(click.Context(command))
    options, rest, _ = parser.parse_args(words[1:])
    assert rest == []
    return options


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module")
def unit() -> dict[str, str]:
    lines = (DEPLOY / "uncanny.service").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_compose_starts_the_service_with_options_it_takes(compose: dict[str, Any]) -> None:
    words = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in compose["services"]["uncanny"]["command"]]
    options = _serve_options(words)
    assert options["host"] == "0.0.0.0"
    volumes = [re.sub(r"\$\{[^}]*\}", "x", each) for each in compose["services"]["uncanny"]["volumes"]]
    assert f"data:{options['data']}" in volumes
    assert f"x:{options['roots'][0]}:ro" in volumes


def test_compose_reaches_its_database_and_shows_nothing_to_the_network(compose: dict[str, Any]) -> None:
    services = compose["services"]
    address = services["uncanny"]["environment"]["UNCANNY_DATABASE"]
    user, host, name = re.fullmatch(r"postgresql://(\w+)@(\w+)/(\w+)", address).groups()  # type: ignore[union-attr]
    assert host in services
    assert services[host]["environment"]["POSTGRES_USER"] == user == name
    password = "${DATABASE_PASSWORD:?set it in deploy/.env}"
    assert services[host]["environment"]["POSTGRES_PASSWORD"] == password
    assert services["uncanny"]["environment"]["PGPASSWORD"] == password
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:${UNCANNY_PORT:-8765}:8765"]


def test_every_variable_of_compose_stands_in_the_example_or_has_a_default() -> None:
    example = (DEPLOY / ".env.example").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    used = set(re.findall(r"\$\{(\w+)", text))
    assert known <= used
    # Where vLLM runs is known to compose, and only somebody with another server names it.
    assert used - known == {"VLLM_BASE_URL"}


def test_compose_passes_on_what_every_hosted_service_needs(compose: dict[str, Any]) -> None:
    needed = {
        variable
        for preset in ALL.values()
        if not preset.local
        for variable in (*preset.key_variables, *preset.place_variables)
    }
    passed = compose["services"]["uncanny"]["environment"]
    assert {name: passed.get(name) for name in needed} == {name: f"${{{name}:-}}" for name in needed}


def test_the_unit_starts_the_service_in_its_own_folder(unit: dict[str, str]) -> None:
    _, *words = shlex.split(unit["ExecStart"])
    options = _serve_options(words)
    assert options["data"] == f"/var/lib/{unit['StateDirectory']}"
    assert options["host"] == "127.0.0.1"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    text = (DEPLOY / "uncanny.service").read_text(encoding="utf-8")
    file = tmp_path / "uncanny.service"
    file.write_text(text.replace("/opt/uncanny/bin/uncanny", "/bin/true"), encoding="utf-8")
    checked = subprocess.run([analyze, "verify", str(file)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.vllm"])
def test_the_image_installs_extras_that_exist_and_runs_as_nobody_special(name: str) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    extras = re.search(r"\$\{wheel\}\[([\w,]+)\]", text)
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    assert text.index("USER 10001") < text.index("ENTRYPOINT")
    entry, arguments = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE)
    assert entry == '["uncanny"]'
    words = yaml.safe_load(arguments)
    if name == "Dockerfile":
        _serve_options(words)
    else:
        assert words == ["--help"]


def test_both_start_the_same_vllm(compose: dict[str, Any]) -> None:
    image = compose["services"]["vllm"]["image"]
    assert f"\nFROM {image}\n" in (DEPLOY / "Dockerfile.vllm").read_text(encoding="utf-8")
