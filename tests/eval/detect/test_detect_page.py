"""The page of a detection run: its scores where the truth is known, and which verdicts are wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from PIL import Image

import uncanny
from tests.eval.common.page_text import Page
from tests.eval.detect.test_detect_run import sorted_scenes
from uncanny.demo.scenes import scenes


def page_of(path: Path) -> tuple[Page, list[dict[str, Any]]]:
    page = Page(path.read_text(encoding="utf-8"))
    data = page.html.split('id="data">')[1].split("</script>")[0]
    return page, json.loads(data)["images"]


def test_scores_stand_on_the_page_of_the_run_and_of_the_report(tmp_path: Path) -> None:
    run = uncanny.detect("scenes", model="demo", out=tmp_path / "run")
    score = run.score().scored
    for path in (run.report(), uncanny.report(tmp_path / "run")):
        page, images = page_of(path)
        assert "Verdicts against the truth" in page.text
        assert f"Accuracy {100 * (score.accuracy or 0):.1f} " in page.text
        right = [image["right"] for image in images]
        assert (right.count(True), right.count(False)) == (score.right, score.images - score.right)
        assert 'id="verdict"' in page.html


def test_folders_tell_which_verdicts_are_right(tmp_path: Path) -> None:
    folder = sorted_scenes(tmp_path / "set")
    uncanny.detect(folder, model="demo", out=tmp_path / "run")
    page, images = page_of(uncanny.report(tmp_path / "run", max_images=3))
    assert "truth by folders" in page.text
    assert len(images) == 3
    for image in images:
        really = "generated" if "/fake/" in image["image"] else "real"
        assert image["right"] == (image["extra"]["source"] == really)


def test_without_a_truth_the_verdicts_are_counted_and_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    shutil.copy(scenes()[0].image_path, tmp_path / "flat" / "a.png")
    Image.new("RGB", (64, 48), "teal").save(tmp_path / "flat" / "b.png")
    page, images = page_of(uncanny.detect(tmp_path / "flat", model="demo", out=tmp_path / "run").report())
    assert "There are no scores" in page.text
    assert [image["right"] for image in images] == [None, None]
    assert 'id="verdict"' not in page.html
