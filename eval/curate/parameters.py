"""The parameters of the functions of `uncanny.curate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import Field

from uncanny.eval.common.parameters import Device, Root, TextParameters
from uncanny.models.parameters import OutputTokens, SamplingParameters, Temperature
from uncanny.parameters import HERE, PYTHON, Parameters, Place, Shown, Text

if TYPE_CHECKING:
    from uncanny.eval.common.described import TextSource
else:  # commands show their options without it
    TextSource = Any

FilterQuestion = Literal["photo", "blurred", "prompt"]
QUESTIONS: Final[tuple[FilterQuestion, ...]] = get_args(FilterQuestion)

Clip = Annotated[
    Place,
    Field(description="Folder of the CLIP model that compares, as transformers saves it."),
    Shown(metavar="DIR"),
]
Records = Annotated[
    Place | None,
    Field(description="Write a line per record to this file: .jsonl."),
    Shown(on=HERE.on, short="-o", metavar="FILE"),
]
Progress = Annotated[bool, Field(description="Show a progress bar on standard error."), PYTHON]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Number = Annotated[int, Field(ge=0, le=10**9)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class FilterConfig(SamplingParameters):
    """What is asked. The papers do not say how their models are sampled; 0 gives the same answer again."""

    temperature: Temperature = 0.0
    max_output_tokens: OutputTokens = 200
    question: FilterQuestion = "photo"
    """Ask whether the image is a photograph (photo), whether something in it was blurred for privacy
    (blurred), or whether its caption, as a prompt, calls for a photograph (prompt)."""


class FilterParameters(TextParameters, FilterConfig):
    """The parameters of `filter`."""


class ClusterParameters(Parameters):
    """The parameters of `cluster`."""

    clip: Clip
    out: Records = None
    device: Device = None
    threshold: Cosine = 0.9
    """Cosine of two prompts from which they are in one cluster."""
    progress: Progress = False


class ReferencesParameters(Parameters):
    """The parameters of `references`."""

    pool: Annotated[TextSource, Shown(metavar="POOL", place="source", first=True)]
    """Folder of real images to choose from, or a file with `id`, `original` and optionally `caption`."""
    clip: Annotated[
        Place | None,
        Field(description="Folder of the CLIP model that compares, as transformers saves it."),
        Shown(metavar="DIR", default="captions alone"),
    ] = None
    out: Records = None
    device: Device = None
    least: Annotated[Cosine, Field(description="Lowest cosine of two images that matches them.")] = 0.0
    once: bool = True
    """Use each real image for one image only, so that the sum of similarities is the highest."""
    root: Root = None
    progress: Progress = False


class SplitParameters(Parameters):
    """The parameters of `split`; the numbers are X-AIGD's."""

    generators: Annotated[Sequence[Text], Field(min_length=1), Shown(flag="--generator", metavar="NAME")]
    """Generator whose images are annotated in the test set."""
    train: Annotated[
        Sequence[Text] | None, Shown(flag="--train-generator", metavar="NAME", default="all of them")
    ] = None
    """Generator whose images are annotated in the training set, too."""
    out: Records = None
    shared: Number = 100
    """Number of identities that all generators of a set have annotated."""
    own: Number = 100
    """Number of identities that one generator alone has annotated, in each set."""
    test_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the identities that is in the test set."""
    seed: Seed = 0
    """Seed of the split."""
