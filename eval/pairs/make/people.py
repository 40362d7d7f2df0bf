"""Hands, feet, faces and limbs as regions, by MediaPipe with a model file of the user's.

MediaPipe's package has no models: one downloads `hand_landmarker.task`, `face_landmarker.task` or
`pose_landmarker_full.task`, for feet and limbs, from Google's page of models. Source: SalArt-VQA, appendix
B.3, stage 1. Limbs are ours. The paper may also give SAM 2 points that do not belong to a part; here it gets
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.pairs.data import Hint
from uncanny.eval.pairs.make.regions import Part, Region
from uncanny.extras import optional
from uncanny.schema import Box

# Of one image, so many people.
_MOST: Final = 20
# Landmarks end at knuckles and outlines; the part reaches further, by this share of the longer side.
MARGIN: Final = 0.15
# MediaPipe's numbers of a pose's landmarks: ankle, heel and toes of a foot, joints of a limb.
FEET: Final[Mapping[str, tuple[int, ...]]] = {
    "the left foot": (27, 29, 31),
    "the right foot": (28, 30, 32),
}
LIMBS: Final[Mapping[str, tuple[int, ...]]] = {
    "the left arm": (11, 13, 15),
    "the right arm": (12, 14, 16),
    "the left leg": (23, 25, 27),
    "the right leg": (24, 26, 28),
}
_SURE: Final = 0.5
_OPTIONS: Final[Mapping[Part, tuple[str, str]]] = {
    "hand": ("HandLandmarker", "num_hands"),
    "face": ("FaceLandmarker", "num_faces"),
    "foot": ("PoseLandmarker", "num_poses"),
    "limb": ("PoseLandmarker", "num_poses"),
}


class Landmark(NamedTuple):
    """A point as a share of the image's width and height, 0-1 within it, and how visible it is, 0-1."""

    x: float
    y: float
    visibility: float = 1.0


class PeopleFinder:
    """Finds one part of people. A finder is for one thread at a time."""

    def __init__(self, part: Part, file: Path) -> None:
        """Raises UsageError without MediaPipe, and for a file that it cannot load."""
        mediapipe = optional("mediapipe", "mediapipe", f"Finding {part}s")
        self._part: Part = part
        self._image = mediapipe.Image
        self._format = mediapipe.ImageFormat.SRGB
        name, most = _OPTIONS[part]
        vision, base = mediapipe.tasks.vision, mediapipe.tasks.BaseOptions
        try:
            options = getattr(vision, f"{name}Options")(
                base_options=base(model_asset_path=str(file)), **{most: _MOST}
            )
            self._finder = getattr(vision, name).create_from_options(options)
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(
                f"MediaPipe cannot load {file} to find {part}s: {error}",
                remedy=f"Download the {name} model, a .task file, from MediaPipe's page of models.",
            ) from error

    def regions(self, pixels: NDArray[np.uint8]) -> list[Region]:
        """The regions in RGB pixels of shape (height, width, 3), the largest first."""
        height, width = pixels.shape[:2]
        data = np.ascontiguousarray(pixels)
        found = self._finder.detect(self._image(image_format=self._format, data=data))
        return regions_of(self._part, found, (width, height))


def regions_of(part: Part, found: Any, size: tuple[int, int]) -> list[Region]:
    """The regions in what MediaPipe returns for one image, the largest first; points are those within it."""
    finders: Mapping[Part, Callable[[Any], Iterator[tuple[str, Sequence[Landmark]]]]] = {
        "hand": _hands,
        "foot": partial(_of_pose, FEET),
        "face": _faces,
        "limb": partial(_of_pose, LIMBS),
    }
    named = finders[part](found)
    hints = [hint for name, points in named if (hint := _hint(part, name, points, size)) is not None]
    hints.sort(key=lambda each: -(each.box[2] - each.box[0]) * (each.box[3] - each.box[1]))
    return [Region(hint) for hint in hints]


def _hands(found: Any) -> Iterator[tuple[str, Sequence[Landmark]]]:
    for points, sides in zip(found.hand_landmarks, found.handedness, strict=True):
        # The person's own, from version 1.2 on.
        side = str(sides[0].category_name).lower() if sides else ""
        yield f"the {side} hand" if side in ("left", "right") else "the hand", _landmarks(points)


def _faces(found: Any) -> Iterator[tuple[str, Sequence[Landmark]]]:
    for points in found.face_landmarks:
        yield "the face", _landmarks(points)


def _of_pose(parts: Mapping[str, tuple[int, ...]], found: Any) -> Iterator[tuple[str, Sequence[Landmark]]]:
    for points in found.pose_landmarks:
        landmarks = _landmarks(points)
        for name, places in parts.items():
            part = [landmarks[each] for each in places]
            if all(each.visibility >= _SURE for each in part):
                yield name, part


def _landmarks(points: Sequence[Any]) -> list[Landmark]:
    return [
        Landmark(float(each.x), float(each.y), 1.0 if each.visibility is None else float(each.visibility))
        for each in points
    ]


def _hint(part: Part, name: str, landmarks: Sequence[Landmark], size: tuple[int, int]) -> Hint | None:
    """None where too little of it is within the image."""
    places = np.array([(each.x * size[0], each.y * size[1]) for each in landmarks])
    low, high = places.min(axis=0), places.max(axis=0)
    margin = MARGIN * float((high - low).max())
    x0, y0 = np.maximum(np.floor(low - margin), 0).astype(int).tolist()
    x1, y1 = np.minimum(np.ceil(high + margin), size).astype(int).tolist()
    if x1 - x0 < 2 or y1 - y0 < 2:
        return None
    inside = [(int(x), int(y)) for x, y in places if x0 <= x < x1 and y0 <= y < y1]
    points = cast("tuple[tuple[int, int], ...]", tuple(dict.fromkeys(inside)))
    box: Box = (x0, y0, x1, y1)
    return Hint(source=part, name=name, box=box, points=points)
