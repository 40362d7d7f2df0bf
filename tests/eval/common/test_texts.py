"""Whose texts were asked: said where they are not uncanny's, or not the same; on pages and in tables too."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.bundled_runs import some_items
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.eval.common.published import MOST_NAMED, asked_with, caveat, other_texts, texts_notes
from uncanny.prompts import prompt_set

OURS, ALSO_OURS, THEIRS = prompt_set("mcq").id, prompt_set("detect").id, "mcq@00000000"


def test_ids_of_the_package_are_uncannys() -> None:
    assert other_texts({THEIRS, OURS, ALSO_OURS, "x"}) == [THEIRS, "x"]


@pytest.mark.parametrize("sets", [{}, {"a": []}, {"a": [OURS]}, {"a": [OURS], "b": [OURS], "c": []}])
def test_nothing_is_said_of_the_same_texts_of_uncanny(sets: dict[str, list[str]]) -> None:
    assert list(texts_notes(sets)) == []


def test_other_texts_are_named_for_whom_they_were_asked() -> None:
    (note,) = texts_notes({"a": [THEIRS], "b": []})
    assert note.startswith(f"a: asked with other texts than uncanny's ({THEIRS}); its figures do not compare")


def test_figures_of_different_texts_are_told_apart() -> None:
    (note,) = texts_notes({"a": [OURS], "b": [ALSO_OURS], "c": []})
    assert note == (
        "Not all were asked with the same texts, so more than the model differs: "
        f"a: {OURS}; b: {ALSO_OURS}"
    )  # fmt: skip


def test_a_note_stays_short_whatever_the_records_say() -> None:
    notes = list(texts_notes({f"model {n}": ["x" * 10_000, *map(str, range(50)), str(n)] for n in range(40)}))
    assert all(len(note) < 1_500 for note in notes)
    assert notes[-1].endswith(f"; and {40 - MOST_NAMED} more")


@pytest.mark.parametrize(
    ("sets", "sources", "sentence"),
    [
        ({}, set(), ""),
        ({"a": [OURS]}, {"ours"}, "Asked with uncanny's own prompts"),
        ({"a": ["own:q1"], "b": ["own:q2"]}, {"set"}, "Asked with the set's own prompts"),
        ({"a": []}, {"unknown"}, "The records do not say which prompts were used, if any"),
        (
            {"a": [OURS, THEIRS]},
            {"ours", "others"},
            "Asked with uncanny's own prompts and other prompts than uncanny's",
        ),
        (
            {"a": [ALSO_OURS], "b": [], "c": [OURS]},
            {"ours", "unknown"},
            "Asked with uncanny's own prompts (a, c); the records do not say which prompts were used, "
            "if any (b)",
        ),
    ],
)
def test_whose_prompts_is_said_only_of_records_that_name_them(
    sets: dict[str, list[str]], sources: set[str], sentence: str
) -> None:
    whose, words = asked_with(sets)
    assert (set(whose), words) == (sources, sentence)


def test_a_sets_own_prompts_are_no_others() -> None:
    assert list(texts_notes({"a": ["own:q1", OURS], "b": [OURS]})) == []


def foreign_answers(folder: Path) -> tuple[Any, list[str]]:
    items = uncanny.mcq.load("scenes")[:3]
    rows = [
        {"row_id": item.id, **{question: item.right(question) for question in item.questions()}}
        for item in items
    ]
    file = folder / "theirs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    scores = uncanny.mcq.score(items, file, resamples=0, published=True)
    page = scores.report(folder / "mcq.html", published=True)
    return scores, [scores.table().text(), page.read_text(encoding="utf-8")]


def foreign_regions(folder: Path) -> tuple[Any, list[str]]:
    record = {"image": "a.png", "width": 8, "height": 8, "source": "generated"}
    region = {"category": "physics", "box": [1, 1, 5, 5]}
    file = folder / "theirs.jsonl"
    file.write_text(json.dumps(record | {"regions": [region]}) + "\n")
    score = uncanny.artifacts.score(file, truth=file, published=True, resamples=0)
    page = score.report(folder / "page.html")
    return score, [str(score), page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("made", [foreign_answers, foreign_regions])
def test_nothing_is_said_of_whoever_asked_for_a_file_that_uncanny_did_not_write(
    made: Any, tmp_path: Path
) -> None:
    _, texts = made(tmp_path)
    for text in map(flat, texts):
        assert "say which prompts were used, if any" in text
        assert "uncanny's own" not in text
        assert "uncanny asks" not in text


@pytest.mark.parametrize(
    "table", ["artifact_scores", "semantic_scores", "inpainting_scores", "generator_audit"]
)
def test_a_caveat_says_of_files_what_they_say_themselves(table: Any) -> None:
    foreign = caveat(table, {"theirs": ()})
    assert "uncanny" not in foreign
    assert "the records do not say which prompts were used" in foreign
    assert "Yours: asked with uncanny's own prompts; for orientation only" in caveat(table, {"a": [OURS]})
    assert caveat(table, {}).endswith(".")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "system.md").write_text("Look closely, and answer in English.")
    return folder


def flat(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", text).replace("&#39;", "'").split())


NOTE = "asked with other texts than uncanny's ("


@pytest.mark.slow
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
    assert "Asked with other prompts than uncanny's; published" in flat(
        replace(answers, published=True).table().text()
    )
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
