"""What the review page sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from fastapi import HTTPException
from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from uncanny.records.reviews import Decision
from uncanny.schema import Anomaly, Box
from uncanny.service import Show
from uncanny.service.review.queue import Filters, Order
from uncanny.service.safety import Body, Words

# How real something is that was missed, in three steps of the severity, and in words.
SCALE: Final[Mapping[int, str]] = {10: "Cannot be.", 35: "Hardly ever is.", 65: "Odd but possible."}

Id = Annotated[str, StringConstraints(max_length=64)]
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class InQueue(Body):
    """What every request of the page says: which queue it is in."""

    show: Show = "todo"
    order: Order = "uncertain"
    kind: Annotated[str, StringConstraints(max_length=40)] = ""
    agent: Annotated[str, StringConstraints(max_length=200)] = ""
    doubtful: Literal["", "yes"] = ""
    sample: Literal["", "yes", "no"] = ""

    @property
    def filters(self) -> Filters:
        return Filters(
            self.show,
            self.order,
            self.kind or None,
            self.agent or None,
            bool(self.doubtful),
            self.sample == "yes",
        )


class Verdict(InQueue):
    finding: Id
    text: Digest
    decision: Decision


class Undo(InQueue):
    finding: Id = ""


class Texts(InQueue):
    """A finding as a form has it. An empty `kind_of` is none."""

    name: Words
    phenomenon: Words
    reasoning: Words
    severity: Annotated[int, Field(ge=0, le=100)]
    kind_of: Annotated[str, StringConstraints(max_length=40)] = ""

    def anomaly(self, box: Box | None = None) -> Anomaly:
        """Raises HTTPException for what no finding may be."""
        try:
            texts = self.model_dump(include={"name", "phenomenon", "reasoning", "severity"})
            return Anomaly.model_validate({**texts, "kind": self.kind_of or None, "box": box})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise HTTPException(422, f"{first['loc'][0]}: {first['msg']}.") from None


class Edit(Texts):
    finding: Id
    text: Digest
    # A form has an empty one for none.
    decision: Annotated[Decision | None, BeforeValidator(lambda decision: decision or None)] = None


def _written_box(box: object) -> object:
    """Annotorious gives fractions of pixels; a box has whole ones."""
    if box == "":
        return None
    if isinstance(box, str):
        try:
            return [round(float(each)) for each in box.split(",")]
        except (ValueError, OverflowError):
            raise ValueError("a box is x0,y0,x1,y1") from None
    return box


# x0,y0,x1,y1, or empty for none.
WrittenBox = Annotated[Box | None, BeforeValidator(_written_box)]


class Addition(Texts):
    """A finding that was missed. A name and how real it is are enough: the texts say the same, then."""

    finding: Id
    phenomenon: Words = ""
    reasoning: Words = ""
    box: WrittenBox = None

    def anomaly(self, box: Box | None = None) -> Anomaly:
        reasoning = self.reasoning if self.reasoning.strip() else SCALE.get(self.severity, "")
        phenomenon = self.phenomenon if self.phenomenon.strip() or not reasoning else self.name
        said = self.model_copy(update={"phenomenon": phenomenon, "reasoning": reasoning})
        return Texts.anomaly(said, box)


class MovedBox(InQueue):
    finding: Id
    text: Digest
    box: WrittenBox = None


class Completion(InQueue):
    """That nothing is missed in an image, as `state` says that it was."""

    finding: Id
    state: Digest
