"""A package outside of uncanny: strictly typed, with public names alone, and run for real."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from lab_tools.agents import CALM_NODES, CLOSE_READER, LIGHT, MEASURER, PAPER_NODES, SHADOW_NAMER
from lab_tools.captions.data import Caption
from lab_tools.captions.report import report
from lab_tools.captions.run import run as check_captions
from lab_tools.captions.score import score
from lab_tools.graph import calm_graph, light_graph, paper_graph
from lab_tools.model import LabModel
from PIL import Image

import uncanny
from tests.doors import MODULES
from tests.runs.e2e import environment
from uncanny.models import registry

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tests" / "outside_package"
SOURCE = PACKAGE / "src"
FILES = sorted((SOURCE / "lab_tools").rglob("*.py"))
PUBLIC = {"uncanny", "uncanny.errors", *(f"uncanny.{name}" for name in MODULES)}


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {"lab": LabModel})


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two pictures: one evenly lit, one whose left half is darker."""
    folder = tmp_path / "photos"
    folder.mkdir()
    even = Image.new("RGB", (64, 48), (40, 60, 200))
    even.save(folder / "even.png")
    even.paste((0, 0, 40), (0, 0, 32, 48))
    even.save(folder / "halves.png")
    return folder


def imported() -> Iterator[tuple[Path, str, str | None]]:
    """Each import of uncanny: file, module, name."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((file, alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                yield from ((file, node.module, alias.name) for alias in node.names)


def test_it_imports_public_names_alone() -> None:
    ours = [each for each in imported() if each[1].split(".")[0] == "uncanny"]
    assert len(ours) > 40
    assert {module for _, module, _ in ours} == {"uncanny", "uncanny.errors", "uncanny.extend"}
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for file, module, name in ours:
        assert module in PUBLIC, file
        if name is not None:
            if module != "uncanny.errors":  # documented as a module
                assert name in import_module(module).__all__, (file, name)
                assert f"\n::: {module}.{name}\n" in page, name
            assert hasattr(import_module(module), name), (file, name)
    assert "\n::: uncanny.errors\n" in page


def test_every_name_for_extensions_is_shown_in_use() -> None:
    """What neither the package nor docs/extend.md needs does not have to be public."""
    page = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    used = blocks + "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert [name for name in uncanny.extend.__all__ if not re.search(rf"\b{name}\b", used)] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_passes_strict_mypy_against_the_installed_uncanny(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(PACKAGE / "pyproject.toml"),
        "-p",
        "lab_tools",
    ]
    env = {**os.environ, "MYPYPATH": str(SOURCE), "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=850
    )
    assert done.returncode == 0, done.stdout
    checked = re.fullmatch(r"Success: no issues found in (\d+) source files\n", done.stdout)
    assert checked is not None, done.stdout
    assert int(checked[1]) >= len(FILES)


def test_its_model_is_known_to_commands_by_its_entry_point(photos: Path, tmp_path: Path) -> None:
    """As it is installed: a package on the path, and what its metadata says."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = tmp_path / "site" / f"lab_tools-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: lab-tools\nVersion: {project['version']}\n"
    )
    groups = project["entry-points"].items()
    (metadata / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups
        )
    )
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "uncanny", "annotate", photos, "--model", "lab/gray", "-o", out, "--quiet"],
        env=environment({"PYTHONPATH": os.pathsep.join((str(SOURCE), str(tmp_path / "site")))}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    even, halves = uncanny.AnnotateRun(out).annotations
    assert (even.status, even.anomalies) == ("ok", ())
    assert [each.phenomenon for each in halves.anomalies] == ["the left half is darker"]
    assert halves.usage.input_tokens is not None
    assert halves.usage.input_tokens > 0


def test_its_agents_and_its_node_work_in_the_default_schedule(photos: Path, tmp_path: Path) -> None:
    Image.new("RGB", (40, 1)).save(photos / "line.png")
    run = uncanny.annotate(
        photos,
        model="lab/gray",
        out=tmp_path / "run",
        agents=[LIGHT, MEASURER, SHADOW_NAMER, CLOSE_READER],
        nodes=CALM_NODES,
    )
    summary: uncanny.RunSummary = run.summary
    assert (summary.state, dict(summary.statuses)["ok"]) == ("finished", 3), run.annotations[0].errors
    found = {
        Path(record.image).stem: {
            each["found_by"] for each in (record.model_extra or {}).get("candidates", ())
        }
        for record in run.annotations
    }
    assert found["even"] == set()
    assert found["line"] == {"Measurer"}
    assert found["halves"] == {
        "AttributeAnalyzer",
        "RelationReasoner",
        "CalmScanner",
        "CloseReader",
        "LightReader",
        "ShadowNamer",
    }
    record = run.annotations[1]
    assert record.anomalies[0].found_by is not None
    assert set(record.anomalies[0].found_by) == found["halves"]


def test_its_nodes_work_in_the_schedule_of_the_paper(photos: Path, tmp_path: Path) -> None:
    calls: list[uncanny.CallRecord] = []
    run = uncanny.annotate(
        photos,
        model="noop",
        out=tmp_path / "run",
        schedule="paper",
        scene_scans=1,
        nodes=PAPER_NODES,
        on_call=calls.append,
    )
    assert {record.status for record in run.annotations} == {"ok"}
    assert {call.agent for call in calls} == {
        "AttributeAnalyzer",
        "AnomalyIntegrator",
        "CalmScanner",
        "AnomalyFormatter",
    }
    graph = paper_graph()
    again = uncanny.annotate_image(
        photos / "even.png",
        model="noop",
        graph=graph,
        schedule="paper",
        scene_scans=1,
    )
    assert again.anomalies == run.annotations[0].anomalies


def test_its_graph_takes_the_place_of_the_whole(photos: Path, tmp_path: Path) -> None:
    run = uncanny.annotate(photos, model="lab/gray", out=tmp_path / "run", graph=light_graph())
    even, halves = run.annotations
    assert (even.status, halves.status, run.summary.calls) == ("ok", "ok", 2)
    assert [each.phenomenon for each in halves.anomalies] == ["the left half is darker"]
    scene_object: uncanny.SceneObject = halves.objects[0]
    assert scene_object.name == "halves"
    assert run.manifest.plan["graph"] == {"look_once": "lab_tools.graph:look_once"}
    calm = uncanny.annotate_image(photos / "halves.png", model="lab/gray", graph=calm_graph())
    assert calm.status == "ok"
    assert set(calm.anomalies[0].found_by or ()) >= {"CalmScanner", "LightReader"}


def test_its_protocol_runs_with_its_model(photos: Path, tmp_path: Path) -> None:
    captions = [
        Caption(id=color, image=str(photos / "even.png"), caption=f"A {color} wall.", fits=color == "blue")
        for color in ("red", "blue")
    ]
    checked = check_captions(captions, model="lab/color", out=tmp_path / "run")
    assert {record.id: record.fits for record in checked.records} == {"red": False, "blue": True}
    scores = score(captions, checked)
    share: uncanny.Share = scores.accuracy
    assert (share.counts, share.out_of) == (2, 2)
    assert "The picture is mostly blue." in report(captions, checked).read_text(encoding="utf-8")
