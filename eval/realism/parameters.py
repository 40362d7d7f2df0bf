"""The parameters of the functions of `uncanny.realism`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from uncanny.eval.common.parameters import PairFolders, People, Root, ScoreParameters
from uncanny.models.parameters import OutputTokens, SamplingParameters, Temperature, TopP
from uncanny.parameters import Parameters, Shown
from uncanny.runs.parameters import AskEachParameters, AskParameters

if TYPE_CHECKING:
    from uncanny.eval.realism.people import PersonAnswer
else:  # commands show their options without them
    PersonAnswer = Any


class RealismConfig(SamplingParameters):
    """Sampling as in the paper (SAGI, supplementary, section 1.5), where the model takes it."""

    temperature: Temperature = 0.1
    top_p: TopP = 1.0
    max_output_tokens: OutputTokens = 2_048


class PairsParameters(Parameters):
    """How pairs are read."""

    root: Root = None


class RealismShared(RealismConfig, PairsParameters):
    """The parameters of judging pairs, by one model or by several."""


class LoadParameters(PairsParameters, PairFolders):
    """The parameters of `load`."""


class RealismParameters(RealismShared, AskParameters):
    """The parameters of `run`."""


class RealismEachParameters(RealismShared, AskEachParameters):
    """The parameters of `run_each`."""


class RealismScoreParameters(ScoreParameters):
    """The parameters of `score`."""

    people: Annotated[People | Sequence[PersonAnswer] | None, Shown(metavar="[NAME=]FILE", named=True)] = None
    """People's answers about the same images. NAME is the rater of answers that name none."""
