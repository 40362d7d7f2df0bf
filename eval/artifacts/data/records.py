"""The record of an image with its artifacts, truth and prediction alike: `artifacts.jsonl`.

A category is one of the seven of X-AIGD (section 3.2), and None where who made the record knows none, as
heat maps and detectors. Annotations of `uncanny annotate` have kinds of their own: `CATEGORY_OF_KIND` says
which category each is scored as.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from uncanny.answers.artifacts import CATEGORY_SPELLINGS
from uncanny.records.run_folder import Unfinished
from uncanny.schema import (
    ARTIFACT_CATEGORIES,
    ArtifactCategory,
    Kind,
    Number,
    Record,
    Source,
    Status,
    StepError,
    Whole,
)

RECORD_FILE: Final = "artifacts.jsonl"
Level = Literal["low", "high", "cognitive"]
LEVELS: Final[Mapping[ArtifactCategory, Level]] = {
    "textures": "low",
    "edges_shapes": "low",
    "symbols": "low",
    "color": "low",
    "semantics": "high",
    "commonsense": "cognitive",
    "physics": "cognitive",
}
# Nothing that annotation calls by these names is a fault of textures, edges or colour.
CATEGORY_OF_KIND: Final[Mapping[Kind, ArtifactCategory]] = {
    "anatomy": "semantics",
    "count": "semantics",
    "structure": "semantics",
    "text": "symbols",
    "contact": "physics",
    "light": "physics",
    "perspective": "physics",
    "function": "commonsense",
    "logic": "commonsense",
}
# Beyond this a coordinate is no place in any image.
_FARTHEST: Final = 1e6


def read_category(name: str) -> ArtifactCategory | None:
    """The category of this name as it is written here or there (`Edges & Shapes`); None for no category."""
    return CATEGORY_SPELLINGS.get(" ".join(re.findall(r"[a-z]+", name.casefold())))


def _spelt(value: object) -> object:
    return (read_category(value) or value) if isinstance(value, str) else value


def _place(value: float) -> float:
    if not math.isfinite(value) or abs(value) > _FARTHEST:
        raise PydanticCustomError("coordinate", "a coordinate is a number of pixels up to a million")
    return value


def _is_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if not (box[0] < box[2] and box[1] < box[3]):
        raise PydanticCustomError("box", "a box is [x0, y0, x1, y1] with x0 < x1 and y0 < y1")
    return box


def _is_circle(circle: tuple[float, float, float]) -> tuple[float, float, float]:
    if circle[2] < 0:
        raise PydanticCustomError("circle", "a circle is [x, y, radius] with a radius of 0 or more")
    return circle


Category = Annotated[ArtifactCategory, BeforeValidator(_spelt)]
Coordinate = Annotated[Number, AfterValidator(_place)]
Corner = tuple[Coordinate, Coordinate]
Share = Annotated[Number, Field(ge=0, le=1)]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]
Pixels = Annotated[Whole, Field(gt=0, le=1_000_000)]
RegionKind = Literal["polygon", "box", "point", "circle", "line", "mask"]
REGION_KINDS: Final[tuple[RegionKind, ...]] = get_args(RegionKind)


class RunLengths(Record):
    """A mask as COCO writes it: `size` is [height, width], `counts` a list or compressed text."""

    size: tuple[Whole, Whole]
    counts: str | list[Whole]


class Region(Record):
    """One artifact: its category, and where it is, as exactly one of `REGION_KINDS`.

    Coordinates are pixels of the image, x first; what lies outside of it is cut off. `box` is x0, y0, x1, y1
    with x1 and y1 the first column and row outside, `circle` its middle and radius, `line` the points that it
    goes through. `mask` is the path of a PNG or `.npy` of the image's size, or COCO run lengths. Polygons,
    circles and lines are drawn as labelme draws them; with the `rule` "coco", polygons and boxes are drawn as
    pycocotools does. `confidence` is 0–1, in a truth that of its annotators; None where not known.
    """

    category: Category | None = None
    polygon: Annotated[tuple[Corner, ...], Field(min_length=3)] | None = None
    box: Annotated[tuple[Coordinate, Coordinate, Coordinate, Coordinate], AfterValidator(_is_box)] | None = (
        None
    )
    point: Corner | None = None
    circle: Annotated[tuple[Coordinate, Coordinate, Coordinate], AfterValidator(_is_circle)] | None = None
    line: Annotated[tuple[Corner, ...], Field(min_length=2)] | None = None
    rule: Literal["coco"] | None = None
    mask: NonEmpty | RunLengths | None = None
    confidence: Share | None = None
    note: str | None = None

    @property
    def kind(self) -> RegionKind:
        """Which of them it is."""
        return self._given[0]

    @property
    def _given(self) -> list[RegionKind]:
        return [kind for kind in REGION_KINDS if getattr(self, kind) is not None]

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if len(self._given) != 1:
            raise PydanticCustomError(
                "region",
                "a region has one of {kinds}; this one has {has}",
                {"kinds": ", ".join(REGION_KINDS), "has": " and ".join(self._given) or "none"},
            )
        return self


class ArtifactRecord(Record):
    """One image with its artifacts, in a truth or in predictions.

    `source` is what the image is, or is taken for; `score` how likely it is generated, 0–1. `regions` is None
    where nobody looked for artifacts, as in a detector's verdicts, and empty where none were found.
    `generator` is the model that made the image. `unmeasured` are categories that were asked about without an
    answer, `incomplete` those whose answer was not whole, of which `regions` has what was valid: the image is
    in none of the figures of either. Every further key is kept; numbers among them can be binned by. Records
    of a run have its keys besides.
    """

    image: NonEmpty
    sha256: str | None = None
    width: Pixels | None = None
    height: Pixels | None = None
    source: Source | None = None
    score: Share | None = None
    generator: NonEmpty | None = None
    status: Status = "ok"
    regions: tuple[Region, ...] | None = None
    unmeasured: tuple[Category, ...] = ()
    incomplete: tuple[Category, ...] = ()
    errors: tuple[StepError, ...] = ()

    @property
    def lacking(self) -> tuple[ArtifactCategory, ...]:
        """The categories of which not all is known."""
        return tuple(each for each in ARTIFACT_CATEGORIES if each in {*self.unmeasured, *self.incomplete})

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height; None where the record does not say both."""
        return None if self.width is None or self.height is None else (self.width, self.height)


