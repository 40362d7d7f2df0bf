"""Generators side by side: which prompts are shown, in which order, and from which records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import uncanny
from tests.eval.audit.annotation_sets import record, written
from tests.eval.common.page_text import Page, check_static_page
from uncanny.eval.audit.data.prompts import MOST_IMAGES, MOST_ROWS


def audited(folder: Path, generators: dict[str, list[dict[str, Any]]], **options: Any) -> uncanny.AuditResult:
    files = {name: written(folder / name / "a.jsonl", records) for name, records in generators.items()}
    return uncanny.audit(files, resamples=0, **options)


def test_prompts_stand_by_how_far_generators_differ(tmp_path: Path) -> None:
    severities = {"a": ([10], [50], [], [30]), "b": ([20], [50], [0, 0], [90])}
    generators = {
        name: [record(f"in/p{n}.png", each) for n, each in enumerate(rows)]
        for name, rows in severities.items()
    }
    generators["c"] = [record("p3.webp", []), record("own.png", [0])]
    rows = audited(tmp_path, generators).side_by_side
    assert rows is not None
    assert (rows.shared, rows.differing, rows.by) == (4, 3, "stem")
    assert [row.prompt for row in rows.rows] == ["p2", "p3", "p0"]
    assert [row.spread for row in rows.rows] == pytest.approx([2.0, 0.7, 0.1])
    assert {name: image.u for name, image in rows.rows[1].images.items()} == pytest.approx(
        {"a": 0.7, "b": 0.1, "c": 0}
    )
    assert rows.rows[0].images["b"].path == tmp_path / "b" / "in" / "p2.png"


def test_a_column_matches_what_file_names_do_not(tmp_path: Path) -> None:
    generators = {
        "a": [record("x.png", [10]) | {"prompt": "a cat"}, record("y.png", [40]) | {"prompt": "a dog"}],
        "b": [record("y.png", [90]) | {"prompt": "a cat"}, record("z.png", [95]) | {"prompt": "a cat"}],
    }
    rows = audited(tmp_path, generators, pair_by="prompt").side_by_side
    assert rows is not None
    (row,) = rows.rows
    assert (row.prompt, rows.by) == ("a cat", "prompt")
    # Of several images of a prompt the least plausible one stands for the generator.
    assert row.images["b"].image == "y.png"
    assert row.spread == pytest.approx(0.8)


def test_nothing_shared_is_no_section_and_nothing_different_says_so(tmp_path: Path) -> None:
    apart = audited(tmp_path / "1", {"a": [record("x.png", [10])], "b": [record("y.png", [10])]})
    assert apart.side_by_side is None
    assert "Prompt by prompt" not in Page(apart.report(tmp_path / "1.html").read_text()).text
    alike = audited(tmp_path / "2", {"a": [record("x.png", [10])], "b": [record("x.png", [10])]})
    assert "No shared prompt has a difference." in Page(alike.report(tmp_path / "2.html").read_text()).text


def test_records_in_memory_and_failed_ones(tmp_path: Path) -> None:
    one = [
        uncanny.Annotation.model_validate(each)
        for each in (record("p0.png", [], status="failed"), record("p1.png", [20]))
    ]
    two = [uncanny.Annotation.model_validate(record(f"p{n}.png", [60])) for n in (0, 1)]
    rows = uncanny.audit({"a": one, "b": two}, resamples=0).side_by_side
    assert rows is not None
    assert [row.prompt for row in rows.rows] == ["p1"]
    assert rows.shared == 1
    assert not (tmp_path / "a").exists()


def test_the_page_has_them_side_by_side_and_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    names = [f"p{n:03}" for n in range(MOST_ROWS + 7)]
    generators = {
        each: [
            record(f"{name}.png", [90 - n if each == "b" else 95], sha256=None)
            for n, name in enumerate(names)
        ]
        for each in "ab"
    }
    for each in generators:
        (tmp_path / each).mkdir()
        for name in names:
            Image.new("RGB", (32, 24), "red").save(tmp_path / each / f"{name}.png")
    result = audited(tmp_path, generators)
    page = Page(result.report(tmp_path / "audit.html").read_text(encoding="utf-8"))
    check_static_page(page)
    section = page.html.split('id="h-prompts"')[1].split("</section>")[0]
    assert section.count('<article class="prompt-row">') == MOST_ROWS
    assert f"Showing {MOST_ROWS} of 27" in section
    assert "a guess" in section
    assert section.count("<img") == 2 * MOST_ROWS
    assert section.index(names[-1]) < section.index(names[-2])
    assert MOST_ROWS * 2 <= MOST_IMAGES
    assert "side_by_side" not in result.to_json()
