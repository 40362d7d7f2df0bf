"""The bundled sample scenes: pairs of pictures with and without a deliberate anomaly, and their truth."""

from uncanny.scenes.library import scene_by_sha256, scenes
from uncanny.scenes.truth import AnomalyTruth, McqTruth, Scene, SceneTruthObject

__all__ = ["AnomalyTruth", "McqTruth", "Scene", "SceneTruthObject", "scene_by_sha256", "scenes"]
