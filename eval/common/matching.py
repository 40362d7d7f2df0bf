"""Which image of one file is which of another, where the two name the same images differently.

Predictions of a run name images from the run folder (`../../photos/cat.png`), a truth perhaps `cat.png`,
other people's files a number without an extension. `pair_images` has the rules, safest first.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from uncanny.errors import UsageError
from uncanny.images.discover import IMAGE_SUFFIXES

Rule = Literal["name", "sha256", "path", "stem", "file"]

_LISTED = 10
Parts = tuple[str, ...]
# Places in the predictions and in the truth.
_Edge = tuple[int, int]


class NamedImage(Protocol):
    """What tells images apart: a name or path, and the SHA-256 of the bytes in hexadecimal where known."""

    @property
    def image(self) -> str: ...
    @property
    def sha256(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Pairing:
    """For each image of the truth its place in the predictions, None where they do not have it.

    `surplus` are the places of the images that only the predictions have, in their order. `by` counts how
    many pairs each rule made.
    """

    predicted: tuple[int | None, ...]
    surplus: tuple[int, ...]
    by: Counter[Rule]


def pair_images(
    predictions: Sequence[NamedImage],
    truth: Sequence[NamedImage],
    *,
    labels: tuple[object, object] = ("the predictions", "the truth"),
    otherwise: str = "",
) -> Pairing:
    """Pair one to one, by the first rule that applies. Names are unique on each side.

    1. `name`: the same name, letter by letter.
    2. `sha256`: the same bytes, where both sides say so and just one image on each side has them.
    3. `path`: one name is the end of the other, in whole steps of the path: `../photos/cat.png` and
       `cat.png`. Leading `..` do not count.
    4. `stem`: the same without the extension of an image: `photos/cat.png` and `cat`.
    5. `file`: the same file name in other folders, `out/cat.png` and `photos/cat.png`. Only where no other
       rule has made a single pair: else such images may well be others.

    Two images whose SHA-256 are known and differ are never a pair. `labels` name the two sides in errors;
    `otherwise` is what else to do where they have no image in common.
    Raises UsageError where rule 3, 4 or 5 fits several images, or no image at all is on both sides.
    """
    candidates = _Candidates(predictions, truth)
    candidates.take("name", _equal(candidates, lambda image: image.image))
    candidates.take("sha256", _unambiguous(_equal(candidates, lambda image: image.sha256)))
    for rule, parts in _PATH_RULES.items():
        if rule == "file" and candidates.pairs:
            break
        edges = _common_ends(candidates, parts)
        clear = set(_unambiguous(edges))
        ambiguous = [edge for edge in edges if edge not in clear]
        if ambiguous:
            raise _ambiguity(ambiguous, candidates, labels)
        candidates.take(rule, edges)
    if not candidates.pairs:
        raise _nothing_in_common(predictions, truth, labels, otherwise)
    by_truth = {true: predicted for predicted, true in candidates.pairs}
    return Pairing(
        tuple(by_truth.get(place) for place in range(len(truth))),
        tuple(sorted(candidates.free_predicted)),
        candidates.by,
    )


class _Candidates:
    """The pairs made so far, and what is still free on both sides."""

    def __init__(self, predicted: Sequence[NamedImage], true: Sequence[NamedImage]) -> None:
        self.predicted, self.true = predicted, true
        self.free_predicted, self.free_true = set(range(len(predicted))), set(range(len(true)))
        self.pairs: list[_Edge] = []
        self.by: Counter[Rule] = Counter()

    def take(self, rule: Rule, edges: Iterable[_Edge]) -> None:
        for predicted, true in edges:
            self.pairs.append((predicted, true))
            self.free_predicted.remove(predicted)
            self.free_true.remove(true)
            self.by[rule] += 1

    def may_be_the_same(self, predicted: int, true: int) -> bool:
        ours, theirs = self.predicted[predicted].sha256, self.true[true].sha256
        return ours is None or theirs is None or ours == theirs


def _equal(candidates: _Candidates, key: Callable[[NamedImage], str | None]) -> list[_Edge]:
    places: dict[str, list[int]] = defaultdict(list)
    for true in sorted(candidates.free_true):
        if (value := key(candidates.true[true])) is not None:
            places[value].append(true)
    return [
        (predicted, true)
        for predicted in sorted(candidates.free_predicted)
        if (value := key(candidates.predicted[predicted])) is not None
        for true in places.get(value, ())
        if candidates.may_be_the_same(predicted, true)
    ]


def _unambiguous(edges: Sequence[_Edge]) -> list[_Edge]:
    """The edges that have both their ends for themselves."""
    left = Counter(predicted for predicted, _ in edges)
    right = Counter(true for _, true in edges)
    return [(predicted, true) for predicted, true in edges if left[predicted] == right[true] == 1]


def _common_ends(candidates: _Candidates, parts: Callable[[str], Parts]) -> list[_Edge]:
    """Free images of which the path of one is the end of the other's."""
    predicted = {place: parts(candidates.predicted[place].image) for place in candidates.free_predicted}
    true = {place: parts(candidates.true[place].image) for place in candidates.free_true}
    edges = set(_ending_in(predicted, true))
    edges |= {(ours, theirs) for theirs, ours in _ending_in(true, predicted)}
    return sorted(edge for edge in edges if candidates.may_be_the_same(*edge))


