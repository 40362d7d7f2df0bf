"""How far a run was from its forecast: the words, and runs that are resumed, stopped and begun anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.runs.e2e import serving, uncanny_here
from uncanny.annotation.forecast_error import forecast_error
from uncanny.demo.scenes import scenes
from uncanny.records.run_manifest import RunManifest

SCENES = [scene.image_path for scene in scenes()[:8]]
FORECAST = {
    "images": 10,
    "objects_per_image": 8,
    "calls": 80,
    "input_tokens": 200_000,
    "output_tokens": 20_000,
    "cost_usd": 2.0,
}
TOTALS = {
    "images": 10,
    "ok": 10,
    "pending": 0,
    "calls": 60,
    "input_tokens": 100_000,
    "output_tokens": 30_000,
    "cost_usd": 2.0,
    "objects": 41,
    "without_findings": 6,
}


def words(forecast: dict[str, Any] | None = None, **totals: Any) -> str | None:
    content = {"forecast": FORECAST | (forecast or {}), "totals": TOTALS | totals}
    return forecast_error(RunManifest.model_validate(content))


def test_what_was_forecast_what_it_was_how_far_apart_and_why() -> None:
    assert words() == (
        "80 calls, 200k in, 20.0k out, $2.00; it was 60 (−25 %), 100k (−50 %), 30.0k (+50 %), $2.00 (±0 %): "
        "4.1 objects an image instead of 8; nothing found in 6 of 10"
    )


def test_other_reasons_are_named() -> None:
    outcomes = {"answered": 50, "unparseable": 3, "refused": 1, "error": 2}
    more = words(objects=80, without_findings=0, duplicates=2, replayed=9, outcomes=outcomes)
    assert more is not None
    assert more.partition(": ")[2] == (
        "2 copies not asked about; 9 answers reused; 6 calls without an answer of use"
    )
    one = words(objects=80, without_findings=0, duplicates=1, replayed=1, outcomes={"error": 1})
    assert one is not None
    assert one.endswith(": 1 copy not asked about; 1 answer reused; 1 call without an answer of use")
    exactly = words(objects=80, without_findings=0)
    assert exactly is not None
    assert exactly.endswith("$2.00 (±0 %)")


def test_of_half_a_run_half_the_forecast_counts() -> None:
    half = words(ok=4, partial=1, pending=5, calls=40)
    assert half is not None
    assert half.startswith("40 calls, 100k in, 10.0k out, $1.00 for 5 of 10 images; it was 40 (±0 %)")
    assert half.endswith("; calls about images that are not done count, too")
    # What cannot be read is neither forecast nor asked about.
    whole = words({"images": 5}, ok=5, unreadable=5)
    assert whole is not None
    assert whole.startswith("80 calls")


def test_what_is_not_known_is_left_out() -> None:
    some = words({"input_tokens": None, "cost_usd": None}, output_tokens=None)
    assert some is not None
    assert some.startswith("80 calls; it was 60 (−25 %): ")
    assert words({"cost_usd": 0.0}) == str(words({"cost_usd": None}))
    assert words(ok=0, pending=10) is None
    assert words({"images": None}) is None
    assert forecast_error(RunManifest()) is None
    assert forecast_error(RunManifest.model_validate({"totals": TOTALS})) is None


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def manifest(run: Path) -> RunManifest:
    return RunManifest.model_validate_json((run / "run.json").read_bytes())


@pytest.mark.usefixtures("keyed")
def test_a_run_is_held_against_the_forecast_of_the_whole_however_often_it_is_resumed(
    tmp_path: Path,
) -> None:
    run, forecast = tmp_path / "run", uncanny.annotate_forecast(SCENES, model="openai/gpt-4o")
    with serving() as server:
        for limit in (3, 3, 8):
            uncanny.annotate(
                SCENES[:limit], model="openai/gpt-4o", base_url=server.v1, out=run, progress=False
            )
        requests = server.requests()
        again = uncanny.annotate(SCENES, model="openai/gpt-4o", base_url=server.v1, out=run, progress=False)
        assert server.requests() == requests
    kept = manifest(run)
    assert kept.forecast is not None
    assert kept.totals is not None
    assert (kept.forecast.images, kept.forecast.calls) == (8, forecast.calls_usual)
    assert (kept.forecast.cost_usd, kept.forecast.input_tokens) == (forecast.cost_usd, forecast.input_tokens)
    assert kept.totals.calls == requests
    records = list(again.annotations)
    assert kept.totals.objects == sum(len(record.objects) for record in records)
    clean = [record for record in records if not (record.model_extra or {}).get("candidates")]
    assert kept.totals.without_findings == len(clean)
    error = forecast_error(kept)
    assert error is not None
    assert f"nothing found in {len(clean)} of 8" in error
    assert "objects an image instead of 8" in error


@pytest.mark.usefixtures("keyed")
def test_answers_that_another_run_paid_for_are_a_reason(tmp_path: Path) -> None:
    with serving() as server:
        for name in ("first", "second"):
            uncanny.annotate(
                SCENES[:2],
                model="openai/gpt-4o",
                base_url=server.v1,
                out=tmp_path / name,
                progress=False,
                cache_dir=tmp_path / "answers",
            )
    totals = manifest(tmp_path / "second").totals
    assert totals is not None
    error = forecast_error(manifest(tmp_path / "second"))
    assert error is not None
    assert "it was 0 (−100 %)" in error
    assert f"{totals.replayed} answers reused" in error


def test_summary_and_page_say_it(tmp_path: Path) -> None:
    with serving() as server:
        asked = server.asked(name="gpt-4o")
        done = uncanny_here("annotate", *SCENES[:2], *asked, "-o", tmp_path / "run")
    error = forecast_error(manifest(tmp_path / "run"))
    assert error is not None
    assert f"Forecast {error}\n" in done.out
    assert f"Forecast: {error}." in (tmp_path / "run" / "report.html").read_text()


async def passing(state: Any, image: Any) -> Any:  # noqa: ARG001
    return {"findings": [], "order": state["order"], "errors": [], "answered": True}


def test_of_a_graph_of_ones_own_nothing_is_forecast(tmp_path: Path) -> None:
    run = tmp_path / "run"
    uncanny.annotate(SCENES[:1], model="demo", out=run, progress=False, nodes={"scan": passing})
    kept = manifest(run)
    assert kept.forecast is None
    assert kept.totals is not None
    assert kept.totals.objects is None
    assert forecast_error(kept) is None
