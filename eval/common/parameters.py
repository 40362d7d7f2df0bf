"""Parameters that several protocols share: how scores and their intervals are made, and of what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from uncanny.eval.metrics import RESAMPLES
from uncanny.parameters import HERE, Folder, Parameters, Place, Shown

Resamples = Annotated[
    int,
    Field(ge=0, le=1_000_000, description="Number of bootstrap resamples for 95 % intervals; 0 for none."),
]
Seed = Annotated[
    int, Field(ge=0, le=2**63 - 1, description="Seed of the bootstrap: the same seed, the same intervals.")
]
GroupBy = Annotated[
    str | None,
    Field(
        description="Count images that share this column's value as one in intervals and paired tests; "
        "`image` counts each by itself."
    ),
    Shown(metavar="COLUMN|image", default="those of a pair or an original together"),
]
Root = Annotated[
    Folder | None,
    Field(description="Folder from which image paths start."),
    Shown(default="the file's folder"),
]
Force = Annotated[bool, Field(description="Replace files that are not this command's own."), HERE]
Published = Annotated[bool, Field(description="Show the published figures beside yours.")]

PersonFile = str | PathLike[str]
if TYPE_CHECKING:
    # A file, several, or each by the name of the person.
    People = PersonFile | Sequence[PersonFile] | Mapping[str, PersonFile]
else:  # what reads them says what is wrong with them
    People = Any


class IntervalParameters(Parameters):
    """How intervals are made."""

    resamples: Resamples = RESAMPLES
    seed: Seed = 0


class ScoreParameters(IntervalParameters):
    """How scores are made that have intervals over images."""

    group_by: GroupBy = None
    published: Published = False


class PairFolders(Parameters):
    """Two folders in place of a file of pairs."""

    original: Place | None = None
    """Folder of original images, in place of a file of pairs."""
    edited: Place | None = None
    """Folder of edited images with the same names, in place of a file of pairs."""
