"""`reasoner`: LoRA fine-tuning on exported chats."""

from __future__ import annotations

from os import PathLike

from uncanny.learn.common.result import LearnRun
from uncanny.learn.reasoning.parameters import ReasonerParameters
from uncanny.parameters import takes


@takes(ReasonerParameters)
def reasoner(data: str | PathLike[str], parameters: ReasonerParameters) -> LearnRun:
    """Train a vision-language model to list the anomalies of images, on verified annotations."""
    raise NotImplementedError
