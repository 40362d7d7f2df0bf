"""The records other tools read, as pydantic models: `annotations.jsonl` and its parts.

Unknown keys are kept and written back. A value that was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from uncanny.wording import harmless, layout, percent_right, percent_sure

if TYPE_CHECKING:
    import PIL.Image

    # What stands for a picture: a path, the bytes of a file, or a Pillow image.
    Picture = str | PathLike[str] | bytes | PIL.Image.Image


def _no_text_or_truth(value: object) -> object:
    """JSON has a type for numbers: neither `true` nor `"0.3"` is one."""
    if isinstance(value, bool | str | bytes):
        raise PydanticCustomError("number", "must be a number")
    return value


# Numbers of records: a probability that is written as `true` is a mistake, not 1.
Number = Annotated[float, BeforeValidator(_no_text_or_truth)]
Whole = Annotated[int, BeforeValidator(_no_text_or_truth)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Severity = Annotated[int, Field(ge=0, le=100, strict=True)]
Confidence = Annotated[Number, Field(ge=0, le=1)]


# Columns of tables take no more; no picture comes near it.
MOST_PIXELS_A_SIDE: Final = 2**31 - 1


def _is_box(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    if not (0 <= box[0] < box[2] and 0 <= box[1] < box[3]):
        raise ValueError("a box is [x0, y0, x1, y1] with 0 <= x0 < x1 and 0 <= y0 < y1")
    if max(box) > MOST_PIXELS_A_SIDE:
        raise ValueError("a box has corners that no picture has")
    return box


# x0, y0, x1, y1 in pixels of the image file; x1 and y1 are the first column and row outside.
Box = Annotated[tuple[Whole, Whole, Whole, Whole], AfterValidator(_is_box)]

# What sort of thing is wrong, for audits and comparisons to group by.
Kind = Literal[
    "anatomy", "count", "structure", "text", "contact", "light", "perspective", "function", "logic"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# What sort of artifact a region shows, from its surface to what one has to know (X-AIGD, figure 1).
ArtifactCategory = Literal[
    "textures", "edges_shapes", "symbols", "color", "semantics", "commonsense", "physics"
]
ARTIFACT_CATEGORIES: tuple[ArtifactCategory, ...] = get_args(ArtifactCategory)

# Figures beyond these are no measurements, whoever reports them; their sums stay within 64 bits.
MOST_COUNTED = 10**15
MOST_USD = 1e9


def as_count(value: object, most: int = MOST_COUNTED) -> int | None:
    """`value` as a count; None for what is no whole number from 0 to `most`: nobody measured that."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return None
    return int(value) if value == int(value) else None


def as_dollars(value: object) -> float | None:
    """`value` as an amount; None for what is no number from 0 to `MOST_USD`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_USD:
        return None
    return float(value)


def _up_to(most: float) -> BeforeValidator:
    def within(value: object) -> object:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and not 0 <= value <= most else value  # type: ignore[operator]

    return BeforeValidator(within)


# In files: a number that cannot be true is unmeasured, anything but a number stays an error.
Count = Annotated[int | None, _up_to(MOST_COUNTED)]
Dollars = Annotated[float | None, _up_to(MOST_USD)]

Status = Literal["ok", "partial", "failed", "unreadable"]
STATUSES: tuple[Status, ...] = get_args(Status)
Source = Literal["generated", "real"]


class Record(BaseModel):
    """Base of everything that is written as one JSON line."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


def stand_ins(record: BaseModel, model: str | None) -> tuple[str, ...]:
    """The models that were called for `record` besides its own `model`, by its further key `models`.

    Empty where all calls went to `model`, and where the record does not tell, as those of other tools.
    """
    calls = (record.model_extra or {}).get("models")
    return tuple(name for name in calls if name != model) if model and isinstance(calls, dict) else ()


def columns_of(record: BaseModel) -> Mapping[str, str | int | float | bool]:
    """The columns of the input's table that `record` has in its further key `columns`; empty without."""
    columns = (record.model_extra or {}).get("columns")
    return columns if isinstance(columns, dict) else {}


class Place(NamedTuple):
    """Where the picture of a record may be: a `file`, or the image of a run whose folder is `run`.

    `sha256` and `size` are the record's. Of a finding it is the `number` within its image, from 1.
    """

    image: str
    sha256: str | None
    size: tuple[int, int] | None
    run: Path | None = None
    file: Path | None = None
    number: int | None = None


class Origin:
    """The place of a record's picture. No part of what the record says: records with any origin are equal."""

    __slots__ = ("place",)

    def __init__(self, place: Place | None = None) -> None:
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _memo: object) -> Origin:
        return self


NOWHERE: Final = Origin()


