"""uncanny: what is wrong with an AI-generated image, at the scale of a data set, proved with numbers.

::

    import uncanny

    annotation = uncanny.annotate_image("photo.jpg", model="openai/gpt-4o")
    run = uncanny.annotate("photos/", model="openai/gpt-4o", out="runs/a", max_cost_usd=20)
    print(run.summary.cost_usd, run.report())

What `__all__` names is the public interface. Each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from uncanny import errors, mcq, realism, semantic
    from uncanny.agents import AnnotateConfig
    from uncanny.errors import UncannyError
    from uncanny.eval.annotate.forecast import AnnotateForecast, annotate_forecast
    from uncanny.eval.annotate.run import (
        AnnotateRun,
        annotate,
        annotate_async,
        annotate_image,
        annotate_image_async,
    )
    from uncanny.eval.audit.run import audit, audit_async
    from uncanny.eval.audit.score.result import AuditResult
    from uncanny.eval.detect.forecast import DetectForecast, detect_forecast
    from uncanny.eval.detect.run import DetectRun, detect, detect_async
    from uncanny.eval.detect.score import DetectScore
    from uncanny.eval.report import report
    from uncanny.images import PixelPolicy
    from uncanny.models.base import Capabilities, ModelRequest, ModelResponse, Tokens
    from uncanny.models.registry import register_provider
    from uncanny.runs.stop import Stop
    from uncanny.schema import Annotation, Anomaly, Detection

# Where each public name is; a name without a second part is a module.
_HOMES = {
    "AnnotateConfig": "uncanny.agents:AnnotateConfig",
    "AnnotateForecast": "uncanny.eval.annotate.forecast:AnnotateForecast",
    "AnnotateRun": "uncanny.eval.annotate.run:AnnotateRun",
    "Annotation": "uncanny.schema:Annotation",
    "Anomaly": "uncanny.schema:Anomaly",
    "AuditResult": "uncanny.eval.audit.score.result:AuditResult",
    "Capabilities": "uncanny.models.base:Capabilities",
    "DetectForecast": "uncanny.eval.detect.forecast:DetectForecast",
    "DetectRun": "uncanny.eval.detect.run:DetectRun",
    "DetectScore": "uncanny.eval.detect.score:DetectScore",
    "Detection": "uncanny.schema:Detection",
    "ModelRequest": "uncanny.models.base:ModelRequest",
    "ModelResponse": "uncanny.models.base:ModelResponse",
    "PixelPolicy": "uncanny.images:PixelPolicy",
    "Stop": "uncanny.runs.stop:Stop",
    "Tokens": "uncanny.models.base:Tokens",
    "UncannyError": "uncanny.errors:UncannyError",
    "annotate": "uncanny.eval.annotate.run:annotate",
    "annotate_async": "uncanny.eval.annotate.run:annotate_async",
    "annotate_forecast": "uncanny.eval.annotate.forecast:annotate_forecast",
    "annotate_image": "uncanny.eval.annotate.run:annotate_image",
    "annotate_image_async": "uncanny.eval.annotate.run:annotate_image_async",
    "audit": "uncanny.eval.audit.run:audit",
    "audit_async": "uncanny.eval.audit.run:audit_async",
    "detect": "uncanny.eval.detect.run:detect",
    "detect_async": "uncanny.eval.detect.run:detect_async",
    "detect_forecast": "uncanny.eval.detect.forecast:detect_forecast",
    "errors": "uncanny.errors",
    "mcq": "uncanny.mcq",
    "realism": "uncanny.realism",
    "register_provider": "uncanny.models.registry:register_provider",
    "report": "uncanny.eval.report:report",
    "semantic": "uncanny.semantic",
}

__all__ = [
    "AnnotateConfig",
    "AnnotateForecast",
    "AnnotateRun",
    "Annotation",
    "Anomaly",
    "AuditResult",
    "Capabilities",
    "DetectForecast",
    "DetectRun",
    "DetectScore",
    "Detection",
    "ModelRequest",
    "ModelResponse",
    "PixelPolicy",
    "Stop",
    "Tokens",
    "UncannyError",
    "annotate",
    "annotate_async",
    "annotate_forecast",
    "annotate_image",
    "annotate_image_async",
    "audit",
    "audit_async",
    "detect",
    "detect_async",
    "detect_forecast",
    "errors",
    "mcq",
    "realism",
    "register_provider",
    "report",
    "semantic",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
