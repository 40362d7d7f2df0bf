"""What the pages name is there, and what is there the pages name."""

from __future__ import annotations

import re
import runpy
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from uncanny import __version__
from uncanny.agents.common.context import FailureKind
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import ROLES
from uncanny.cli.common.session import RUN_CODES
from uncanny.client.calls import CallRecord
from uncanny.client.prices import Price, PriceTable
from uncanny.errors import ImageFault
from uncanny.models.base import Outcome
from uncanny.models.presets import ALL
from uncanny.models.registry import PROVIDERS, WITHOUT_NAME
from uncanny.models.vllm import server as vllm_server
from uncanny.records.run_folder import RunFolder
from uncanny.runs.manifest import State
from uncanny.schema import Annotation, Anomaly, Pixels, SentPixels, Status, StepError, Usage
from uncanny.settings import Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CHANGES = (r'changes\.append\(f?"([a-z_-]+)', r'\["(icc:[^"]+)"\]', r'or \("([a-z_]+)",\)')


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named(page: str) -> set[str]:
    """All that stands in backticks on a page, whole and by its words."""
    spans = re.findall(r"`([^`\n]+)`", _FENCED.sub("", text(page)))
    return {part for span in spans for part in (span, *re.split(r"[\s=,]+", span))}


def missing(page: str, names: set[str]) -> set[str]:
    return names - named(page)


def test_commands_page_is_what_the_command_line_says() -> None:
    written = runpy.run_path(str(DOCS / "make_commands.py"))["commands_page"]()
    assert text("docs/commands.md") == written, "run `python docs/make_commands.py`"


def test_presets_on_the_page_are_those_in_the_code() -> None:
    page = text("docs/providers.md")
    written = runpy.run_path(str(DOCS / "make_providers.py"))["providers_page"](page)
    assert page == written, "run `python docs/make_providers.py`"


def test_every_provider_has_its_rows() -> None:
    page = text("docs/providers.md")
    for provider in PROVIDERS:
        model = provider if provider in WITHOUT_NAME else f"{provider}/NAME"
        assert f"| `{model}` |" in page
        assert f"| `{provider}` |" in page
        assert f"**{provider}.**" in page


def test_every_variable_is_named() -> None:
    settings = {f"UNCANNY_{name}".upper() for name in Settings.model_fields}
    servers = {
        name
        for each in ALL.values()
        for name in (each.url_variable, *each.key_variables, *each.place_variables)
    }
    assert not missing("docs/providers.md", settings | servers | {vllm_server.COMMAND_VARIABLE})


def test_defaults_of_settings_are_those_in_the_code() -> None:
    page = text("docs/providers.md")
    for name, field in Settings.model_fields.items():
        if field.default is not None:
            row = re.search(rf"^\| `UNCANNY_{name.upper()}` \|.*\| (\S+) \|$", page, re.MULTILINE)
            assert row, name
            assert float(row[1]) == field.default


def test_every_field_of_a_price_is_named() -> None:
    assert not missing("docs/providers.md", set(Price.model_fields))


def test_the_example_of_a_price_file_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", text("docs/providers.md"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "prices.json"
    file.write_text(blocks[0], encoding="utf-8")
    assert PriceTable.load(file).find("vllm/Qwen/Qwen3-VL-8B-Instruct")


def test_every_outcome_is_named() -> None:
    for page in ("docs/providers.md", "docs/runs.md"):
        assert not missing(page, set(get_args(Outcome)))


def test_every_agent_role_and_parameter_is_named() -> None:
    page = text("docs/annotate.md")
    for role, agent in ROLES.items():
        assert f"| {agent} | `{role}` |" in page
    for name, field in AnnotateConfig.model_fields.items():
        value = field.get_default(call_default_factory=True, validated_data={})
        default = {None: "by the model"}.get(value) or (
            f"{value:,}" if isinstance(value, int) else str(value)
        )
        assert f"| `--{name.replace('_', '-')}` | {default} |" in page


def test_every_status_and_kind_of_error_is_named() -> None:
    names = {*get_args(Status), *get_args(FailureKind), *get_args(ImageFault), *Anomaly.model_fields}
    assert not missing("docs/annotate.md", names)


def test_every_change_of_pixels_is_named() -> None:
    code = "".join(
        (ROOT / "src/uncanny/images" / f"{name}.py").read_text() for name in ("decode", "encode", "prepared")
    )
    found = {token for pattern in _CHANGES for token in re.findall(pattern, code)}
    assert len(found) >= 10, found
    documented = re.findall(r"^\| `([^`]+)` \|", text("docs/runs.md"), re.MULTILINE)
    assert {token for token in found if not any(each.startswith(token) for each in documented)} == set()


def test_every_exit_code_has_its_row() -> None:
    rows = re.findall(r"^\| (\d+) \|", text("docs/runs.md"), re.MULTILINE)
    assert sorted(map(int, rows)) == sorted({0, *RUN_CODES.values()})


def test_every_file_and_key_of_a_run_is_named() -> None:
    paths = [path for path in vars(RunFolder(Path("run"))).values() if isinstance(path, Path)]
    files = {path.name for path in paths if path != Path("run")}
    records = (Annotation, Usage, Pixels, SentPixels, StepError)
    keys = {name for record in records for name in record.model_fields} | {
        each.name for each in fields(CallRecord)
    }
    page = named("docs/runs.md") | named("docs/annotate.md")
    assert not {name.removesuffix("/") for name in files | keys} - {name.removesuffix("/") for name in page}
    assert not missing("docs/runs.md", set(get_args(State)) | {".lock", "vllm.log"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """Headings of a page as links name them, and names that headings had before, which the changelog uses."""
    content = _FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", content, re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'^<a id="([a-z-]+)"></a>$', content, re.MULTILINE))


def test_every_page_is_linked_from_the_start_page_or_the_architecture() -> None:
    linked = {DOCS / "index.md"}
    for page in linked.copy() | {DOCS / "architecture.md"}:
        linked |= {
            (page.parent / target).resolve() for target in _LINK.findall(page.read_text(encoding="utf-8"))
        }
    assert {page for page in DOCS.rglob("*.md") if page not in linked} == set()


def test_every_dependency_has_its_reason() -> None:
    optional = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    wanted += [each for extra in optional.values() for each in extra]
    names = {re.split(r"[<>=!~ ]", each)[0] for each in wanted}
    assert not missing("CONTRIBUTING.md", names | set(optional))


def test_every_target_and_marker_is_told_to_contributors() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    markers = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    page = text("CONTRIBUTING.md")
    assert set(re.findall(r"^\| `make ([a-z-]+)` \|", page, re.MULTILINE)) == targets
    assert {marker for marker in markers if f"| `{marker}` |" not in page} == set()


def test_the_layers_are_those_that_are_checked() -> None:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    assert " → ".join(layers).replace("uncanny.", "") in text("CONTRIBUTING.md")
    assert {
        part
        for layer in layers
        for part in re.findall(r"uncanny\.\w+", layer)
        if part not in text("docs/architecture.md")
    } == set()


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {__version__} " in text("CHANGELOG.md")
