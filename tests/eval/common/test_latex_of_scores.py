"""The tables of every score as LaTeX: one document of all of them compiles, and nothing sticks out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from uncanny.eval.common.tables.table import TableResult

_DOCUMENT = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}%s\end{document}"


def fewer(run: Path, copy: Path) -> Path:
    """The same annotations without those of every second image."""
    shutil.copytree(run, copy)
    lines = [json.loads(line) for line in (copy / "annotations.jsonl").read_text().splitlines()]
    for line in lines[::2]:
        line["anomalies"] = []
    (copy / "annotations.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return copy


def all_scores(bundled_run: BundledRuns, folder: Path) -> Iterator[TableResult]:
    from tests.eval.edits.test_people_score import BY_HAND, make_pairs, write
    from tests.eval.edits.test_stress import random_tables
    from uncanny.eval.edits.people.score import score_people

    annotated, detected = bundled_run("annotate").path, bundled_run("detect").path
    copy = fewer(annotated, folder / "copy")
    runs = {"all_of it": annotated, "fewer & 50%": copy}
    yield uncanny.detect_scores({"a_b": detected, "c": detected}, truth="scenes")
    yield uncanny.detect_scores({"alone": detected})
    yield uncanny.compare(runs, truth="scenes", match_by="chrf", resamples=50)
    yield uncanny.audit({"ours": annotated}, before={"ours": copy}, published=True, resamples=50)
    yield uncanny.semantic.score(runs, truth="scenes", similarity="chrf", resamples=50)
    verdicts = bundled_run("realism").path
    again = shutil.copytree(verdicts, folder / "again")
    yield uncanny.realism.score({"one": verdicts, "an_other": again}, published=True, resamples=50)
    meta, verdicts_of = random_tables(200)
    detectors = {"mine": verdicts_of, "an_other": verdicts_of[:150], "mine@jpeg-85": verdicts_of}
    yield uncanny.edits.stress(detectors, meta=meta, published=True, resamples=50)
    pairs = make_pairs(folder / "set", [[(5, 0, 15, 10)], [(0, 0, 20, 10)], None])
    seen = [
        {"image": f"images/{n}-{side}.png", "score": n / 3}
        for n in range(3)
        for side in ("edited", "original")
    ]
    people = write(folder / "people", BY_HAND, [{"person": "ann", "answers": {"age": "old"}}])
    yield score_people(
        pairs, people, predictions={"mine": seen, "yours": seen[::-1]}, least_answers=1, resamples=50
    )


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("pdflatex") is None and "UNCANNY_LATEX" not in os.environ, reason="needs pdflatex"
)
def test_the_tables_of_every_score_compile(bundled_run: BundledRuns, tmp_path: Path) -> None:
    tables = [each.to_latex() for each in all_scores(bundled_run, tmp_path)]
    # A page cannot hold many floats that wait for it.
    text = "\n".join(table + r"\clearpage" for table in tables)
    (tmp_path / "t.tex").write_text(_DOCUMENT % text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Overfull" not in done.stdout
