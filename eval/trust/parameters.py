"""The parameters of drawing a sample of images that people judge."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from uncanny.parameters import Parameters, Shown
from uncanny.records.sample import Design


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
