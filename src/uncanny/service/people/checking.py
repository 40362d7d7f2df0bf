"""MCQ items checked by people: each with its questions, right answers and boxes, one verdict an item.

What they say goes to `item_reviews.jsonl` of the run folder (`eval/mcq/data/kept.py`), from which
`uncanny mcq check --reviews` takes the items that they agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncanny.eval.mcq.data.items import Item, ItemSet, Question
from uncanny.eval.mcq.data.kept import ITEM_REVIEWS, ItemReview, item_digest
from uncanny.eval.mcq.data.texts import question_text
from uncanny.images.file_bytes import RecordedFile
from uncanny.records.reviews import Decision
from uncanny.service.people.answers import ItemsSession, Line, asked_lines, choices_of, item_key
from uncanny.service.people.session import now, rounded
from uncanny.service.people.trials import PictureFiles


@dataclass(frozen=True, slots=True)
class QuestionCheck:
    """A question as a model has it, with its right answer."""

    question: Question
    lines: tuple[Line, ...]
    right: str


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as a reviewer has it before them.

    `key` names it in addresses. `questions` are those that it has; `boxed` says whether there is a picture
    with boxes besides the one without. `next` is the key of the item after it, and whether that has boxes.
    """

    key: str
    questions: tuple[QuestionCheck, ...]
    boxed: bool
    next: tuple[str, bool] | None


class PeopleChecks(ItemsSession[Item, ItemReview, ItemView]):
    """A run folder in which people check the items of a set, in its order."""

    said_already = "You have already checked this item"
    left_already = "You can undo only your last verdict"
    task, record_file, model = "mcq_review", ITEM_REVIEWS, ItemReview

    def __init__(self, items: ItemSet, run: Path) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self._digests = {item.id: item_digest(item) for item in items}
        self._pictures = PictureFiles()
        super().__init__(items, run)
        self._catch_up()

    def check(
        self, person: str, key: str, decision: Decision, note: str | None, seconds: float | None
    ) -> None:
        """Keep a verdict, and record the items around it that were passed over.

        Raises ReviewConflictError where this is not the item that is shown now.
        """

        def line(item: Item) -> ItemReview:
            picture = self._file(item, boxed=False)
            overlay = None if item.overlay is None else self._file(item, boxed=True)
            return ItemReview(
                id=item.id,
                person=person,
                decision=decision,
                note=note or None,
                content=self._digests[item.id],
                sha256=picture.sha256 if isinstance(picture, RecordedFile) else None,
                overlay_sha256=overlay.sha256 if isinstance(overlay, RecordedFile) else None,
                seconds=rounded(seconds),
                at=now(),
            )

        item = self._items.get(key)
        self._say(person, item and item.id, line)

    # Within

    def _key(self, thing: Item) -> str:
        return thing.id

    def _ordered(self, person: str) -> Sequence[Item]:  # noqa: ARG002
        return self.items

    def _view(self, person: str, thing: Item, following: Item | None) -> ItemView:  # noqa: ARG002
        questions = tuple(
            QuestionCheck(
                each,
                tuple(asked_lines(question_text(thing, each), choices_of(each))),
                thing.right(each) or "",
            )
            for each in thing.questions()
        )
        after = None if following is None else (item_key(following), following.q3 is not None)
        return ItemView(item_key(thing), questions, thing.q3 is not None, after)

    def _of(self, line: ItemReview) -> tuple[str, str] | None:
        item = self._by_id.get(line.id)
        if item is None or line.content not in (None, self._digests[item.id]):
            return None
        return None if self._pictures.replaced(line.files(item, self.items)) else (line.person, line.id)

    def _error(self, line: ItemReview) -> str | None:
        return (line.error or "") if line.decision is None else None

    def _fault(self, thing: Item) -> str | None:
        files = [self._file(thing, boxed=boxed) for boxed in {False, thing.q3 is not None}]
        return next((each for each in files if isinstance(each, str)), None)

    def _failure(self, person: str, thing: Item, error: str) -> ItemReview:
        return ItemReview(id=thing.id, person=person, decision=None, error=error, at=now())
