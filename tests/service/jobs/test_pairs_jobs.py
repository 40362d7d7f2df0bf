"""Pairs, training and detectors as jobs: the whole path, what is refused, and whose weights are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.eval.pairs.made_candidates import pictures
from tests.runs.e2e import uncanny_here
from tests.service.api.conftest import API
from tests.service.jobs.test_kinds import values, wrong
from tests.service.jobs.working import ended, records, working
from tests.service.made_jobs import client_of
from tests.service.running import running
from uncanny import Client
from uncanny.errors import NotFoundError, UsageError
from uncanny.models.registry import weights_place
from uncanny.protocol import Protocol, jobs
from uncanny.service.jobs.kinds import KINDS, kind_named, kind_of
from uncanny.service.service import Service
from uncanny.settings import settings
from uncanny.wording import shown

pytest.importorskip("cv2")
pytest.importorskip("diffusers")

TRAINING = [each for each in jobs().values() if each.extra == "learn"]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "secret" / "tiny"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def opened(tmp_path: Path, weights: Path) -> Iterator[Service]:
    root = tmp_path / "root"
    pictures(root / "pictures", 2)
    (root / "tiny").mkdir()
    with Service.open(tmp_path / "data", roots=[root], weights={"tiny": weights}) as service:
        yield service


PAINTED: dict[str, Any] = {"images": "pictures", "inpainter": "demo"}


@pytest.mark.parametrize(
    ("kind", "place", "asked"),
    [
        ("pairs_make", "inpainter", PAINTED),
        ("pairs_make", "model", PAINTED),
        ("pairs_make", "fallback", PAINTED),
        ("pairs_make", "roles.writer", PAINTED),
        ("detect", "model", {"images": "pictures"}),
        ("artifacts", "model", {"images": "pictures"}),
        ("annotate", "fallback", {"images": "pictures", "model": "demo"}),
        ("mcq", "model", {"items": "scenes"}),
    ],
)
@pytest.mark.parametrize("provider", ["diffusers", "detector"])
def test_a_model_in_a_folder_is_named_by_who_runs_the_service(
    opened: Service, kind: str, place: str, asked: dict[str, Any], provider: str
) -> None:
    """No hub is asked, and no path is one: nor one below a root, nor one in the folder of a job."""

    def params(model: str) -> dict[str, Any]:
        name, _, role = place.partition(".")
        return {**asked, name: {role: model} if role else model}

    assert values(opened, kind, **params(f"{provider}/tiny"))
    for name in ("other", "someone/model", "someone/model@main", "root/tiny", "run", "tiny/inner"):
        said = wrong(opened, kind, **params(f"{provider}/{name}"))[place]
        assert said == f"{shown(name)} is not the name of a folder of weights here; the names are tiny"
    for path in (opened.weights["tiny"], "../tiny", "a/../../tiny"):
        assert place in wrong(opened, kind, **params(f"{provider}/{path}"))


def test_the_process_of_a_job_loads_no_other_weights(
    opened: Service, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weights_place("any/model") == "any/model"
    monkeypatch.setenv("UNCANNY_WEIGHTS", opened.child_settings()["UNCANNY_WEIGHTS"])
    settings.cache_clear()
    try:
        assert weights_place("tiny") == str(weights)
        with pytest.raises(UsageError, match=r"'any/model' is not the name .* The names are tiny"):
            weights_place("any/model")
    finally:
        monkeypatch.undo()
        settings.cache_clear()


@pytest.mark.parametrize("name", ["pairs_make", *(each.name for each in TRAINING)])
def test_a_kind_without_its_packages_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, name, raising=False)
    extra = name.partition("_")[0]
    with pytest.raises(
        NotFoundError, match=rf"{name} need the extra `{extra}`.*pip install -e '\.\[{extra}\]'"
    ):
        kind_named(name)


@pytest.mark.parametrize("protocol", TRAINING, ids=lambda protocol: protocol.name)
def test_training_takes_weights_by_name_and_data_that_a_job_may_read(
    opened: Service, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, protocol.name, kind_of(protocol))
    asked = {"data": "root/pictures", "base": "tiny"}
    called = values(opened, protocol.name, **asked)
    assert (called["base"], called["out"]) == (str(opened.weights["tiny"]), "run")
    for base in ("Qwen/Qwen2.5-VL-7B-Instruct", str(opened.weights["tiny"]), "root/tiny"):
        assert "base" in wrong(opened, protocol.name, **asked | {"base": base})
    for name in ("data", "held_out"):
        assert name in wrong(opened, protocol.name, **asked | {name: "/etc"})
    assert "out" in wrong(opened, protocol.name, **asked, out="/tmp/x")


def test_pairs_take_nothing_from_elsewhere_and_write_nothing_there(opened: Service, tmp_path: Path) -> None:
    for name in ("landmarks", "sam2", "clip", "out", "root"):
        assert wrong(opened, "pairs_make", **PAINTED, **{name: "tiny"})[name] == "is not a parameter"
    assert "masks" in wrong(opened, "pairs_make", **PAINTED, masks=str(tmp_path / "secret"))
    for kind in ("pairs_screen", "pairs_items"):
        assert "pairs" in wrong(opened, kind, pairs=str(tmp_path / "secret"))
    assert "screened" in wrong(opened, "pairs_items", pairs="pictures", screened="/etc")
    assert values(opened, "pairs_items", pairs="pictures")["out"] == "run"


@pytest.mark.slow
def test_pairs_are_made_screened_judged_and_kept_by_jobs(opened: Service) -> None:
    def done(kind: str, **params: Any) -> str:
        job = ended(opened, opened.submit(kind, params, by="ann"))
        assert (job.state, job.error) == ("finished", None)
        return job.id

    with working(opened):
        made = done("pairs_make", **PAINTED, attempts=2)
        before = {file: file.stat().st_mtime_ns for file in opened.job_folder(made).rglob("*")}
        screened = done("pairs_screen", pairs=f"job:{made}", model="demo")
        seen = records(opened, opened.jobs.get(screened))
        assert len(seen) == 4
        asked = {"pairs": f"job:{made}", "screened": f"job:{screened}"}
        unjudged = done("pairs_items", **asked)
        assert records(opened, opened.jobs.get(unjudged), "run/items.jsonl") == []
        with client_of(opened, "reviewer") as client:
            finding = client.get(f"{API}/jobs/{screened}/findings").json()["findings"][0]
            verdict = {"finding": finding["id"], "text": finding["text"], "decision": "accept"}
            assert client.post(f"{API}/jobs/{screened}/verdicts", json=verdict).status_code == 201
        kept = done("pairs_items", **asked)
        # Again, after more verdicts, in the same folder.
        again = ended(opened, opened.jobs.retry(unjudged))
        assert (again.state, again.error) == ("finished", None)
        for job in (kept, unjudged):
            pairs = records(opened, opened.jobs.get(job), "run/pairs.jsonl")
            assert [each["judged"] for each in pairs] == [True]
            assert len(records(opened, opened.jobs.get(job), "run/items.jsonl")) == 2
        figures = orjson.loads((opened.job_folder(kept) / "result.json").read_bytes())
        assert (figures["kept"], figures["judged"]) == (1, 1)
        assert (opened.job_folder(kept) / "out/pairs.html").is_file()
        # What was kept is an input of other kinds; nothing was written into the first job.
        measured = done("edits_measure", pairs=f"job:{kept}")
        assert records(opened, opened.jobs.get(measured), "out/edits.jsonl")[0]["status"] == "ok"
        assert values(opened, "mcq", items=f"job:{kept}", model="demo")
        after = {file: file.stat().st_mtime_ns for file in opened.job_folder(made).rglob("*")}
        assert after == before


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_job_paints_with_weights_of_that_name_and_does_not_say_where_they_are(tmp_path: Path) -> None:
    from tests.eval.pairs.tiny_models import tiny_pipeline

    pictures(tmp_path / "root" / "pictures", 1)
    weights = tiny_pipeline(tmp_path / "secret")
    asked = PAINTED | {"inpainter": "diffusers/tiny", "attempts": 1, "steps": 2, "inpaint_side": 64}
    with (
        Service.open(tmp_path / "data", roots=[tmp_path / "root"], weights={"tiny": weights}) as service,
        working(service),
    ):
        job = ended(service, service.submit("pairs_make", asked, by="ann"))
        assert (job.state, job.error) == ("finished", None)
        (record,) = records(service, job, "run/candidates.jsonl")
        folder = service.job_folder(job.id)
    (candidate,) = record["candidates"]
    assert candidate["model"] == "diffusers/tiny"
    assert candidate["revision"].startswith("tiny@")
    for file in [*folder.rglob("*.json"), *folder.rglob("*.jsonl"), folder / "stderr.log"]:
        assert "/secret" not in file.read_text(), file


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_pairs_made_on_a_service_are_screened_there_or_here(tmp_path: Path) -> None:
    photos, run = pictures(tmp_path / "photos", 1), tmp_path / "run"
    with running(tmp_path / "data") as service:
        words = ("pairs", "make", photos, "--inpainter", "demo", "--attempts", "2", "-o", run)
        made = uncanny_here(*words, "--server", service.address)
        assert made.code == 0, made.err
        with Client(service.address) as client:
            (job,) = client.jobs(kind="pairs_make")
            screened = client.pairs_screen(job, model="demo").wait()
            kept = client.pairs_items(job, screened=screened, unreviewed=True).wait()
            result = kept.result
        assert (kept.state, result["candidates"]) == ("finished", 2)
    here = uncanny.pairs.screen(run, model="demo")
    assert here.summary.state == "finished"
    assert uncanny.pairs.items(run, unreviewed=True).kept == result["kept"]
    (record,) = map(orjson.loads, (run / "candidates.jsonl").read_bytes().splitlines())
    assert record["image"] == "../photos/picture-0.png"
