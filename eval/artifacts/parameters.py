"""The parameters of `uncanny.artifacts.run`."""

from __future__ import annotations

from uncanny.agents.config import ArtifactsConfig
from uncanny.runs.parameters import ImageParameters


class ArtifactsParameters(ImageParameters, ArtifactsConfig):
    """The parameters of `run`."""
