"""Edits of images, after Semi-Truths and SAGI: `uncanny.edits`.

`load` gives the pairs, `measure` says how much each was changed and where, `gate` which are fit for use;
`stress` says where a detector is blind to them, `compress` and `crop` make copies for it, and `masks` makes
masks for an inpainting model; `perturb` and `prompts` have a model write the words that edits are made after.
Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.common.described import DescribedImage as DescribedImage
    from uncanny.eval.common.described import WritingForecast as WritingForecast
    from uncanny.eval.edits.data import EditFiles as EditFiles
    from uncanny.eval.edits.data import EditPair as EditPair
    from uncanny.eval.edits.data import EditSet as EditSet
    from uncanny.eval.edits.data import load as load
    from uncanny.eval.edits.gate import GatedEdit as GatedEdit
    from uncanny.eval.edits.gate import GatedEdits as GatedEdits
    from uncanny.eval.edits.gate import gate as gate
    from uncanny.eval.edits.parameters import GateConfig as GateConfig
    from uncanny.eval.edits.parameters import MeasureConfig as MeasureConfig
    from uncanny.eval.edits.people.data import Judgement as Judgement
    from uncanny.eval.edits.people.data import Rating as Rating
    from uncanny.eval.edits.people.ratings import score_ratings as score_ratings
    from uncanny.eval.edits.people.ratings_result import RatingScores as RatingScores
    from uncanny.eval.edits.people.result import PeopleScores as PeopleScores
    from uncanny.eval.edits.people.score import score_people as score_people
    from uncanny.eval.edits.perceptual import open_perceptual as open_perceptual
    from uncanny.eval.edits.prepare import Crops as Crops
    from uncanny.eval.edits.prepare import PreparedMasks as PreparedMasks
    from uncanny.eval.edits.prepare import crop as crop
    from uncanny.eval.edits.prepare import masks as masks
    from uncanny.eval.edits.result import EditMeasure as EditMeasure
    from uncanny.eval.edits.result import MeasuredEdits as MeasuredEdits
    from uncanny.eval.edits.result import SetCutoffs as SetCutoffs
    from uncanny.eval.edits.run.forecast import perturb_forecast as perturb_forecast
    from uncanny.eval.edits.run.forecast import prompts_forecast as prompts_forecast
    from uncanny.eval.edits.run.perturb import Perturbation as Perturbation
    from uncanny.eval.edits.run.perturb import PerturbRun as PerturbRun
    from uncanny.eval.edits.run.perturb import perturb as perturb
    from uncanny.eval.edits.run.perturb import perturb_async as perturb_async
    from uncanny.eval.edits.run.prompts import PromptsRun as PromptsRun
    from uncanny.eval.edits.run.prompts import WrittenPrompts as WrittenPrompts
    from uncanny.eval.edits.run.prompts import prompts as prompts
    from uncanny.eval.edits.run.prompts import prompts_async as prompts_async
    from uncanny.eval.edits.score import Perceptual as Perceptual
    from uncanny.eval.edits.score import measure as measure
    from uncanny.eval.edits.stress.compress import CompressResult as CompressResult
    from uncanny.eval.edits.stress.compress import compress as compress
    from uncanny.eval.edits.stress.condition import DetectorScore as DetectorScore
    from uncanny.eval.edits.stress.result import StressResult as StressResult
    from uncanny.eval.edits.stress.score import stress as stress

__all__, __getattr__, __dir__ = lazy_names(__name__)
