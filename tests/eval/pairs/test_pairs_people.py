"""What MediaPipe returns as regions. Its models are not at hand, so its results are made up here."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import uncanny
from tests.eval.pairs.made_candidates import made, pictures
from uncanny.errors import RunMismatchError, UsageError
from uncanny.eval.common.pixels.crops import crop
from uncanny.eval.pairs.make.outline import region_mask
from uncanny.eval.pairs.make.people import FEET, LIMBS, regions_of

SIZE = (200, 100)
PIXELS = np.zeros((100, 200, 3), dtype=np.uint8)


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
    first, second = (region.hint for region in regions_of("hand", found, SIZE))
    assert (first.name, second.name) == ("the right hand", "the left hand")
    # 100 to 140 across, 20 to 80 down; 15 % of 60 pixels around it.
    assert first.box == (91, 11, 149, 89)
    assert first.points == ((100, 20), (140, 80))


def test_parts_outside_the_image_are_cut_off_or_left_out() -> None:
    over = [Point(0.9, 0.5), Point(1.2, 0.9)]
    beyond = [Point(1.5, 1.5), Point(1.6, 1.7)]
    regions = regions_of("face", Found(face_landmarks=[over, beyond]), SIZE)
    assert [region.hint.box for region in regions] == [(171, 41, 200, 99)]
    assert regions[0].hint.points == ((180, 50),)


def test_limbs_that_are_hidden_are_left_out() -> None:
    points = [Point(0.5, 0.5, 0.1) for _ in range(33)]
    for place, number in enumerate(LIMBS["the left arm"]):
        points[number] = Point(0.2 + 0.1 * place, 0.3, 0.9)
    (region,) = regions_of("limb", Found(pose_landmarks=[points]), SIZE)
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


def test_another_file_of_landmarks_is_refused_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cv2")
    found = Found([[Point(0.3, 0.3), Point(0.6, 0.7)]], [[Side("Left")]])
    finder = SimpleNamespace(detect=lambda _: found)
    vision = SimpleNamespace(
        HandLandmarkerOptions=dict, HandLandmarker=SimpleNamespace(create_from_options=lambda _: finder)
    )
    tasks = SimpleNamespace(vision=vision, BaseOptions=dict)
    mediapipe = SimpleNamespace(Image=dict, ImageFormat=SimpleNamespace(SRGB=1), tasks=tasks)
    monkeypatch.setitem(sys.modules, "mediapipe", mediapipe)
    file = tmp_path / "hands.task"
    file.write_bytes(b"one")
    hands = partial(made, tmp_path / "hands", landmarks=file, regions="hands", attempts=1)
    detail = partial(made, tmp_path / "detail", landmarks=file, regions="detail", attempts=1)
    assert hands().made() == detail().made() == 1
    file.write_bytes(b"another")
    with pytest.raises(RunMismatchError, match="files of `landmarks`"):
        hands()
    assert detail().summary.state == "finished"


def test_feet_are_found_by_heel_and_toes() -> None:
    points = [Point(0.5, 0.5, 0.1) for _ in range(33)]
    for number, (x, y) in zip(FEET["the right foot"], ((0.4, 0.5), (0.4, 0.7), (0.6, 0.7)), strict=True):
        points[number] = Point(x, y, 0.9)
    (region,) = regions_of("foot", Found(pose_landmarks=[points]), SIZE)
    assert region.hint.name == "the right foot"
    assert region.hint.points == ((80, 50), (80, 70), (120, 70))
    assert region.hint.box == (74, 44, 126, 76)
    _, source = region_mask(region, (), PIXELS, None, dilate=0, largest=1)
    assert source == "ellipse"


def test_the_mask_of_a_hand_is_the_hull_of_its_landmarks() -> None:
    points = [Point(0.4, 0.2), Point(0.4, 0.8), Point(0.7, 0.8), Point(0.45, 0.7)]
    (region,) = regions_of("hand", Found([points], [[Side("Left")]]), SIZE)
    mask, source = region_mask(region, (), PIXELS, None, dilate=0, largest=1)
    assert source == "hull"
    assert all(mask[y, x] for x, y in region.hint.points)
    assert crop(mask).box == region.hint.box == (71, 11, 149, 89)
    assert not mask[15, 140]  # opposite of the hypotenuse
    # The triangle has 60 × 60 / 2 pixels, and the margin is of 9 pixels.
    assert 1_800 < mask.sum() < 78 * 78 * 0.75


def test_landmarks_on_a_line_have_an_ellipse() -> None:
    points = [Point(0.4, 0.2), Point(0.4, 0.5), Point(0.4, 0.8)]
    (region,) = regions_of("face", Found(face_landmarks=[points]), SIZE)
    assert region_mask(region, (), PIXELS, None, dilate=0, largest=1)[1] == "ellipse"
