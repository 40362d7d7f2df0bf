"""One image without a folder, and a run as an object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from langgraph.graph import START, StateGraph
from PIL import Image

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.agents.common.annotate_context import AnnotateContext, AnnotateState, Context
from uncanny.annotation.run import AnnotateRun
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.graphs.annotate import AnnotateGraph, AnnotateInput
from uncanny.models import registry

SCENE = next(scene for scene in scenes() if scene.anomalies)
PARTNER = next(scene for scene in scenes() if scene.pair_id == SCENE.pair_id and not scene.anomalies)
PAIR = [SCENE.image_path, PARTNER.image_path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> AnnotateRun:
    return uncanny.annotate(PAIR, model="demo", out=tmp_path_factory.mktemp("runs") / "a")


def test_a_path_bytes_and_a_pillow_image_are_the_same_picture() -> None:
    by_path = uncanny.annotate_image(SCENE.image_path, model="demo")
    by_bytes = uncanny.annotate_image(SCENE.image_path.read_bytes(), model="demo", name="photo.png")
    assert by_path.anomalies == by_bytes.anomalies != ()
    assert (by_path.image, by_bytes.image) == (str(SCENE.image_path), "photo.png")
    with Image.open(SCENE.image_path) as image:
        by_image = uncanny.annotate_image(image, model="noop")
    assert (by_image.image, by_image.status, by_image.width) == ("image", "ok", by_path.width)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(uncanny.errors.ImageError):
        uncanny.annotate_image(b"no image", model="demo")
    with pytest.raises(uncanny.errors.ImageError):
        uncanny.annotate_image(tmp_path / "gone.png", model="demo")
    with pytest.raises(uncanny.errors.UsageError, match="not int"):
        uncanny.annotate_image(3, model="demo")  # type: ignore[arg-type]


def test_records_are_read_as_they_are_wanted(run: AnnotateRun) -> None:
    records = run.annotations
    assert len(records) == 2
    assert [record.image for record in records] == sorted(record.image for record in records)
    assert records[-1] == list(records)[1] == records[0:2][1]
    assert str(run.path) in repr(records)
    with pytest.raises(IndexError):
        records[2]


def test_of_two_lines_about_an_image_the_last_stands(run: AnnotateRun, tmp_path: Path) -> None:
    lines = (run.path / "annotations.jsonl").read_bytes().splitlines(keepends=True)
    changed = orjson.loads(lines[0]) | {"status": "failed", "anomalies": []}
    content = b"".join([*lines, orjson.dumps(changed), b"\n", b'{"cut'])
    (tmp_path / "annotations.jsonl").write_bytes(content)
    records = AnnotateRun(tmp_path).annotations
    assert [record.status for record in records] == ["failed", "ok"]


def test_the_command_prints_what_the_function_returns(run: AnnotateRun, tmp_path: Path) -> None:
    arguments = ["annotate", *PAIR, "-m", "demo", "-o", tmp_path / "b", "--no-report", "--json"]
    by_command = uncanny_here(*arguments).json()

    def alike(content: dict[str, Any]) -> dict[str, Any]:
        content["totals"].pop("seconds")
        return content | {"run": None, "annotations": None}

    assert alike(by_command) == alike(run.to_json())


def test_the_detect_command_prints_what_the_function_returns(tmp_path: Path) -> None:
    run = uncanny.detect(PAIR, model="demo", out=tmp_path / "d")
    arguments = ["detect", *PAIR, "-m", "demo", "-o", tmp_path / "e", "--no-report", "--json"]
    by_command = uncanny_here(*arguments).json()
    by_function = run.to_json()
    for content in (by_command, by_function):
        content["totals"].pop("seconds")
        content |= {"run": None, "annotations": None}
    assert by_command == by_function
    assert sorted(record.source or "" for record in run.detections) == ["generated", "real"]


def test_a_run_shows_itself(run: AnnotateRun) -> None:
    assert run.summary.state == "finished"
    assert run.summary.cost_usd == 0
    assert "finished" in str(run)
    assert "<table>" in run._repr_html_()
    assert run.report().name == "report.html"
    assert run.to_json()["report"] == str(run.path / "report.html")


def test_the_page_of_a_run_counts_findings_from_the_confidence_asked_for(
    run: AnnotateRun, tmp_path: Path
) -> None:
    pages = [
        run.report(tmp_path / "of-run.html", min_confidence=0.99),
        uncanny.report(run.path, out=tmp_path / "function.html", min_confidence=0.99),
        run.report(tmp_path / "usual.html"),
    ]
    sure, same, usual = (page.read_text(encoding="utf-8") for page in pages)
    assert sure == same
    assert '"least":0.99' in sure
    assert sure != usual
    with pytest.raises(UsageError, match=r"`min_confidence` must be at most 1, not 1\.5"):
        run.report(min_confidence=1.5)


TABLE = [f"columns.{name}" for name in ("pair", "style")]


def test_rows_are_anomalies_and_an_image_without_any_has_one(run: AnnotateRun) -> None:
    import pandas

    frame = run.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert [*frame.columns] == [*run.columns, *TABLE]
    clean = frame[frame["name"].isna()]
    assert len(clean) == 1
    assert len(frame) == 1 + sum(len(record.anomalies) for record in run.annotations)


def test_the_same_rows_are_a_hugging_face_data_set(run: AnnotateRun) -> None:
    import datasets

    dataset = run.to_dataset()
    assert isinstance(dataset, datasets.Dataset)
    assert dataset.column_names == [*run.columns, *TABLE]
    assert list(dataset) == list(run.rows())


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(uncanny.errors.UsageError, match=r"annotations\.jsonl"):
        AnnotateRun(tmp_path)


async def kind_format(state: Any, image: Any) -> Any:
    """A formatter that finds nothing wrong with anything."""
    assert image.config.max_objects == 12
    return {"anomalies": [], "image": state["image"]}


def test_a_node_of_ones_own_takes_the_place_of_one(run: AnnotateRun, tmp_path: Path) -> None:
    kind = uncanny.annotate(PAIR, model="demo", out=tmp_path / "kind", nodes={"format": kind_format})
    assert [record.anomalies for record in kind.annotations] == [(), ()]
    assert [record.objects for record in kind.annotations] == [record.objects for record in run.annotations]
    replaced = {"format": f"{kind_format.__module__}:kind_format"}
    assert kind.manifest.plan["graph"] == replaced
    assert "graph" not in run.manifest.plan
    with pytest.raises(uncanny.errors.RunMismatchError, match="graph"):
        uncanny.annotate(PAIR, model="demo", out=kind.path)
    again = uncanny.annotate(PAIR, model="demo", out=kind.path, nodes={"format": kind_format})
    assert again.summary.calls == kind.summary.calls
    alone = uncanny.annotate_image(SCENE.image_path, model="demo", nodes={"format": kind_format})
    assert (alone.status, alone.anomalies) == ("ok", ())


def test_a_graph_of_ones_own_takes_the_place_of_the_whole(tmp_path: Path) -> None:
    from uncanny.graphs.packed import packed_graph

    graph = packed_graph({"format": kind_format})
    run = uncanny.annotate(PAIR, model="demo", out=tmp_path / "run", graph=graph)
    assert [(record.status, record.anomalies) for record in run.annotations] == [("ok", ()), ("ok", ())]
    with pytest.raises(uncanny.errors.UsageError, match="nodes and a graph"):
        uncanny.annotate(PAIR, model="demo", out=tmp_path / "b", graph=graph, nodes={"format": kind_format})


def test_a_graph_that_tells_nothing_is_not_taken_for_a_flawless_image(tmp_path: Path) -> None:
    async def nothing(state: AnnotateState) -> AnnotateState:  # noqa: ARG001 - a node gets the state
        return {}

    own = StateGraph(AnnotateState, AnnotateContext, input_schema=AnnotateInput)
    own.add_node("nothing", nothing)
    own.add_edge(START, "nothing")
    graph: AnnotateGraph[Context] = own.compile()
    run = uncanny.annotate(PAIR, model="demo", out=tmp_path / "run", graph=graph)
    assert {record.status for record in run.annotations} == {"failed"}
    assert "neither 'anomalies' nor 'failure'" in run.annotations[0].errors[0].message


def test_what_is_no_node_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    nodes: Any = {"formatter": kind_format}
    with pytest.raises(uncanny.errors.UsageError, match="no node 'formatter'"):
        uncanny.annotate(PAIR, model="demo", out=tmp_path / "run", nodes=nodes)
    assert not (tmp_path / "run" / "annotations.jsonl").exists()


def test_a_pillow_image_is_turned_upright_as_its_file_is(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = tmp_path / "turned.jpg"
    with Image.open(SCENE.image_path) as image:
        image.convert("RGB").resize((40, 24)).save(file, exif=exif)
    by_path = uncanny.annotate_image(file, model="noop")
    with Image.open(file) as image:
        by_image = uncanny.annotate_image(image, model="noop")
    assert by_path.pixels is not None
    assert by_image.pixels is not None
    assert (by_image.width, by_image.height) == (by_path.width, by_path.height) == (24, 40)
    assert by_image.pixels.changes[0] == by_path.pixels.changes[0] == "orientation:6"


class Blind:
    """Sees no objects."""

    capabilities = uncanny.Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"blind/{model}"

    async def generate(self, request: uncanny.ModelRequest) -> uncanny.ModelResponse:
        assert request.schema is not None
        return uncanny.ModelResponse(orjson.dumps({each: [] for each in request.schema.lists}).decode())


def test_a_run_and_an_audit_say_in_how_many_images_nothing_was_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    uncanny.register_provider("blind", Blind)
    blind: Any = {"model": "blind/x", "scene_scans": 0, "max_regions": 0}
    run = uncanny.annotate(PAIR, out=tmp_path / "blind", **blind)
    assert run.summary.statuses["ok"] == 2
    assert any("no object in 2 of 2 images" in warning for warning in run.summary.warnings)
    resumed = uncanny.annotate(PAIR, out=tmp_path / "blind", **blind)
    assert resumed.summary.warnings == run.summary.warnings
    audited = uncanny.audit({"blank": run}, resamples=0).leaderboard
    assert any("blank: no object is named in 2 of 2 images" in notice for notice in audited.notices)
    scanned = uncanny.annotate(PAIR, model="blind/x", out=tmp_path / "scanned")
    assert scanned.summary.warnings == ()
    assert uncanny.audit({"scanned": scanned}, resamples=0).leaderboard.notices == ()
    # Enlarged parts are looked at where no object is named.
    tiles = uncanny.annotate(PAIR, out=tmp_path / "tiles", **(blind | {"max_regions": 4}))
    assert tiles.summary.warnings == ()
    assert uncanny.audit({"tiles": tiles}, resamples=0).leaderboard.notices == ()


def test_detection_names_no_objects_and_is_not_warned_of(tmp_path: Path) -> None:
    run = uncanny.detect(PAIR, model="demo", out=tmp_path / "detect")
    assert run.summary.warnings == ()
    assert uncanny.audit({"detected": run}, resamples=0).leaderboard.notices == ()


@pytest.mark.parametrize("parameter", ["repeats", "scene_scans", "max_objects", "max_regions"])
def test_what_a_single_call_has_no_use_for_is_refused(parameter: str, tmp_path: Path) -> None:
    options: Any = {parameter: 2}
    with pytest.raises(
        uncanny.errors.UsageError, match=f"`{parameter}` has no effect with the schedule `single`"
    ):
        uncanny.annotate(PAIR, model="demo", out=tmp_path / "run", schedule="single", **options)
    run = uncanny.annotate(PAIR, model="demo", out=tmp_path / "run", schedule="single")
    assert run.summary.calls == 2
    assert "<dt>Schedule</dt><dd><code>single</code>" in run.report().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("role", "agent", "options"),
    [
        ("formatter", "AnomalyFormatter", {"schedule": "single"}),
        ("scanner", "SceneScanner", {"schedule": "paper"}),
        ("scanner", "SceneScanner", {"scene_scans": 0}),
    ],
)
def test_a_model_for_an_agent_that_is_never_asked_is_refused(
    role: str, agent: str, options: dict[str, Any], tmp_path: Path
) -> None:
    roles, out = {role: "noop"}, tmp_path / "run"
    for ask in (uncanny.annotate, uncanny.annotate_forecast):
        with pytest.raises(uncanny.errors.UsageError, match=f"`roles` {role} has no effect.*the {agent}"):
            ask(PAIR, model="demo", out=out, roles=roles, **options)
    assert not out.exists()
    with pytest.raises(uncanny.errors.UsageError, match=f"never asks the {agent}"):
        uncanny.annotate_image(PAIR[0], model="demo", roles=roles, **options)
