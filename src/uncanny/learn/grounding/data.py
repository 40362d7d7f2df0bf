"""Images with artifacts as questions: what the model is asked of each, and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.answers.boxes import BoxFormat, in_format
from uncanny.errors import ImageError, ItemsError, UsageError
from uncanny.eval.artifacts.data.load import load
from uncanny.eval.artifacts.data.pixels import Drawing
from uncanny.files import dump_json
from uncanny.images.prepared import measured, read_rgb
from uncanny.learn.common.held_out import Traces, traces_of
from uncanny.learn.grounding.rewards import Grounded, LocatedBox, Size
from uncanny.prompts import PromptSet, prompt_set
from uncanny.schema import ARTIFACT_CATEGORIES
from uncanny.wording import option

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class GroundedImage:
    """An image and what is true of it; `size` is the width and height of its file, upright."""

    file: Path
    size: Size
    truth: Grounded
    traces: Traces

    def picture(self) -> Image.Image:
        """Its pixels. Raises ImageError."""
        return read_rgb(self.file)[0]


def read_images(artifacts: Path, root: Path | None) -> Sequence[GroundedImage]:
    """The images of a truth, in any form that `uncanny artifacts score` takes.

    A region of any shape becomes the box around it. A record without a source is of a generated image if it
    has regions. The artifacts of a generated image without `regions` are unknown; an empty list says that
    there are none. Raises ItemsError with everything that is wrong, UsageError where images are missing or
    nobody says what they are.
    """
    found = load(artifacts, root=root)
    drawing = Drawing()
    images = []
    silent = []
    for each in found.images:
        file = found.pictures / each.image
        try:
            own = measured(file)
        except ImageError as error:
            raise UsageError(
                f"{file} cannot be read: {error.text}",
                remedy=f"Pass the folder that the paths of images start from with {option('root')}.",
            ) from error
        size = (own.width, own.height)
        regions = drawing.regions(each, size)
        source = each.record.source or ("generated" if regions else None)
        if source is None:
            silent.append(each.image)
        boxes = None
        if source != "generated" or each.record.regions is not None:
            boxes = tuple(
                LocatedBox(region.category, pixels.box) for region, pixels in regions if pixels.pixels.size
            )
        traces = traces_of(each.record, file, found.pictures)
        images.append(GroundedImage(file, size, Grounded(source, boxes), traces))
    if drawing.problems:
        raise ItemsError(str(artifacts), drawing.problems)
    if silent:
        raise UsageError(
            f"{len(silent):,} images have neither artifacts nor a `source`, first {silent[0]}",
            remedy='Write "source": "real" or "generated" into their records.',
        )
    return images


class Question:
    """How images are asked about, with boxes in one form.

    The text is `locate.md` of the prompts for fine-tuning, with the definitions that `uncanny artifacts`
    asks with.
    """

    def __init__(self, form: BoxFormat) -> None:
        self.form = form
        self._artifacts: PromptSet = prompt_set("artifacts")
        self._text = prompt_set("finetune")["locate"]

    def ask(self, sent: Size) -> str:
        """The question about an image that the model sees as `sent`, width and height in pixels."""
        rule = self._artifacts[f"box_{self.form.name}"]
        definitions = [f'- "{each}": {self._artifacts[each].fill()}' for each in ARTIFACT_CATEGORIES]
        return self._text.fill(
            definitions="\n".join(definitions),
            box_key=self.form.key,
            box_rule=rule.fill(width=str(sent[0]), height=str(sent[1])),
        ).strip()

    def answer(self, truth: Grounded, *, sent: Size, original: Size) -> str:
        """The best answer there is; without artifacts where these are unknown."""
        if truth.artifacts is None:
            return dump_json({"source": truth.source}).decode()
        artifacts = [
            {
                "category": each.category,
                self.form.key: in_format(each.box, self.form, sent=sent, original=original),
            }
            for each in truth.artifacts
        ]
        return dump_json({"source": truth.source, "artifacts": artifacts}).decode()


def size_sent(processor: Any, picture: Image.Image) -> Size:
    """Width and height at which the model sees a picture.

    Processors that divide a picture into a grid of patches tell it; of others it is the picture's own.
    """
    shown = processor.image_processor(images=[picture], return_tensors="pt")
    grid, patch = shown.get("image_grid_thw"), getattr(processor.image_processor, "patch_size", None)
    if grid is None or not isinstance(patch, int):
        return picture.size
    _, rows, columns = (int(each) for each in grid[0])
    return columns * patch, rows * patch
