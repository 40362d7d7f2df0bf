"""The parameters of `export`, `import_reviews` and `import_annotations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from uncanny.eval.common.parameters import AgreeParameters, CalibrationParameters, ConfidenceParameters, Share
from uncanny.exports.formats import FORMATS, FormatName, ReadName
from uncanny.parameters import CALLBACK, HERE, PYTHON, Parameters, Place, Shown, Text

ChatForm = Literal["parts", "tags"]


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _distinct(values: Any) -> Any:
    return tuple(dict.fromkeys(values))


class ExportParameters(AgreeParameters, CalibrationParameters, ConfidenceParameters):
    """The parameters of `export`."""

    to: Annotated[
        FormatName | Annotated[Sequence[FormatName], Field(min_length=1, max_length=11)],
        BeforeValidator(_listed),
        AfterValidator(_distinct),
        Shown(
            metavar="FORMAT,…",
            label="Formats",
            names={name: each.title for name, each in FORMATS.items()},
            first=True,
        ),
    ]
    """Formats to write."""
    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """Folder to write to. For one format that is a single file, this can be the file."""
    all: Annotated[bool, Shown(label="Unreviewed ones too", first=True)] = False
    """Include anomalies without a review, and those that reviewers are unsure of."""
    rejected: Annotated[bool, Shown(label="Rejected ones too")] = False
    """Include anomalies that reviewers rejected."""
    source: Annotated[
        Literal["generated", "real"] | Place | None,
        Shown(metavar="generated|real|FILE", default="what the records say"),
    ] = None
    """Source of the images, for sft-detect: one word for all, or a file with `image` and `source`."""
    test_fraction: Share = 0.5
    """Share of images in the test split, 0–1, by a hash of their digests."""
    group_by: Annotated[
        Text | None,
        Shown(
            metavar="COLUMN|stem|image",
            default="sides of a pair and edits of an original together, where columns say so",
        ),
    ] = None
    """Keep images that share this column, or their file name (`stem`), in one split; `image` keeps none
    together."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the order of anomalies in chats; the same seed gives the same order."""
    max_tokens: Annotated[int, Field(ge=1, le=10**9)] = 2048
    """Maximum number of tokens in one list of a chat; a longer one becomes several."""
    count_tokens: Annotated[Callable[[str], int] | None, CALLBACK, PYTHON] = None
    """Counts the tokens of a text; by default a token has four characters."""
    chat: ChatForm = "parts"
    """Write messages as lists of parts (TRL), or as texts with <image> (LLaMA-Factory, ms-swift)."""
    copy_pictures: Annotated[bool, Shown(first=True)] = False
    """Copy pictures into OUT/images, instead of referring to the original files."""
    image_prefix: Annotated[Text | None, Shown(on=HERE.on, metavar="URL")] = None
    """Write this before the names of pictures, instead of a path."""
    force: Annotated[bool, HERE] = False
    """Replace files that are not an earlier export."""


class ImportParameters(Parameters):
    """What the files are that are imported."""

    format: Annotated[ReadName | None, Shown(on=HERE.on, default="told by their content")] = None
    """Format of the files."""


class ImportReviewsParameters(ImportParameters):
    """The parameters of `import_reviews`."""

    run: Annotated[Place, HERE]
    """Run that gets the verdicts, texts and boxes, as reviews."""
    reviewer: Annotated[Text | None, Shown(on=HERE.on, metavar="NAME", default="as Label Studio says")] = None
    """Name of the person whose changes these are."""
    complete: Annotated[bool, HERE] = False
    """This person has looked at each image of the files as a whole, and added all that was missing. Images of
    a sample then count as judged."""


class ImportAnnotationsParameters(ImportParameters):
    """The parameters of `import_annotations`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """Write a file of annotations, from boxes that belong to no run."""
    force: Annotated[bool, HERE] = False
    """Replace an existing file."""