class Pictured(Record):
    """A record that notebooks show with its picture."""

    _origin: Origin = PrivateAttr(default=NOWHERE)

    def picture(self, image: Picture | None = None) -> PIL.Image.Image:
        """The picture with the boxes of findings, numbered as they are in the record; RGB.

        Of an anomaly by itself, the part around its box. Records know where their picture is when they come
        from a run, or from a path; others are told by `image`: a path, the bytes of a file, or a Pillow
        image. A file has to be the one that was annotated. Raises UsageError where there is no such picture.
        """
        picture: PIL.Image.Image = self._shown(image).picture()
        return picture

    def show(self, image: Picture | None = None) -> None:
        """Show the picture and the findings: in a notebook below the cell, elsewhere in a viewer, while the
        findings are printed. `image` is as for `picture`. Raises UsageError as that does."""
        self._shown(image).show()

    def _shown(self, image: Picture | None = None) -> Any:
        import uncanny  # what draws lies in a layer above

        return uncanny.FindingsPicture(self, image)

    def _repr_html_(self) -> str:
        html: str = self._shown()._repr_html_()
        return html

    def _repr_png_(self) -> bytes | None:
        png: bytes | None = self._shown()._repr_png_()
        return png


class Anomaly(Pictured):
    """One verified quadruple (name, phenomenon, reasoning, severity).

    `severity` runs from 0, completely unreal, to 100, fully realistic (AnomReason, section 2). `objects`
    names the objects concerned, by the names in `Annotation.objects`; it may be empty. `box` is where it is,
    `kind` of what sort it is, `found_by` which agents saw it: each None where that is not known.
    `confidence`, from 0 to 1, is how sure the model is that the fault is there and is a fault, however severe
    it would be; None where the model was not asked, and where it gave none. `probability`, from 0 to 1, is
    how likely people accept it, by a calibration; not written where it is None. `severity_rated` is False
    where nobody has said how real it is yet and `severity` is a stand-in; not written otherwise.
    """

    name: Name
    phenomenon: Text
    reasoning: Text
    severity: Severity
    objects: tuple[str, ...] = ()
    box: Box | None = None
    kind: Kind | None = None
    found_by: tuple[str, ...] | None = None
    confidence: Confidence | None = None
    probability: Annotated[Confidence | None, Field(exclude_if=lambda likely: likely is None)] = None
    severity_rated: Annotated[bool, Field(exclude_if=lambda rated: rated)] = True

    @property
    def rated_severity(self) -> int | None:
        """The severity; None where nobody has rated it and `severity` is a stand-in."""
        return self.severity if self.severity_rated else None

    def in_words(self) -> str:
        """In one line: severity, name, phenomenon, and what is known of how likely it is."""
        known = f" ({likely})" if (likely := self.how_likely()) else ""
        severity = self.severity if self.severity_rated else "–"
        return f"{severity:>3}  {self.name}: {self.phenomenon}{known}"

    def how_likely(self) -> str:
        """How sure the model is, and how likely people accept it, in words; empty where neither is known."""
        sure = None if self.confidence is None else percent_sure(self.confidence)
        right = None if self.probability is None else percent_right(self.probability)
        return ", ".join(filter(None, (sure, right)))


Sort = Literal["thing", "group", "person", "hand", "face", "writing", "reflection", "shadow"]


class SceneObject(Record):
    """An object, person or body part that the perceiver found. `box` is where it is, None where not known.

    `sort` is what it is, left out where the perceiver was not asked for it.
    """

    name: Name
    description: str
    box: Box | None = None
    sort: Annotated[Sort | None, Field(exclude_if=lambda sort: sort is None)] = None


class StepError(Record):
    """Why one step of one image failed.

    `object` is None for steps about the whole image, and for a question about several objects: their names
    are the further key `objects` then.
    """

    agent: str
    step: int
    object: str | None = None
    kind: str
    message: str


Fate = Literal["kept", "corrected", "merged", "dropped", "unchecked", "left_out"]


class Candidate(Record):
    """One thing that an agent found wrong, as it said it, and what became of it.

    `number` counts from 1 within the image. `fate`: `kept` or `corrected` by the integrator, `merged` into an
    earlier one of the same fault, `dropped`, or `unchecked` where the integrator said nothing of it: it goes
    on as it stands; `left_out` where there were more than it is asked about. `why` is the integrator's
    reason, None where it gave none. `anomaly` is the place, from 0, among the record's anomalies; None where
    it was dropped or left out, and where no final text came of it, which is an error of the record then.

    `confidence`, from 0 to 1, is how sure the model is of it in the end, `first_confidence` how sure it was
    on the whole picture before the closer look; each None where it was not asked, and where it gave none.
    `region` is the number, from 1, of the region in the record's `regions` that was looked at again.
    """

    number: int
    found_by: str
    objects: tuple[str, ...] = ()
    phenomenon: Text
    reasoning: Text
    box: Box | None = None
    fate: Fate
    why: str | None = None
    anomaly: int | None = None
    confidence: Confidence | None = None
    first_confidence: Confidence | None = None
    region: Annotated[Whole, Field(ge=1)] | None = None