@dataclass(frozen=True, slots=True)
class ArtifactImage:
    """A record and where it comes from: its `line`, None where it has none, and where its paths start.

    `parts` says that a mask is of all artifacts together, so that each connected part is one. `heat` is the
    share of white from which a pixel of a heat map is an artifact, None where masks are masks.
    """

    record: ArtifactRecord
    folder: Path
    line: int | None = None
    parts: bool = False
    heat: float | None = None

    @property
    def image(self) -> str:
        return self.record.image

    @property
    def sha256(self) -> str | None:
        return self.record.sha256

    @property
    def regions(self) -> tuple[Region, ...]:
        return self.record.regions or ()


@dataclass(frozen=True, slots=True, repr=False)
class ArtifactSet:
    """All images of a truth or of predictions.

    `origin` names it, `notes` counts what was read with allowances. `pictures` is where the paths of image
    files start. `unfinished` is what its run has still to do, `texts` the ids of those that models were asked
    with.
    """

    images: tuple[ArtifactImage, ...]
    origin: str
    pictures: Path
    notes: Mapping[str, int]
    unfinished: Unfinished | None = None
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{len(self.images):,} images of {self.origin}>"

    def __len__(self) -> int:
        return len(self.images)

    @property
    def records(self) -> tuple[ArtifactRecord, ...]:
        return tuple(image.record for image in self.images)

    @property
    def has_categories(self) -> bool:
        """Whether regions say a category; True where there are no regions at all."""
        categories = {region.category for image in self.images for region in image.regions}
        return categories != {None}


def numbers_of(record: ArtifactRecord) -> Mapping[str, float]:
    """The further keys of a record that hold a finite number, such as `niqe`."""
    extra: Mapping[str, Any] = record.model_extra or {}
    return {
        name: float(value)
        for name, value in extra.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
