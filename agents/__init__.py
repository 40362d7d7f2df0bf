"""One file an agent: what it is asked, what it returns. `steps` says how often, `context` asks."""

from uncanny.agents.config import AnnotateConfig, DetectConfig
from uncanny.agents.context import AgentContext, ImageContext
from uncanny.agents.steps import ROLES, Agent, ListStep, Step
from uncanny.errors import StepFailedError

__all__ = [
    "ROLES",
    "Agent",
    "AgentContext",
    "AnnotateConfig",
    "DetectConfig",
    "ImageContext",
    "ListStep",
    "Step",
    "StepFailedError",
]
