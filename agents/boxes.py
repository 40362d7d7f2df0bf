"""What agents generate through that are answered in boxes.

Boxes are asked for in the form that the model of the agent was trained on, and are pixels of the original
image everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from uncanny.agents.context import ImageContext, SamplingSettings
from uncanny.answers.boxes import (
    BOX_FORMATS,
    BoxFormat,
    BoxFormatName,
    GivenBox,
    box_format,
    pixels,
)
from uncanny.client.tokens import seen_size
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

    def box_format(self, agent: str) -> BoxFormat:
        """How the model of an agent is asked for boxes."""
        return asked_box_format(self._model(agent), self.config)

    def box_key(self, agent: str) -> str:
        """The key under which an agent's prompts ask for boxes."""
        return self.box_format(agent).key

    def box_rule(self, agent: str) -> str:
        """How an agent's prompts say what the numbers of a box are."""
        width, height = self._seen(agent)
        return self.prompts[f"box_{self.box_format(agent).name}"].fill(width=str(width), height=str(height))

    def box(self, given: GivenBox | None, agent: str) -> Box | None:
        """A box as an agent's model gave it, in pixels of the original image; None where it cannot be one."""
        if given is None:
            return None
        form = self.box_format(agent)
        box = pixels(given, form, sent=self._seen(agent), original=self.pixels)
        self.boxes.formats.add(form.name)
        self.boxes.given += 1
        self.boxes.unreadable += box is None
        return box

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the original image."""
        return self.size or (self.image.width, self.image.height)

    def _model(self, agent: str) -> str:
        return self.model_client.endpoints(agent)[0].provider.name

    def _seen(self, agent: str) -> tuple[int, int]:
        """The size at which an agent's model sees the image, which is what its pixels count."""
        return seen_size(self._model(agent), self.image.width, self.image.height)
