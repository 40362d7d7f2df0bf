"""What the semantic score reads of one image, whatever the file it comes from.

Which image of the predictions is which of the truth, where two files name the same images differently."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import orjson

from uncanny.errors import UsageError
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Source, Status


@dataclass(frozen=True, slots=True)
class ScoredAnomaly:
    """One anomaly, predicted or true. A blank text is similar to nothing.

    `severity` runs from 0, completely unreal, to 100, fully realistic; None where it is not known.
    """

    name: str
    phenomenon: str
    reasoning: str
    severity: int | None = None


@dataclass(frozen=True, slots=True)
class ScoredImage:
    """One image of a file. Only `status` `ok` is scored: what failed is no empty prediction.

    `source` is None where there is no clear answer; `has_source` says whether the record speaks of it at all.
    `line` counts from 1 and is None where the record has no line of its own.
    """

    image: str
    anomalies: tuple[ScoredAnomaly, ...]
    source: Source | None = None
    has_source: bool = False
    sha256: str | None = None
    status: Status = "ok"
    line: int | None = None


@dataclass(frozen=True, slots=True)
class AnomalyFile:
    """All images of a file, in its order; names are unique.

    Counts of what was read with allowances: `blank_texts`, phenomena and reasonings without a word;
    `unread_severities`, words that say no severity, which then is unknown; `unread_answers`, plain text that
    is no list of anomalies and stands as one prediction that matches nothing. `unfinished`: what a run that
    the file is of has still to do.
    """

    path: Path
    images: tuple[ScoredImage, ...]
    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: tuple[str, ...] = ()
    unfinished: Unfinished | None = None

    @property
    def has_source(self) -> bool:
        """Whether any image says, or says that it does not know, if it is generated or real."""
        return any(image.has_source for image in self.images)


def digest(images: Iterable[ScoredImage]) -> str:
    """SHA-256, in hexadecimal, of all that scores depend on in a truth; not of the order of its images."""
    lines = sorted(
        orjson.dumps(
            [
                image.image,
                image.source,
                image.status,
                [[anomaly.phenomenon, anomaly.reasoning] for anomaly in image.anomalies],
            ]
        )
        for image in images
    )
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


Rule = Literal["name", "sha256", "path", "stem", "file"]
Parts = tuple[str, ...]

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Pairing:
    """For each image of the truth its place in the predictions, None where they do not have it.

    `surplus` are the images that only the predictions have, in their order. `by` counts which rule found
    how many pairs.
    """

    predicted: tuple[int | None, ...]
    surplus: tuple[int, ...]
    by: Counter[Rule]


def pair_images(predictions: AnomalyFile, truth: AnomalyFile) -> Pairing:
    """Pair one to one, by the first rule that applies.

    1. `name`: the same name, letter by letter.
    2. `sha256`: the same bytes, where both files say so and just one image on each side has them.
    3. `path`: one name is the end of the other, in whole steps of the path: `../photos/cat.png` and
       `cat.png`. Leading `..` do not count.
    4. `stem`: the same without the extension of an image: `photos/cat.png` and `cat`.
    5. `file`: the same file name in other folders, `out/cat.png` and `photos/cat.png`. Only where no other
       rule has found a single pair: else such images may well be others.

    Two images whose SHA-256 are known and differ are never a pair. Raises UsageError where rule 3, 4 or 5
    fits several images, or no image at all is in both files.
    """
    pairs = _Pairs(predictions.images, truth.images)
    pairs.take("name", _equal(pairs, lambda image: image.image))
    pairs.take("sha256", _single(_equal(pairs, lambda image: image.sha256)))
    for rule, parts in _BY_PATH.items():
        if rule == "file" and pairs.found:
            break
        edges = _ends(pairs, parts)
        clear = set(_single(edges))
        ambiguous = [edge for edge in edges if edge not in clear]
        if ambiguous:
            raise _ambiguity(ambiguous, predictions, truth)
        pairs.take(rule, edges)
    if not pairs.found:
        raise UsageError(
            f"no image of {predictions.path} is in {truth.path}: "
            f"{predictions.images[0].image!r} here, {truth.images[0].image!r} there",
            remedy="Name images alike in both files; the end of the path is enough.",
        )
    by_truth = {true: predicted for predicted, true in pairs.found}
    return Pairing(
        tuple(by_truth.get(true) for true in range(len(truth.images))),
        tuple(sorted(pairs.free_predicted)),
        pairs.by,
    )


Edge = tuple[int, int]


class _Pairs:
    """Pairs found so far, and what is still free on both sides."""

    def __init__(self, predicted: Sequence[ScoredImage], true: Sequence[ScoredImage]) -> None:
        self.predicted, self.true = predicted, true
        self.free_predicted, self.free_true = set(range(len(predicted))), set(range(len(true)))
        self.found: list[Edge] = []
        self.by: Counter[Rule] = Counter()

    def take(self, rule: Rule, edges: Iterable[Edge]) -> None:
        for predicted, true in edges:
            self.found.append((predicted, true))
            self.free_predicted.remove(predicted)
            self.free_true.remove(true)
            self.by[rule] += 1

    def may_be_one(self, predicted: int, true: int) -> bool:
        one, other = self.predicted[predicted].sha256, self.true[true].sha256
        return one is None or other is None or one == other


def _equal(pairs: _Pairs, key: Callable[[ScoredImage], str | None]) -> list[Edge]:
    places: dict[str, list[int]] = defaultdict(list)
    for true in sorted(pairs.free_true):
        if (value := key(pairs.true[true])) is not None:
            places[value].append(true)
    return [
        (predicted, true)
        for predicted in sorted(pairs.free_predicted)
        if (value := key(pairs.predicted[predicted])) is not None
        for true in places.get(value, ())
        if pairs.may_be_one(predicted, true)
    ]


def _single(edges: Sequence[Edge]) -> list[Edge]:
    """The edges that have both their ends for themselves."""
    left = Counter(predicted for predicted, _ in edges)
    right = Counter(true for _, true in edges)
    return [(predicted, true) for predicted, true in edges if left[predicted] == right[true] == 1]


def _ends(pairs: _Pairs, parts: Callable[[str], Parts]) -> list[Edge]:
    """Free images of which one's path is the end of the other's."""
    predicted = {index: parts(pairs.predicted[index].image) for index in pairs.free_predicted}
    true = {index: parts(pairs.true[index].image) for index in pairs.free_true}
    edges = {(one, other) for one, other in _is_end(predicted, true)}
    edges |= {(one, other) for other, one in _is_end(true, predicted)}
    return sorted(edge for edge in edges if pairs.may_be_one(*edge))


def _is_end(longer: dict[int, Parts], shorter: dict[int, Parts]) -> Iterable[Edge]:
    whole: dict[Parts, list[int]] = defaultdict(list)
    for index, parts in shorter.items():
        whole[parts].append(index)
    for index, parts in longer.items():
        for start in range(len(parts)):
            for other in whole.get(parts[start:], ()):
                yield index, other


def _parts(name: str) -> Parts:
    path = PurePosixPath(unicodedata.normalize("NFC", name).replace("\\", "/"))
    parts = [part for part in path.parts if part != "/"]
    while parts and parts[0] == "..":
        parts.pop(0)
    return tuple(parts)


def _stem_parts(name: str) -> Parts:
    parts = _parts(name)
    last = PurePosixPath(parts[-1]) if parts else PurePosixPath(name)
    return (*parts[:-1], last.stem) if last.suffix.lower() in IMAGE_SUFFIXES else parts


def _file_parts(name: str) -> Parts:
    return _stem_parts(name)[-1:]


_BY_PATH: dict[Rule, Callable[[str], Parts]] = {"path": _parts, "stem": _stem_parts, "file": _file_parts}


def _ambiguity(edges: Sequence[Edge], predictions: AnomalyFile, truth: AnomalyFile) -> UsageError:
    lines = [
        f"  {predictions.images[predicted].image!r} may be {truth.images[true].image!r}"
        for predicted, true in edges[:_LISTED]
    ]
    more = [f"  and {len(edges) - _LISTED} more"] if len(edges) > _LISTED else []
    head = f"{predictions.path}: which image of {truth.path} is meant is not clear"
    return UsageError(
        "\n".join([head, *lines, *more]) + "\nName these with as much of their path as tells them apart"
    )
