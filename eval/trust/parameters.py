"""The parameters of drawing a sample of images that people judge."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from uncanny.errors import UsageError
from uncanny.parameters import Parameters, Shown
from uncanny.records.sample import Design
from uncanny.schema import Annotation
from uncanny.wording import option


class SampleParameters(Parameters):
    """The parameters of `sample`."""

    size: Annotated[int, Field(ge=1, le=10_000_000), Shown(metavar="N")]
    """Number of images to judge, in each run. A larger number later extends the sample."""
    design: Annotated[Design | None, Shown(default="random, or that of the sample there is")] = None
    """How images are drawn: each alike (random), or half of the chance by the model's doubt (active)."""
    seed: Annotated[
        int | None, Field(ge=0, le=2**63 - 1), Shown(default="0, or that of the sample there is")
    ] = None
    """Seed of the draw: the same seed draws the same images."""
    pair_by: Annotated[str | None, Shown(metavar="stem|COLUMN", default="nothing")] = None
    """What images of one prompt share in several runs: their file name without its ending (stem), or a
    column. The same prompts are then drawn in all runs."""

    @property
    def paired(self) -> str | None:
        """What is paired by."""
        return self.pair_by

    def key_of(self, record: Annotation) -> str:
        """What an image is drawn by: what it shares with those of other runs, else its name.

        Raises UsageError where it has nothing to share.
        """
        from uncanny.eval.common.groups import STEM, group_of

        key = record.image if self.pair_by is None else group_of(record, self.pair_by)
        if key is None:
            raise UsageError(
                f"{option('pair_by')}: {record.image} has no value for {self.pair_by!r}",
                remedy=f"Name a column that all images have, or {STEM!r}.",
            )
        return key
