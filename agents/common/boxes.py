"""What agents generate through that are answered in boxes.

Boxes are asked for in the form that the model was trained on, also that of a fallback, and are pixels of the
original image everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from uncanny.agents.common.context import ImageContext, SamplingSettings, Variable
from uncanny.answers.boxes import (
    BOX_FORMATS,
    BoxFormat,
    BoxFormatName,
    GivenBox,
    box_format,
    pixels,
)
from uncanny.models.tokens import seen_size
from uncanny.schema import Box


class BoxSettings(SamplingSettings, Protocol):
    """What a configuration says besides where answers have boxes: their form, None to go by the model."""

    @property
    def box_format(self) -> BoxFormatName | None: ...


B = TypeVar("B", bound=BoxSettings)


def asked_box_format(model: str, config: BoxSettings) -> BoxFormat:
    """How the model of this name is asked for boxes."""
    return box_format(model) if config.box_format is None else BOX_FORMATS[config.box_format]


@dataclass(slots=True)
class BoxCount:
    """Boxes that models gave, how many of them could not be one, and the formats they were asked for in."""

    given: int = 0
    unreadable: int = 0
    formats: set[BoxFormatName] = field(default_factory=set)

    def as_recorded(self) -> dict[str, Any]:
        return {"given": self.given, "unreadable": self.unreadable, "formats": sorted(self.formats)}


@dataclass(frozen=True, slots=True)
class BoxContext(ImageContext[B]):
    """`ImageContext` of an image in which things are located.

    `size` is its width and height before it was scaled for sending, None where it was not. `boxes` counts as
    it goes.
    """

    size: tuple[int, int] | None = None
    boxes: BoxCount = field(default_factory=BoxCount)

    @property
    def variables(self) -> Mapping[str, Variable]:
        return {"box_key": self.box_key, "box_rule": self.box_rule}

    def box_key(self, model: str) -> str:
        """The key under which the prompts of the model of this name ask for boxes."""
        return asked_box_format(model, self.config).key

    def box_rule(self, model: str) -> str:
        """How its prompts say what the numbers of a box are."""
        width, height = self.seen(model)
        form = asked_box_format(model, self.config)
        return self.prompts[f"box_{form.name}"].fill(width=str(width), height=str(height))

    def box(self, given: GivenBox | None) -> Box | None:
        """A box as a model gave it, in pixels of the original image; None where it cannot be one."""
        if given is None:
            return None
        form = asked_box_format(given.model, self.config)
        box = pixels(given, form, sent=self.seen(given.model), original=self.pixels)
        self.boxes.formats.add(form.name)
        self.boxes.given += 1
        self.boxes.unreadable += box is None
        return box

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the original image."""
        return self.size or (self.image.width, self.image.height)

    def seen(self, model: str) -> tuple[int, int]:
        """The size at which the model sees the image, which is what its pixels count."""
        return seen_size(model, self.image.width, self.image.height)