def _ending_in(longer: Mapping[int, Parts], shorter: Mapping[int, Parts]) -> Iterable[_Edge]:
    whole: dict[Parts, list[int]] = defaultdict(list)
    for place, parts in shorter.items():
        whole[parts].append(place)
    for place, parts in longer.items():
        for start in range(len(parts)):
            for end in whole.get(parts[start:], ()):
                yield place, end


class Original(NamedTuple):
    """What a path of an original stands for: the longest path of the same one, and the image that it is, if
    any."""

    path: Parts
    image: Parts | None


def find_originals(paths: Collection[Parts], images: Collection[Parts]) -> dict[Parts, Original]:
    """Which image each of `paths` means, of `images` that may be originals; paths are those of `stem_parts`.

    The same path, else one that is the end of the other, in whole steps. A path that is the end of several
    images or of several other `paths` is not clear: it stands for itself and is no image.
    """
    named, there = set(paths), set(images)
    longer = _ends_of(named, named)
    tops = {path: [each for each in longer[path] if not longer[each]] for path in named}
    holders = _ends_of(named, there)
    found: dict[Parts, Original] = {}
    # Images whose path is the end of an original's.
    shorter: dict[Parts, list[Parts]] = defaultdict(list)
    for path in sorted(named, key=len, reverse=True):
        found[path] = Original(path, path if path in there else None)
        if path in there:
            continue
        if not tops[path]:
            if len(holders[path]) == 1:
                found[path] = Original(path, holders[path][0])
            elif not holders[path] and (end := next((each for each in _ends(path) if each in there), None)):
                shorter[end].append(path)
        elif len(tops[path]) == 1 and set(holders[path]) <= {found[tops[path][0]].image}:
            found[path] = found[tops[path][0]]
    alone = {named_so[0]: end for end, named_so in shorter.items() if len(named_so) == 1}
    return {path: Original(it.path, alone.get(it.path, it.image)) for path, it in found.items()}


def _ends(path: Parts) -> Iterable[Parts]:
    """The path without its first steps, longest first."""
    return (path[start:] for start in range(1, len(path)))


def _ends_of(shorter: Collection[Parts], longer: Iterable[Parts]) -> dict[Parts, list[Parts]]:
    """By each of `shorter` those that it is the end of, without itself."""
    holders: dict[Parts, list[Parts]] = {path: [] for path in shorter}
    for path in longer:
        for end in _ends(path):
            if end in holders:
                holders[end].append(path)
    return holders


def _parts(name: str) -> Parts:
    plain = name if name.isascii() else unicodedata.normalize("NFC", name)
    # By hand: a path object takes ten times as long, and there may be hundreds of thousands.
    parts = [part for part in plain.replace("\\", "/").split("/") if part not in ("", ".")]
    start = 0
    while start < len(parts) and parts[start] == "..":
        start += 1
    return tuple(parts[start:])


def stem_parts(name: str) -> Parts:
    """The steps of a path without the extension of an image; leading `..` do not count."""
    parts = _parts(name)
    if not parts:
        return parts
    stem, dot, suffix = parts[-1].rpartition(".")
    return (*parts[:-1], stem) if stem and dot + suffix.lower() in IMAGE_SUFFIXES else parts


_PATH_RULES: Mapping[Rule, Callable[[str], Parts]] = {
    "path": _parts,
    "stem": stem_parts,
    "file": lambda name: stem_parts(name)[-1:],
}


def _ambiguity(edges: Sequence[_Edge], candidates: _Candidates, labels: tuple[object, object]) -> UsageError:
    lines = [
        f"  {candidates.predicted[predicted].image!r} may be {candidates.true[true].image!r}"
        for predicted, true in edges[:_LISTED]
    ]
    more = [f"  and {len(edges) - _LISTED} more"] if len(edges) > _LISTED else []
    head = f"{labels[0]}: which image of {labels[1]} is meant is not clear"
    return UsageError(
        "\n".join([head, *lines, *more]) + "\nName these with as much of their path as tells them apart"
    )


def _nothing_in_common(
    predictions: Sequence[NamedImage],
    truth: Sequence[NamedImage],
    labels: tuple[object, object],
    otherwise: str,
) -> UsageError:
    mine, theirs, why = predictions[0], truth[0], ""
    remedy = "Name images alike in both files; the end of the path is enough."
    named = {_file(image): image for image in truth}
    alike = next((image for image in predictions if _file(image) in named), None)
    if alike is not None:
        mine, theirs, why = alike, named[_file(alike)], ", with other bytes"
        remedy = "Images with different bytes are never paired, whatever their names."
    return UsageError(
        f"no image of {labels[0]} is in {labels[1]}: {mine.image!r} here, {theirs.image!r} there{why}",
        remedy=f"{remedy} {otherwise}".rstrip(),
    )


def _file(image: NamedImage) -> str:
    return image.image.replace("\\", "/").rpartition("/")[2]
