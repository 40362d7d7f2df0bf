"""A finding or an image under review: what pages call it, what a reviewer sees, whether it is still that."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

import orjson

from uncanny.errors import ReviewConflictError, UsageError
from uncanny.eval.common.anomalies.doubt import Doubt
from uncanny.records.reviews import Review, ReviewedAnomaly, ReviewedImage, quadruple_sha256
from uncanny.schema import Annotation, Anomaly


class FindingId(NamedTuple):
    """A finding as pages name it: the image by the digest of its name, and the finding's place there."""

    image: str
    anomaly: int

    def __str__(self) -> str:
        return f"{self.image}-{self.anomaly}"

    @classmethod
    def read(cls, text: str) -> FindingId:
        """Raises UsageError for what is none."""
        image, _, anomaly = text.partition("-")
        if not (image.isascii() and anomaly.isascii() and anomaly.isdigit() and len(anomaly) < 10):
            raise UsageError("This does not name a finding")
        return cls(image, int(anomaly))


_END: Final = "-end"


class ImageEnd(NamedTuple):
    """Where a page asks what was missed in an image, after its findings."""

    image: str

    def __str__(self) -> str:
        return f"{self.image}{_END}"


Place = FindingId | ImageEnd


def read_place(text: str) -> Place:
    """Raises UsageError for what is neither a finding nor the end of an image."""
    image = text.removesuffix(_END)
    if image != text and image.isascii() and image.isalnum():
        return ImageEnd(image)
    return FindingId.read(text)


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding as a reviewer sees it. `text` is the `quadruple_sha256` that a verdict is about.

    `siblings` are the image's other findings. `image` names the picture in addresses, as `next_image` does
    that of the finding after this one. `doubt` says why it is uncertain, None of one that people added.
    """

    id: FindingId
    image: str
    record: Annotation
    finding: ReviewedAnomaly
    text: str
    siblings: tuple[tuple[FindingId, ReviewedAnomaly], ...]
    doubt: Doubt | None
    history: tuple[Review, ...]
    next_image: str | None


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image as a reviewer sees it who is asked what was missed.

    `findings` are those that are shown, `hidden` counts the others. `state` is what a completion is about,
    `left` are the findings that this reviewer has not judged.
    """

    id: ImageEnd
    record: Annotation
    findings: tuple[tuple[FindingId, ReviewedAnomaly], ...]
    hidden: int
    left: int
    completed_by: tuple[str, ...]
    state: str
    next_image: str | None


def state_of_image(reviewed: ReviewedImage) -> str:
    """What is another one when the picture or a text is, or when a finding is added or taken back."""
    texts = [[each.index, quadruple_sha256(each.anomaly)] for each in reviewed.anomalies]
    return sha256(orjson.dumps([reviewed.annotation.sha256, texts])).hexdigest()


def finding_at(reviewed: ReviewedImage, place: int) -> ReviewedAnomaly:
    """Raises ReviewConflictError where it was taken back."""
    for each in reviewed.anomalies:
        if each.index == place:
            return each
    raise ReviewConflictError("This finding has been taken back meanwhile", remedy="Go on with the next one.")


def unchanged(reviewed: ReviewedImage, place: int, text: str) -> ReviewedAnomaly:
    """The finding, if `text` is still its `quadruple_sha256`. Raises ReviewConflictError."""
    finding = finding_at(reviewed, place)
    if quadruple_sha256(finding.anomaly) != text:
        raise ReviewConflictError(
            "The text has been changed meanwhile", remedy="Read it as it is now, and judge it again."
        )
    return finding


def check_box(anomaly: Anomaly, record: Annotation) -> None:
    """Raises UsageError for a box outside the picture, where its size is known."""
    if anomaly.box is None or record.width is None or record.height is None:
        return
    if anomaly.box[2] > record.width or anomaly.box[3] > record.height:
        raise UsageError(
            f"The box reaches beyond the picture, which is {record.width} × {record.height}",
            remedy="Draw it again.",
        )
