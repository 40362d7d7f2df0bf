"""Whose texts were asked: said where they are not uncanny's, or not the same; on pages and in tables too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.bundled_runs import some_items
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.eval.common.texts import MOST_NAMED, other_texts, texts_notes
from uncanny.prompts import prompt_set

OURS, EARLIER, THEIRS = prompt_set("mcq").id, "mcq@b4fed076", "mcq@00000000"


def test_ids_of_this_version_and_earlier_ones_are_uncannys() -> None:
    assert other_texts({THEIRS, OURS, EARLIER, "x"}) == [THEIRS, "x"]


@pytest.mark.parametrize("sets", [{}, {"a": []}, {"a": [OURS]}, {"a": [OURS], "b": [OURS], "c": []}])
def test_nothing_is_said_of_the_same_texts_of_uncanny(sets: dict[str, list[str]]) -> None:
    assert list(texts_notes(sets)) == []


def test_other_texts_are_named_for_whom_they_were_asked() -> None:
    (note,) = texts_notes({"a": [THEIRS], "b": []})
    assert note.startswith(f"a: asked with other texts than uncanny's ({THEIRS}); its figures do not compare")


def test_figures_of_different_texts_are_told_apart() -> None:
    (note,) = texts_notes({"a": [OURS], "b": [EARLIER], "c": []})
    assert note == (
        "Not all were asked with the same texts, so more than the model differs: "
        f"a: {OURS}; b: {EARLIER}"
    )  # fmt: skip


def test_a_note_stays_short_whatever_the_records_say() -> None:
    notes = list(texts_notes({f"model {n}": ["x" * 10_000, *map(str, range(50)), str(n)] for n in range(40)}))
    assert all(len(note) < 1_500 for note in notes)
    assert notes[-1].endswith(f"; and {40 - MOST_NAMED} more")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "system.md").write_text("Look closely, and answer in English.")
    return folder


def flat(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", text).replace("&#39;", "'").split())


NOTE = "asked with other texts than uncanny's ("


def test_scores_of_a_users_texts_say_so_in_table_page_and_json(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    items = some_items(tmp_path / "set", 2)
    mcq = uncanny.mcq.run(items, model="demo", out=tmp_path / "mcq", prompts=texts)
    answers = mcq.score(resamples=0)
    realism = uncanny.realism.run("scenes", model="demo", out=tmp_path / "realism", prompts=texts, limit=2)
    verdicts = uncanny.realism.score(realism, resamples=0)
    detect = uncanny.detect("scenes", model="demo", out=tmp_path / "detect", prompts=texts, limit=2)
    anomalies = uncanny.semantic.score(detect, truth="scenes", similarity="chrf", resamples=0)
    annotate = uncanny.annotate(
        scenes()[0].image_path, model="demo", out=tmp_path / "annotate", prompts=texts
    )
    generators = uncanny.audit({"a": annotate.path}, resamples=0)
    results: list[tuple[Any, str]] = [
        (answers, "mcq@"),
        (verdicts, "realism@"),
        (anomalies, "detect@"),
        (generators, "packed@"),
    ]
    for result, prefix in results:
        assert f"{NOTE}{prefix}" in flat(str(result))
        result.report(out)
        assert f"{NOTE}{prefix}" in flat(out.read_text(encoding="utf-8"))
    assert "Asked with other texts than uncanny's; published" in flat(answers.table(published=True).text())
    assert verdicts.to_json()["prompts"] == [realism.verdicts[0].prompts]
    assert next(iter(anomalies.to_json()["predictions"].values()))["prompts"] == [
        detect.detections[0].prompts
    ]


def test_scores_of_uncannys_texts_say_nothing(tmp_path: Path) -> None:
    run = uncanny.mcq.run(some_items(tmp_path / "set", 2), model="demo", out=tmp_path / "mcq")
    assert "other texts" not in str(run.score(resamples=0))
    assert "other texts" not in run.report(tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["annotate", "detect"])
def test_the_page_of_a_run_names_what_is_the_users(command: str, texts: Path, tmp_path: Path) -> None:
    image = scenes()[0].image_path
    done = uncanny_here(command, image, "-m", "demo", "-o", tmp_path / "run", "--prompts", texts)
    texts_of = {"annotate": "packed", "detect": "detect"}[command]
    assert f"\nTexts    system.md in place of uncanny's, {texts_of}@" in done.out
    page = flat((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert "Asked with other texts than uncanny's (" in page
    assert "a user has put these in place of uncanny's: system.md" in page
