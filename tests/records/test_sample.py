"""The file of a sample: written in one step, read as it was written, refused where it is something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from uncanny.errors import RecordError, UsageError
from uncanny.records.sample import SAMPLE, Sample, SampledImage, read_sample, write_sample

DRAWN = Sample(
    design="random",
    seed=0,
    frame=5_000,
    size=2,
    images=(
        SampledImage(image="a.png", sha256="ab" * 32, probability=0.0004),
        SampledImage(image="b.png", probability=0.0004),
    ),
)


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_sample(tmp_path) is None
    assert write_sample(tmp_path, DRAWN) == tmp_path / SAMPLE
    assert read_sample(tmp_path) == DRAWN
    assert [each.name for each in tmp_path.iterdir()] == [SAMPLE]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", None),
        ("{}", "design"),
        ('{"version": 2}', "version"),
        (DRAWN.model_dump_json().replace("0.0004", "0"), "images.0.probability"),
        (DRAWN.model_dump_json().replace("0.0004", "1.5"), "images.0.probability"),
    ],
)
def test_another_file_is_refused_and_the_field_named(tmp_path: Path, text: str, field: str | None) -> None:
    (tmp_path / SAMPLE).write_text(text)
    with pytest.raises(RecordError) as caught:
        read_sample(tmp_path)
    assert caught.value.field == field


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(DRAWN.model_dump_json())
    (tmp_path / SAMPLE).symlink_to("other.json")
    for act in (read_sample, lambda folder: write_sample(folder, DRAWN)):
        with pytest.raises(UsageError):
            act(tmp_path)
