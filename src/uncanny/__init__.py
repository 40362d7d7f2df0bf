"""uncanny: what is wrong with an AI-generated image, at the scale of a data set, proved with numbers.

::

    import uncanny

    annotation = uncanny.annotate_image("photo.jpg", model="openai/gpt-4o")
    run = uncanny.annotate("photos/", model="openai/gpt-4o", out="runs/a", max_cost_usd=20)
    print(run.summary.cost_usd, run.report())

What `__all__` names is the public interface. Each name is loaded when it is first used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import getsource
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from uncanny import artifacts as artifacts
    from uncanny import edits as edits
    from uncanny import errors as errors
    from uncanny import extend as extend
    from uncanny import learn as learn
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
    from uncanny.eval.detect.run import DetectForecast as DetectForecast
    from uncanny.eval.detect.run import DetectRun as DetectRun
    from uncanny.eval.detect.run import detect as detect
    from uncanny.eval.detect.run import detect_async as detect_async
    from uncanny.eval.detect.run import detect_forecast as detect_forecast
    from uncanny.eval.detect.score import DetectComparison as DetectComparison
    from uncanny.eval.detect.score import DetectScore as DetectScore
    from uncanny.eval.detect.score import detect_scores as detect_scores
    from uncanny.eval.merge.result import MergeResult as MergeResult
    from uncanny.eval.merge.run import merge as merge
    from uncanny.eval.report import report as report
    from uncanny.eval.trust.draw import SampleResult as SampleResult
    from uncanny.eval.trust.draw import sample as sample
    from uncanny.eval.trust.score import TrustResult as TrustResult
    from uncanny.eval.trust.score import trust as trust
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
    from uncanny.records.calibration import Calibration as Calibration
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


def lazy_names(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a `module` that loads each name when it is first used.

    The names are those that the module imports for type checkers, each as `from HOME import NAME as NAME`.
    A name whose home is the module itself is a module in it.
    """
    homes = {
        alias.name: node.module or ""
        for node in ast.walk(ast.parse(getsource(sys.modules[module])))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{home}.{name}") if home == module else getattr(import_module(home), name)
        setattr(sys.modules[module], name, value)
        return value

    listed = {*homes, "__version__"} if module == __name__ else homes
    return sorted(homes), load, lambda: sorted(listed)


__all__, __getattr__, __dir__ = lazy_names(__name__)
