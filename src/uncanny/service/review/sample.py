"""The images of a run's sample, which people judge whole, and where a reviewer goes next among them.

The way leads through the findings of an image to its end, where the page asks what was missed, and on to
the next image of the sample that is left. An image is left until it is judged
(`records.reviews.ReviewedImage.is_judged`), whoever did so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from uncanny.records.reviews import ReviewedImage
from uncanny.records.sample import Sample
from uncanny.service.review.queue import Filters, Move, ReviewQueue
from uncanny.service.review.records import ImageRecord, image_key

# `enter` leads to the first finding of the same image that is left, or to its end; `on` leads there after a
# verdict, and past an image that is complete.
Walk = Move | Literal["enter", "on"]
# An image by its number, and the row of a finding; None is the end of the image.
Spot = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of an image that somebody has completed: `judged` without its hidden findings, and
    `judged_all` with them; `faulty` where people found a fault."""

    by: tuple[str, ...]
    judged: bool
    judged_all: bool
    faulty: bool

    @classmethod
    def of(cls, reviewed: ReviewedImage, min_confidence: float) -> Whole:
        return cls(
            reviewed.completed_by,
            reviewed.is_judged(min_confidence),
            reviewed.is_judged(),
            bool(reviewed.true_anomalies()),
        )


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An image of the sample that cannot be judged, and `why`, as the end of a sentence."""

    image: str
    why: str

    def __str__(self) -> str:
        return f"{self.image} {self.why}"


@dataclass(frozen=True, slots=True)
class SampleProgress:
    """How many of the sample's `images` are judged, `faulty` ones among these, and `mine`, which this
    reviewer has completed. `left` are those that this reviewer is still asked for."""

    images: int
    judged: int
    faulty: int
    mine: int
    left: int
    passed_over: tuple[PassedOver, ...]


class SampleQueue:
    """The sample of a run. `whole` has the images that somebody has completed, and changes as they do.

    `completions` of an image are enough, once it is judged.
    """

    def __init__(
        self,
        sample: Sample,
        image_of: Callable[[str], tuple[int, ImageRecord] | None],
        queue: ReviewQueue,
        whole: Mapping[int, Whole],
        completions: int,
    ) -> None:
        """`image_of` gives the number and the record of what pages call an image, None for none."""
        self._queue, self._whole, self._completions = queue, whole, completions
        self._rows: dict[int, Sequence[int]] = {}
        passed_over: list[PassedOver] = []
        for each in sample.images:
            found = image_of(image_key(each.image))
            if found is None:
                passed_over.append(PassedOver(each.image, "is not in the run"))
            elif None not in (each.sha256, found[1].sha256) and each.sha256 != found[1].sha256:
                passed_over.append(PassedOver(each.image, "is another picture than the one that was drawn"))
            else:
                self._rows[found[0]] = found[1].rows
        self.passed_over = tuple(passed_over)
        # Image numbers in the order of the sample, and the place of each.
        self.images: tuple[int, ...] = tuple(self._rows)
        self._places = {number: place for place, number in enumerate(self.images)}

    def __contains__(self, image: int) -> bool:
        return image in self._rows

    def progress(self, filters: Filters, reviewer: str | None) -> SampleProgress:
        known = [self._whole[image] for image in self.images if image in self._whole]
        judged = [each for each in known if self._is_judged(each, filters)]
        return SampleProgress(
            images=len(self.images),
            judged=len(judged),
            faulty=sum(each.faulty for each in judged),
            mine=sum(reviewer in each.by for each in known),
            left=sum(self._is_left(image, filters, reviewer) for image in self.images),
            passed_over=self.passed_over,
        )

    def left_of(self, image: int, filters: Filters, reviewer: str | None) -> list[int]:
        """The rows of an image that are shown and that this reviewer has not judged."""
        return [row for row in self._shown(image, filters) if not self._queue.has_judged(row, reviewer)]

    def walk(self, at: Spot | None, move: Walk, filters: Filters, reviewer: str | None) -> Spot | None:
        """Where `move` leads; None where there is nothing further. `at` is None at the summary.

        Back leads through all images, judged or not.
        """
        if at is None or at[0] not in self:
            if move in ("previous", "previous-image"):
                return (self.images[-1], None) if self.images else None
            return self._first(self.ahead(None, filters, reviewer), filters, reviewer)
        image, row = at
        shown = self._shown(image, filters)
        match move:
            case "enter":
                return self._enter(image, filters, reviewer)
            case "on":
                left = self.left_of(image, filters, reviewer)
                if left:
                    return image, next((each for each in left if row is not None and each > row), left[0])
                if reviewer not in self._completed_by(image):
                    return image, None
            case "next" if row is not None:
                behind = shown[shown.index(row) + 1 :] if row in shown else []
                return image, behind[0] if behind else None
            case "previous":
                before = shown if row is None else shown[: shown.index(row)] if row in shown else []
                return (image, before[-1]) if before else self._before(image)
            case "previous-image":
                back = self._before(image)
                shown = [] if back is None else self._shown(back[0], filters)
                return (back[0], shown[0]) if back and shown else back
        return self._first(self.ahead(image, filters, reviewer), filters, reviewer)

    def ahead(self, image: int | None, filters: Filters, reviewer: str | None) -> int | None:
        """The next image of the sample that is left; with the `show` "all" the next one."""
        start = -1 if image is None else self._places.get(image, -1)
        behind, round_again = self.images[start + 1 :], self.images[: max(start, 0)]
        if filters.show == "all":
            return next(iter(behind), None)
        return next(
            (each for each in (*behind, *round_again) if self._is_left(each, filters, reviewer)), None
        )

    def _first(self, image: int | None, filters: Filters, reviewer: str | None) -> Spot | None:
        """Where an image begins that somebody comes to."""
        if image is None:
            return None
        shown = self._shown(image, filters)
        if filters.show == "all" and shown:
            return image, shown[0]
        return self._enter(image, filters, reviewer)

    def _enter(self, image: int, filters: Filters, reviewer: str | None) -> Spot:
        left = self.left_of(image, filters, reviewer)
        return image, left[0] if left else None

    def _before(self, image: int) -> Spot | None:
        """The end of the image before."""
        place = self._places[image]
        return (self.images[place - 1], None) if place > 0 else None

    def _shown(self, image: int, filters: Filters) -> list[int]:
        return self._queue.shown(self._rows.get(image, ()), filters)

    def _completed_by(self, image: int) -> tuple[str, ...]:
        return self._whole[image].by if image in self._whole else ()

    def _is_judged(self, whole: Whole, filters: Filters) -> bool:
        return whole.judged_all if filters.doubtful else whole.judged

    def _is_left(self, image: int, filters: Filters, reviewer: str | None) -> bool:
        whole = self._whole.get(image)
        if whole is None or not self._is_judged(whole, filters):
            return True
        return len(whole.by) < self._completions and reviewer not in whole.by
