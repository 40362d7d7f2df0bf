"""The parameters of `uncanny.edits.perturb` and `uncanny.edits.prompts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, get_args

from uncanny.answers.writings import MAGNITUDES, EditMode, Magnitude, TextKind
from uncanny.eval.common.parameters import TextParameters
from uncanny.models.parameters import OutputTokens, SamplingParameters, Temperature, TopP
from uncanny.parameters import Shown

KINDS: Final[tuple[TextKind, ...]] = get_args(TextKind)


class PerturbConfig(SamplingParameters):
    """How texts are changed. The paper does not say how its models are sampled; 0.7 leaves room for more than
    one answer."""

    temperature: Temperature = 0.7
    max_output_tokens: OutputTokens = 200
    kinds: Annotated[Sequence[TextKind], Shown(flag="--kind", default="all that a text has")] = KINDS
    """Change these: labels, captions, or both."""
    magnitudes: Annotated[Sequence[Magnitude], Shown(flag="--magnitude", default="all three")] = MAGNITUDES
    """Change each text once for each of these magnitudes."""
    show_images: Annotated[bool, Shown(flag="--images")] = True
    """Show the model the picture, if there is one."""


class PerturbParameters(TextParameters, PerturbConfig):
    """The parameters of `perturb`."""


class PromptsConfig(SamplingParameters):
    """Sampling as in the paper (SAGI, supplementary, section 1.3), where the model takes it.

    An answer that 40 tokens cut off is asked for again with twice as many; what is kept has 30 words at most.
    """

    temperature: Temperature = 1.2
    top_p: TopP = 0.8
    max_output_tokens: OutputTokens = 40
    mode: EditMode = "inpaint"
    """Paint over one object (inpaint), a second one after it (double), or choose one to remove."""


class PromptsParameters(TextParameters, PromptsConfig):
    """The parameters of `prompts`."""
