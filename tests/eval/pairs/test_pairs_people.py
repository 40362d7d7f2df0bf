"""What MediaPipe returns as regions. Its models are not at hand, so its results are made up here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import uncanny
from tests.eval.pairs.made_candidates import pictures
from uncanny.errors import UsageError
from uncanny.eval.pairs.make.people import LIMBS, regions_of

SIZE = (200, 100)


@dataclass
class Point:
    """As `NormalizedLandmark`."""

    x: float
    y: float
    visibility: float | None = None


@dataclass
class Side:
    """As `Category`."""

    category_name: str


@dataclass
class Found:
    """As the results of the three finders."""

    hand_landmarks: list[list[Point]] = field(default_factory=list)
    handedness: list[list[Side]] = field(default_factory=list)
    face_landmarks: list[list[Point]] = field(default_factory=list)
    pose_landmarks: list[list[Point]] = field(default_factory=list)


def test_hands_are_named_and_the_largest_comes_first() -> None:
    small = [Point(0.1, 0.1), Point(0.15, 0.2)]
    large = [Point(0.5, 0.2), Point(0.7, 0.8)]
    found = Found([small, large], [[Side("Left")], [Side("Right")]])
    first, second = (region.hint for region in regions_of("hand", found, SIZE, 5))
    assert (first.name, second.name) == ("the right hand", "the left hand")
    # 100 to 140 across, 20 to 80 down; 15 % of 60 pixels around it.
    assert first.box == (91, 11, 149, 89)
    assert first.points == ((100, 20), (140, 80))
    assert len(regions_of("hand", found, SIZE, 1)) == 1


def test_parts_outside_the_image_are_cut_off_or_left_out() -> None:
    over = [Point(0.9, 0.5), Point(1.2, 0.9)]
    beyond = [Point(1.5, 1.5), Point(1.6, 1.7)]
    regions = regions_of("face", Found(face_landmarks=[over, beyond]), SIZE, 5)
    assert [region.hint.box for region in regions] == [(171, 41, 200, 99)]
    assert regions[0].hint.points == ((180, 50),)


def test_limbs_that_are_hidden_are_left_out() -> None:
    points = [Point(0.5, 0.5, 0.1) for _ in range(33)]
    for place, number in enumerate(LIMBS["the left arm"]):
        points[number] = Point(0.2 + 0.1 * place, 0.3, 0.9)
    (region,) = regions_of("limb", Found(pose_landmarks=[points]), SIZE, 5)
    assert region.hint.name == "the left arm"
    assert region.hint.points == ((40, 30), (60, 30), (80, 30))


def test_without_mediapipe_the_extra_is_named(tmp_path: Path) -> None:
    try:
        import mediapipe  # noqa: F401
    except ImportError:
        images = pictures(tmp_path / "pictures")
        (tmp_path / "hands.task").write_bytes(b"")
        with pytest.raises(UsageError, match="needs mediapipe"):
            uncanny.pairs.make(
                images,
                inpainter="demo",
                out=tmp_path / "pairs",
                regions="hands",
                landmarks=tmp_path / "hands.task",
            )
