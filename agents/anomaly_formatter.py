"""AnomalyFormatter: the quadruples, out of the findings about all objects.

Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext, as_json
from uncanny.agents.steps import FORMAT
from uncanny.answers import Finding
from uncanny.schema import Anomaly


async def format_anomalies(
    image: ImageContext[AnnotateConfig], findings: Sequence[Finding]
) -> tuple[Anomaly, ...]:
    """Merged and verified quadruples. Without findings no call is made, and the answer is empty."""
    if not findings:
        return ()
    limit = image.config.formatter_output_tokens
    return await image.items(FORMAT, max_output_tokens=limit, findings=as_json(findings))
