"""uncanny: what is wrong with an AI-generated image, at the scale of a data set, proved with numbers.

::

    import uncanny

    annotation = uncanny.annotate_image("photo.jpg", model="openai/gpt-4o")
    run = uncanny.annotate("photos/", model="openai/gpt-4o", out="runs/a", max_cost_usd=20)
    print(run.summary.cost_usd, run.report())

What `__all__` names is the public interface. Each name is loaded when it is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from uncanny import artifacts as artifacts
    from uncanny import edits as edits
    from uncanny import errors as errors
    from uncanny import extend as extend
    from uncanny import mcq as mcq
    from uncanny import realism as realism
    from uncanny import semantic as semantic
    from uncanny.agents.config import AnnotateConfig as AnnotateConfig
    from uncanny.annotation.forecast import AnnotateForecast as AnnotateForecast
    from uncanny.annotation.forecast import annotate_forecast as annotate_forecast
    from uncanny.annotation.picture import FindingsPicture as FindingsPicture
    from uncanny.annotation.run import AnnotateRun as AnnotateRun
    from uncanny.annotation.run import annotate as annotate
    from uncanny.annotation.run import annotate_async as annotate_async
    from uncanny.client.calls import CallRecord as CallRecord
    from uncanny.errors import UncannyError as UncannyError
    from uncanny.eval.audit.run import audit as audit
    from uncanny.eval.audit.run import audit_async as audit_async
    from uncanny.eval.audit.score.result import AuditResult as AuditResult
    from uncanny.eval.common.estimates import Estimate as Estimate
    from uncanny.eval.common.estimates import Share as Share
    from uncanny.eval.common.run_result import RunSummary as RunSummary
    from uncanny.eval.compare.score.figures import Paired as Paired
    from uncanny.eval.compare.score.result import CompareResult as CompareResult
    from uncanny.eval.compare.score.result import Comparison as Comparison
    from uncanny.eval.compare.score.score import compare as compare
    from uncanny.eval.detect.forecast import DetectForecast as DetectForecast
    from uncanny.eval.detect.forecast import detect_forecast as detect_forecast
    from uncanny.eval.detect.run import DetectRun as DetectRun
    from uncanny.eval.detect.run import detect as detect
    from uncanny.eval.detect.run import detect_async as detect_async
    from uncanny.eval.detect.score import DetectComparison as DetectComparison
    from uncanny.eval.detect.score import DetectScore as DetectScore
    from uncanny.eval.detect.score import detect_scores as detect_scores
    from uncanny.eval.report import report as report
    from uncanny.exports.reading import ImportResult as ImportResult
    from uncanny.exports.reading import import_annotations as import_annotations
    from uncanny.exports.reading import import_reviews as import_reviews
    from uncanny.exports.run import ExportResult as ExportResult
    from uncanny.exports.run import export as export
    from uncanny.models.base import AnswerSchema as AnswerSchema
    from uncanny.models.base import Capabilities as Capabilities
    from uncanny.models.base import Message as Message
    from uncanny.models.base import ModelRequest as ModelRequest
    from uncanny.models.base import ModelResponse as ModelResponse
    from uncanny.models.base import Provider as Provider
    from uncanny.models.base import Sampling as Sampling
    from uncanny.models.base import SentImage as SentImage
    from uncanny.models.base import Tokens as Tokens
    from uncanny.models.registry import register_provider as register_provider
    from uncanny.records.run_manifest import RunManifest as RunManifest
    from uncanny.runs.stop import Stop as Stop
    from uncanny.schema import Annotation as Annotation
    from uncanny.schema import Anomaly as Anomaly
    from uncanny.schema import Detection as Detection
    from uncanny.schema import Pixels as Pixels
    from uncanny.schema import SceneObject as SceneObject
    from uncanny.schema import StepError as StepError
    from uncanny.schema import Usage as Usage
    from uncanny.service.client import Client as Client
    from uncanny.service.client import ClientJob as ClientJob
    from uncanny.session.annotator import Annotator as Annotator
    from uncanny.session.annotator import BlockingAnnotator as BlockingAnnotator
    from uncanny.session.annotator import annotate_image as annotate_image
    from uncanny.session.annotator import annotate_image_async as annotate_image_async
    from uncanny.session.annotator import detect_image as detect_image
    from uncanny.session.annotator import detect_image_async as detect_image_async


def lazy_names(
    module: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a `module` that loads each name when it is first used.

    `homes` has the names by the module they lie in; those that lie in `module` itself are modules.
    """
    places = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = places[name]
        value = import_module(f"{home}.{name}") if home == module else getattr(import_module(home), name)
        setattr(sys.modules[module], name, value)
        return value

    listed = {*places, "__version__"} if module == __name__ else places
    return sorted(places), load, lambda: sorted(listed)


# The same names as above, for Python: type checkers read no tables.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "uncanny": "artifacts edits errors extend mcq realism semantic",
        "uncanny.agents.config": "AnnotateConfig",
        "uncanny.client.calls": "CallRecord",
        "uncanny.errors": "UncannyError",
        "uncanny.annotation.forecast": "AnnotateForecast annotate_forecast",
        "uncanny.annotation.picture": "FindingsPicture",
        "uncanny.annotation.run": "AnnotateRun annotate annotate_async",
        "uncanny.eval.audit.run": "audit audit_async",
        "uncanny.eval.audit.score.result": "AuditResult",
        "uncanny.eval.common.estimates": "Estimate Share",
        "uncanny.eval.common.run_result": "RunSummary",
        "uncanny.eval.compare.score.figures": "Paired",
        "uncanny.eval.compare.score.result": "CompareResult Comparison",
        "uncanny.eval.compare.score.score": "compare",
        "uncanny.eval.detect.forecast": "DetectForecast detect_forecast",
        "uncanny.eval.detect.run": "DetectRun detect detect_async",
        "uncanny.eval.detect.score": "DetectComparison DetectScore detect_scores",
        "uncanny.exports.reading": "ImportResult import_annotations import_reviews",
        "uncanny.exports.run": "ExportResult export",
        "uncanny.eval.report": "report",
        "uncanny.session.annotator": (
            "Annotator BlockingAnnotator annotate_image annotate_image_async detect_image detect_image_async"
        ),
        "uncanny.models.base": "AnswerSchema Capabilities Message ModelRequest ModelResponse Provider "
        "Sampling SentImage Tokens",
        "uncanny.models.registry": "register_provider",
        "uncanny.records.run_manifest": "RunManifest",
        "uncanny.runs.stop": "Stop",
        "uncanny.schema": "Annotation Anomaly Detection Pixels SceneObject StepError Usage",
        "uncanny.service.client": "Client ClientJob",
    },
)
