"""What is kept of a generator's annotations while they are read: counts, sums, and the worst few images.

A hundred thousand records are read as a stream; memory grows by a few numbers and a key an image, and a
number an anomaly.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeAlias

from uncanny.eval.audit.parameters import MOST_WORST
from uncanny.eval.common.alike import Origin
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.groups import IMAGE, STEM, group_of
from uncanny.eval.common.inputs.sources import LeftOut, left_out_by
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.metrics.audit import VISIBLE_BELOW
from uncanny.schema import KINDS, Annotation, Anomaly, Kind, names_nothing

SEVERITIES = 101
MOST_NAMES = 20

# What an image shows, a bit each: a visible fault, an anomaly of each kind, one without a kind.
VISIBLE_BIT: Final = 0
KIND_BITS: Final[Mapping[Kind | None, int]] = {kind: 1 + place for place, kind in enumerate((*KINDS, None))}

# What is wrong and what it is called, without regard to upper and lower case and spaces.
NameKey: TypeAlias = tuple[Kind | None, str]


@dataclass(frozen=True, slots=True)
class NameCount:
    """An anomaly name as most often written; upper and lower case and spaces make no difference.

    `anomalies` bear it, in `images` images; `u_mean` is their mean implausibility, 0–1.
    """

    name: str
    anomalies: int
    images: int
    u_mean: float


@dataclass(frozen=True, slots=True)
class AuditedImage:
    """An image as the page shows it, with its summed implausibility `u`.

    `image` is the name in the record, `path` where the file ought to be: it may be missing. `sha256` is what
    it must have to be shown: "" where it may not, None where that is not known. `anomalies` has
    the most severe first. `prompt` is the key of the column it is paired by, None where none was asked for.
    """

    image: str
    path: Path
    sha256: str | None
    width: int | None
    height: int | None
    u: float
    anomalies: tuple[Anomaly, ...]
    prompt: str | None = None


@dataclass(slots=True)
class Aggregate:
    """One generator's records, added one by one.

    `locate` says where a record's image file is. `pairing` says what records are resampled with, and which
    stand in one row. `from_run` says that these are a run's records, whose images have a digest.
    `counts` and `severity_sums` have an entry an image: its anomalies, and the sum of their severities.
    `marks` has an entry an image too, with the bits of what it shows; `name_numbers` has one an anomaly,
    image by image: the place of its name in `name_keys`.
    `without_objects` of the images name neither an object nor an anomaly. `sure` leaves out
    findings that the model is not sure enough of. `row_keys` has a digest an image of
    what it shares with those of other generators, `places` where its record is: its line, or its number from
    0 of records in memory. `pictures` has a number an image whose content is known, the same for equal ones;
    `unknown` has one of the name of each other image.
    """

    locate: Callable[[str], Path]
    pairing: Pairing = field(default_factory=lambda: Pairing())
    most_worst: int = MOST_WORST
    from_run: bool = False
    sure: Sure = field(default_factory=Sure)
    counts: array[int] = field(default_factory=lambda: array("q"))
    severity_sums: array[int] = field(default_factory=lambda: array("q"))
    marks: array[int] = field(default_factory=lambda: array("h"))
    name_numbers: array[int] = field(default_factory=lambda: array("i"))
    prompt_keys: list[str] = field(default_factory=list)
    row_keys: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))
    pictures: array[int] = field(default_factory=lambda: array("q"))
    unknown: array[int] = field(default_factory=lambda: array("q"))
    severities: list[int] = field(default_factory=lambda: [0] * SEVERITIES)
    origin: Origin = field(default_factory=Origin)
    without_objects: int = 0
    _left_out: Counter[str] = field(default_factory=Counter)
    _names: dict[NameKey, _Name] = field(default_factory=dict)
    _worst: list[tuple[int, str, Annotation]] = field(default_factory=list)

    def add(self, record: Annotation, place: int = 0) -> None:
        """Count one record: in scores are those with status `ok`, and a verdict where one was asked for.

        Raises ValueError for a record without what it is paired by.
        """
        if (why := left_out_by(record)) is not None:
            self._left_out[why] += 1
            return
        self.without_objects += names_nothing(record)
        record = self.sure.record(record)
        severity_sum = sum(anomaly.severity for anomaly in record.anomalies)
        self.counts.append(len(record.anomalies))
        self.severity_sums.append(severity_sum)
        self.marks.append(_marks(record))
        if self.pairing.prompt_of is not None:
            self.prompt_keys.append(self.pairing.prompt_of(record))
        self.row_keys.append(_digest(self.pairing.row_of(record)))
        self.places.append(place)
        if record.sha256:
            self.pictures.append(_digest(record.sha256))
        else:
            self.unknown.append(_digest(record.image))
        self.origin.add(record)
        if record.anomalies:
            self._add_anomalies(record, 100 * len(record.anomalies) - severity_sum)

    @property
    def images(self) -> int:
        """Those in scores."""
        return len(self.counts)

    @property
    def prompts(self) -> int | None:
        """How many distinct keys of resampling there are; None where each image is drawn by itself."""
        return None if self.pairing.prompt_of is None else len(set(self.prompt_keys))

    @property
    def drawn_from(self) -> int:
        """What resamples are drawn from: prompts, or images where nothing is paired."""
        return self.images if self.prompts is None else self.prompts

    @property
    def digest(self) -> str:
        """Of the images that count, by their content where it is known, else by their names."""
        return digest_of([*self.pictures, *self.unknown])

    @property
    def records(self) -> int:
        return self.images + self.left_out.total

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(**self._left_out)

    @property
    def names(self) -> tuple[NameCount, ...]:
        """The most frequent names, most anomalies first; of several kinds one name is one."""
        names: dict[str, _Name] = {}
        for (_, folded), name in self._names.items():
            names[folded] = name.joined(names[folded]) if folded in names else name
        ranked = sorted(names.items(), key=lambda item: (-item[1].anomalies, item[0]))
        return tuple(name.counted() for _, name in ranked[:MOST_NAMES])

    @property
    def name_keys(self) -> dict[NameKey, NameCount]:
        """All names by kind, in the order of their numbers."""
        return {key: name.counted() for key, name in self._names.items()}

    @property
    def records_kinds(self) -> bool:
        """False where there are anomalies and not one names its kind, as with `--schedule paper`."""
        return not self._names or any(kind is not None for kind, _ in self._names)

    @property
    def worst(self) -> tuple[AuditedImage, ...]:
        """The images with the highest summed implausibility, worst first; never one without anomalies."""
        return tuple(self.image(record) for *_, record in self._ranked())

    def _ranked(self) -> list[tuple[int, str, Annotation]]:
        """The worst candidates; of equal ones a later name in the alphabet is less bad."""
        return sorted(self._worst, key=lambda each: each[:2])[: self.most_worst]

    def _add_anomalies(self, record: Annotation, unreal: int) -> None:
        seen = set()
        for anomaly in record.anomalies:
            self.severities[anomaly.severity] += 1
            folded = " ".join(anomaly.name.casefold().split())
            key = (anomaly.kind, folded)
            name = self._names.get(key)
            if name is None:
                name = self._names[key] = _Name(len(self._names))
            self.name_numbers.append(name.number)
            # An image counts once a name, whatever kinds it is said to be of.
            name.add(anomaly.name, anomaly.severity, first_in_image=folded not in seen)
            seen.add(folded)
        self._worst.append((-unreal, record.image, record))
        if len(self._worst) > 4 * self.most_worst:
            self._worst = self._ranked()

    def image(self, record: Annotation) -> AuditedImage:
        return AuditedImage(
            image=record.image,
            path=self.locate(record.image),
            sha256=record.sha256 or ("" if self.from_run else None),
            width=record.width,
            height=record.height,
            u=sum(100 - anomaly.severity for anomaly in record.anomalies) / 100,
            anomalies=tuple(sorted(record.anomalies, key=lambda anomaly: anomaly.severity)),
            prompt=self.pairing.row_of(record) if self.pairing.asked else None,
        )


@dataclass(slots=True)
class _Name:
    """An anomaly name and its ways of being written; most have one only, and there may be a million names."""

    number: int
    anomalies: int = 0
    images: int = 0
    severity_sum: int = 0
    spelling: str = ""
    spellings: Counter[str] | None = None

    def add(self, spelling: str, severity: int, *, first_in_image: bool) -> None:
        self.anomalies += 1
        self.images += first_in_image
        self.severity_sum += severity
        if not self.spelling:
            self.spelling = spelling
        elif self.spellings is not None or spelling != self.spelling:
            if self.spellings is None:
                self.spellings = Counter({self.spelling: self.anomalies - 1})
            self.spellings[spelling] += 1

    def joined(self, other: _Name) -> _Name:
        """Both together, under the number of this one."""
        spellings = Counter[str]()
        for each in (self, other):
            spellings.update(each.spellings or {each.spelling: each.anomalies})
        return _Name(
            self.number,
            self.anomalies + other.anomalies,
            self.images + other.images,
            self.severity_sum + other.severity_sum,
            self.spelling,
            spellings,
        )

    def counted(self) -> NameCount:
        spelling = self.spelling
        if self.spellings is not None:
            spelling = min(self.spellings.items(), key=lambda item: (-item[1], item[0]))[0]
        u_mean = 1 - self.severity_sum / self.anomalies / 100
        return NameCount(spelling, self.anomalies, self.images, u_mean)


@dataclass(frozen=True, slots=True)
class Pairing:
    """What images of one prompt share, so that they are resampled together: `by` a column, or `stem`.

    `prompt_of` gives a record's prompt and raises ValueError for a record without one. Both are None where
    each image is drawn by itself. `asked` says that the user named the column. Only then does it also decide
    which images of two generators or releases are compared: groups that the records happen to know must not
    separate images that share a file name.
    """

    by: str | None = None
    prompt_of: Callable[[Annotation], str] | None = None
    asked: bool = False

    @classmethod
    def named(cls, by: str) -> Pairing:
        """By the column of that name, or by `stem`; the word `image` pairs nothing."""
        return cls() if by == IMAGE else cls(by, lambda record: _prompt(record, by), asked=True)

    @property
    def rows_by(self) -> str:
        """By what images stand in one row: the column that was asked for, else `stem`."""
        return self.by if self.asked and self.by is not None else STEM

    def row_of(self, record: Annotation) -> str:
        """The key of a record's row. Raises ValueError for a record without one."""
        return self.prompt_of(record) if self.asked and self.prompt_of else _prompt(record, STEM)


def _prompt(record: Annotation, by: str) -> str:
    prompt = group_of(record, by)
    if prompt is None:
        raise ValueError("is missing, or is neither text nor a number")
    return prompt


def _marks(record: Annotation) -> int:
    bits = 0
    for anomaly in record.anomalies:
        bits |= 1 << KIND_BITS[anomaly.kind]
        bits |= (anomaly.severity < VISIBLE_BELOW) << VISIBLE_BIT
    return bits


def _digest(key: str) -> int:
    # The same in every process, unlike `hash`; 64 bits are enough for millions of images.
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), signed=True)
