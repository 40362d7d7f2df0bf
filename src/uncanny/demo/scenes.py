"""The bundled sets: pairs of pictures, one with a deliberate anomaly, and clean ones without a partner.

`scenes` are small pictures; their truth is objects, anomalies and the answers to Q1–Q4. `large-scenes` are
large pictures with a small fault each, and have no questions. Truth files are read once and kept; the
pictures themselves are not opened. examples/scenes makes all of them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from uncanny.demo.sets import LARGE_SCENES, SCENES
from uncanny.schema import Anomaly, ArtifactCategory, Name, Severity, Text
from uncanny.settings import settings

DATA = settings().scenes or Path(str(files("uncanny.demo"))) / "data"
SETS: Final = {SCENES: DATA, LARGE_SCENES: DATA / "large"}
"""Word → the folder of the set."""

Region = Literal["A", "B", "C", "D"]
Answer = Literal["A", "B", "C", "D", "E"]
Pixel = Annotated[int, Field(ge=0)]
# x0, y0, x1, y1 in pixels; x1 and y1 are the first column and row outside.
Box = tuple[Pixel, Pixel, Pixel, Pixel]

Style = Literal["rendered", "drawn", "large"]
_P = TypeVar("_P", bound="Picture")
Role = Literal["anomalous", "clean"]
Split = Literal["art_dg", "art_pg", "ref_real", "ref_pg"]
ArtifactType = Literal["count", "topology", "local_render", "anatomy", "plausibility", "other"]

PARTNER_SPLIT: dict[Split, Split] = {"art_dg": "ref_real", "art_pg": "ref_pg"}


class _Truth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SceneTruthObject(_Truth):
    """An object or person in the picture; `box` encloses what is visible of it."""

    name: Name
    description: Text
    box: Box


class AnomalyTruth(_Truth):
    """A deliberate anomaly. `severity` runs from 0, completely unreal, to 100, fully realistic.

    `kind` is `attribute` when one object is wrong in itself and `relation` when it is wrong with respect to
    others, `category` what it is among the artifacts of X-AIGD: none is one of textures, edges or colour.
    Where something is missing, the mask is where it ought to be.
    """

    name: Name
    phenomenon: Text
    reasoning: Text
    severity: Severity
    objects: tuple[Name, ...] = Field(min_length=1)
    box: Box
    mask: str
    kind: Literal["attribute", "relation"]
    category: ArtifactCategory

    @property
    def mask_path(self) -> Path:
        """The 1-bit PNG of the picture's size; white is the anomaly."""
        return DATA / self.mask

    def quadruple(self) -> Anomaly:
        """The record an annotation of this picture ought to hold."""
        return Anomaly(
            name=self.name,
            phenomenon=self.phenomenon,
            reasoning=self.reasoning,
            severity=self.severity,
            objects=self.objects,
        )


class Presence(_Truth):
    """Q1: is anything wrong? Datasets do not ask this of `ref_pg`; the answer is given all the same."""

    answer: Literal["yes", "no"]


class TextChoice(_Truth):
    """Q2 or Q4: four texts and the right letter; E means that none of them holds."""

    options: dict[Region, Text] = Field(min_length=4)
    answer: Answer


class BoxChoice(_Truth):
    """Q3: four boxes and the right letter; E means that none of them holds."""

    boxes: dict[Region, Box] = Field(min_length=4)
    answer: Answer


class McqTruth(_Truth):
    """Answers to the four questions. A letter is the same candidate region in q2, q3 and q4."""

    q1: Presence
    q2: TextChoice
    q3: BoxChoice
    q4: TextChoice


class Picture(_Truth):
    """One bundled picture. Both pictures of a pair have the same `pair_id`.

    `pair_id` is None for a clean picture without a partner, one that looks odd and is possible.
    """

    id: str
    image: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    style: Style
    pair_id: str | None
    role: Role
    artifact_type: ArtifactType | None
    objects: tuple[SceneTruthObject, ...]
    anomalies: tuple[AnomalyTruth, ...]

    @property
    def image_path(self) -> Path:
        """The picture's file, in the format its suffix says."""
        return DATA / self.image

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        known = {entry.name for entry in self.objects}
        unknown = [name for anomaly in self.anomalies for name in anomaly.objects if name not in known]
        if unknown:
            raise ValueError(f"{self.id}: anomalies name unknown objects {unknown}")
        if self.role == "anomalous" and self.pair_id is None:
            raise ValueError(f"{self.id}: a picture with an anomaly needs a partner")
        if (self.role == "anomalous") != bool(self.anomalies):
            raise ValueError(f"{self.id}: role {self.role} with {len(self.anomalies)} anomalies")
        return self


class Scene(Picture):
    """A picture of `scenes`, with its questions. Both pictures of a pair have the same options."""

    split: Split
    mcq: McqTruth

    @model_validator(mode="after")
    def _letters_fit(self) -> Self:
        letters = {self.mcq.q2.answer, self.mcq.q3.answer, self.mcq.q4.answer}
        if len(letters) != 1 or (letters == {"E"}) != (self.role == "clean"):
            raise ValueError(f"{self.id}: letters {sorted(letters)} do not fit role {self.role}")
        return self


@cache
def scenes() -> tuple[Scene, ...]:
    """The pictures of the set `scenes`, sorted by id. Never empty."""
    return _read(Scene, SCENES)


@cache
def large_scenes() -> tuple[Picture, ...]:
    """The pictures of the set `large-scenes`, sorted by id. Never empty."""
    return _read(Picture, LARGE_SCENES)


def _read(kind: type[_P], name: str) -> tuple[_P, ...]:
    truths = (kind.model_validate_json(path.read_bytes()) for path in (SETS[name] / "truth").glob("*.json"))
    return tuple(sorted(truths, key=lambda picture: picture.id))


def bundled_set(source: object) -> str | None:
    """The word for a bundled set, where `source` is one and no file is called so; None for anything else."""
    name = str(source)
    return name if name in SETS and not Path(name).exists() else None


def bundled_folder(source: object) -> Path | None:
    """Where the files of a bundled set are, where `source` is the word for one; None for anything else."""
    name = bundled_set(source)
    return None if name is None else SETS[name]


def pictures(name: str = SCENES) -> tuple[Picture, ...]:
    """The pictures of a set by its word, one of `SETS`."""
    return large_scenes() if name == LARGE_SCENES else scenes()


def scene_images(style: str = SCENES) -> tuple[Path, ...]:
    """The pictures of a set, or those of one style of `scenes`."""
    return tuple(each.image_path for each in pictures(style) if style in (*SETS, each.style))


def scene_files(style: str = SCENES) -> tuple[Path, ...]:
    """What a copy of the set is made of: the pictures, and the metadata file that says which make a pair."""
    folder = SETS.get(style, DATA) / "images"
    return (*scene_images(style), folder / "metadata.jsonl")


@cache
def _by_sha256() -> dict[str, Picture]:
    return {picture.sha256: picture for name in SETS for picture in pictures(name)}


def scene_by_sha256(digest: str) -> Picture | None:
    """The bundled picture whose file has this SHA-256 (hexadecimal, any case); None for any other image."""
    return _by_sha256().get(digest.lower())
