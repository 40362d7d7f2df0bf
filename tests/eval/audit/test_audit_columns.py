"""Audits of images from tables: their columns pair them, and what cannot work is refused before a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.eval.audit.annotation_sets import record, written
from tests.runs.e2e import uncanny_here
from tests.runs.test_table_runs import write
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError

FILES = [scene.image_path for scene in scenes()][:4]


def table(path: Path, **columns: list[Any]) -> Path:
    pictures = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES]
    return write(path, {"image": pictures, **columns})


def own(number: int, record: dict[str, Any]) -> dict[str, Any]:
    """The same record of a picture of its own."""
    return {**record, "sha256": f"{number:064x}"}


def test_a_table_is_audited_by_the_prompts_in_its_column(tmp_path: Path) -> None:
    prompts = ["p1", "p1", "p2", "p3"]
    sources = {name: table(tmp_path / f"{name}.parquet", prompt_id=prompts) for name in ("a", "b")}
    result = uncanny.audit(sources, model="noop", out=tmp_path / "out", pair_by="prompt_id")
    assert [each.prompts for each in result.leaderboard.generators.values()] == [3, 3]


@pytest.mark.parametrize("dry", [False, True])
def test_a_column_that_is_not_there_is_refused_before_anything_is_asked(tmp_path: Path, dry: bool) -> None:
    source = table(tmp_path / "set.parquet", prompt_id=["p1", "p1", None, "p2"])
    command = ("audit", f"a={source}", "--model", "noop", "-o", tmp_path / "out", *(["--dry-run"] * dry))
    done = uncanny_here(*command, "--pair-by", "promt_id")
    assert done.code == 2
    assert "4 images of a" in done.err
    assert "'prompt_id'" in done.err
    done = uncanny_here(*command, "--pair-by", "prompt_id")
    assert done.code == 2
    assert "1 image of a" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("blank", ["", "   ", float("nan")])
def test_a_blank_cell_is_refused_before_anything_is_asked(tmp_path: Path, blank: object) -> None:
    numbers = isinstance(blank, float)
    prompts = [blank, *([1.0, 1.0, 2.0] if numbers else ["p1", "p1", "p2"])]
    source = table(tmp_path / "set.parquet", prompt_id=prompts)
    with pytest.raises(UsageError, match="1 image of a"):
        uncanny.audit({"a": source}, model="noop", out=tmp_path / "out", pair_by="prompt_id")
    assert not (tmp_path / "out").exists()


def test_edits_of_one_original_are_drawn_together_without_being_told(tmp_path: Path) -> None:
    alone = [own(n, record(f"{n}.png", [10 * (n % 3)] * (n % 4))) for n in range(40)]
    five = [{**each, "original": f"{n // 5}.png"} for n, each in enumerate(alone)]
    files = {
        name: written(tmp_path / f"{name}.jsonl", content) for name, content in (("a", alone), ("b", five))
    }
    independent = uncanny.audit({"g": files["a"]})
    assert (independent.pair_by, independent.leaderboard.generators["g"].prompts) == (None, None)
    together = uncanny.audit({"g": files["b"]})
    assert (together.pair_by, together.leaderboard.generators["g"].prompts) == ("original", 8)
    assert "groups of images (by original)" in str(together)
    apart = uncanny.audit({"g": files["b"]}, pair_by="image")
    interval = apart.leaderboard.generators["g"].cap.interval
    assert interval == independent.leaderboard.generators["g"].cap.interval is not None
    # Eight originals are fewer than ten: nothing can be said of how far the figure would vary.
    assert together.leaderboard.generators["g"].cap.interval is None
    by_original = uncanny.audit({"g": files["b"]}, pair_by="original")
    assert by_original.leaderboard.generators["g"].to_json() == together.leaderboard.generators["g"].to_json()


def test_a_pair_may_be_a_number_of_any_length(tmp_path: Path) -> None:
    """As JSON has it, which knows no largest number."""
    lines = [orjson.dumps({**own(n, record(f"{n}.png", [5])), "pair": "N"}) for n in range(3)]
    for digits in (400, 4200):
        number = b"1" + b"0" * digits
        file = tmp_path / f"{digits}.jsonl"
        file.write_bytes(b"".join(line.replace(b'"N"', number) + b"\n" for line in lines))
        result = uncanny.audit({"g": file}, resamples=0)
        assert (result.pair_by, result["g"].prompts) == ("pair", 1)
        compared = uncanny.compare({"a": file, "b": file}, resamples=0)
        groups = compared.to_json()["about"]["intervals"]["groups"]
        assert groups == {"by": "pair", "groups": 1, "images": 3}


def test_generators_share_an_original_that_their_tables_call_by_different_paths(tmp_path: Path) -> None:
    """Twelve originals, each in a folder of its own under the same file name."""
    files = {}
    for name, start in (("a", ""), ("b", "../photos/")):
        edits = [
            {**record(f"{name}{n}.png", [5 * n]), "columns": {"original": f"{start}{n}/original.png"}}
            for n in range(12)
        ]
        files[name] = written(tmp_path / f"{name}.jsonl", edits)
    result = uncanny.audit(files, pair_by="original", resamples=100)
    assert result.leaderboard.differences[0].paired == 12
    assert result.side_by_side is not None
    assert (result.side_by_side.by, result.side_by_side.shared) == ("original", 12)


def test_an_original_among_the_images_is_drawn_with_its_edits(tmp_path: Path) -> None:
    records = [own(n, record(f"{n}.png", [10])) for n in range(12)]
    edits = [
        {**own(100 + n, record(f"{n}-edited.png", [5])), "columns": {"original": f"{n}.png"}}
        for n in range(12)
    ]
    result = uncanny.audit({"g": written(tmp_path / "a.jsonl", [*records, *edits])})
    assert result.leaderboard.generators["g"].prompts == 12