class Region(Record):
    """A part of the image that the model saw enlarged.

    `number` counts from 1 within the image. `box` is the part. `why` tells what it was chosen for: a
    `finding`, an `object`, or as a `tile` of the whole image; `objects` names the objects in it. `scale` is
    how many times larger the model sees it than in the whole image, None where that is not known.
    """

    number: Annotated[Whole, Field(ge=1)]
    box: Box
    why: Literal["finding", "object", "tile"]
    objects: tuple[str, ...] = ()
    scale: Annotated[Number, Field(gt=0)] | None = None


class Usage(Record):
    """What answers cost. `input_tokens` includes `cached_tokens`.

    A figure is None where a provider did not report it, or nothing that can be true; `cost_usd` is None when
    no price is known.
    """

    calls: Annotated[int, Field(ge=0, le=MOST_COUNTED)] = 0
    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Dollars = None


class SentPixels(Record):
    """An image as models saw it, where that is not the file itself."""

    sha256: str
    media_type: str
    width: int
    height: int
    bytes: int


class Pixels(Record):
    """What the file was and what was done to it: no `changes` and no `sent` mean byte for byte."""

    format: str
    bytes: int
    changes: tuple[str, ...] = ()
    sent: SentPixels | None = None


class Annotation(Pictured):
    """One image's record in `annotations.jsonl`.

    `width`, `height`, `sha256` and `pixels` are None only where the file could not be read. `errors` is empty
    exactly when `status` is `ok`. Further keys, where they apply: `schedule`, where it is not the paper's;
    `candidates`, all that was found with what became of it; `regions`, the parts seen enlarged, each a
    `Region`; `boxes`, how many models gave, and how many of them could be none; `cut_objects`, found but
    above the limit; `left_out`, how many entries of answers were beyond what is read, by what they are;
    `models`, calls by model where a fallback took part; `row` and `columns`, the number of the image's row in
    its table, from 0, and the values of its other columns or of a metadata file; `duplicate_of`, the image
    with the same bytes that was asked about instead. `file_stamp` is made of size, times and inode of the
    file as it was read: where they are still the same nothing was changed; None where only the digest tells.
    """

    image: str
    sha256: str | None
    width: Annotated[Whole, Field(le=MOST_PIXELS_A_SIDE)] | None
    height: Annotated[Whole, Field(le=MOST_PIXELS_A_SIDE)] | None
    status: Status
    anomalies: tuple[Anomaly, ...] = ()
    objects: tuple[SceneObject, ...] = ()
    errors: tuple[StepError, ...] = ()
    model: str
    prompts: str
    usage: Usage = Usage()
    pixels: Pixels | None = None
    file_stamp: str | None = None

    def set_place(self, *, run: Path | None = None, file: Path | None = None) -> None:
        """Say where the picture is: in a `run`, or a `file`. No part of the record, and not written."""
        size = (self.width, self.height) if self.width and self.height else None
        place = Place(self.image, self.sha256, size, run, file)
        self._origin = Origin(place)
        for number, anomaly in enumerate(self.anomalies, 1):
            anomaly._origin = Origin(place._replace(number=number))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._headline()}>"

    def __str__(self) -> str:
        """A line an anomaly, with its severity and confidence, and a line an error."""
        anomalies = (f"  {each.in_words()}" for each in self.anomalies)
        return layout([self._headline(), *anomalies, *(f"  {each.message}" for each in self.errors)])

    def _headline(self) -> str:
        number = len(self.anomalies)
        return harmless(f"{self.image}: {self.status}, {number} {'anomaly' if number == 1 else 'anomalies'}")


def names_nothing(record: Annotation) -> bool:
    """Whether an `ok` record has neither objects nor anomalies: there was nothing to examine in the image.

    False for those of detection, of tools that list no objects, and where enlarged parts were looked at.
    """
    if record.status != "ok" or record.objects or record.anomalies:
        return False
    # A detection may have been read as an annotation, and a single call lists no objects.
    more = record.model_extra or {}
    lists_none = isinstance(record, Detection) or "source" in more or more.get("schedule") == "single"
    return "objects" in record.model_fields_set and not lists_none and not more.get("regions")


class Detection(Annotation):
    """One image's record in `annotations.jsonl` of a detection run.

    `source` is what the model takes the image for; None where its answer says neither clearly, and where
    there is none. `verdict` is that answer as it came, None only where the call failed; a refusal counts as
    an answer and sets `refused`. `listing` is the second answer as it came, after "generated", and
    `description` the one after "real". Without `source` nothing further is asked and `anomalies` is empty;
    for an image taken for real it is empty too.
    """

    source: Source | None = None
    verdict: str | None = None
    refused: bool = False
    listing: str | None = None
    description: str | None = None
