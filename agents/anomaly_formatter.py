"""AnomalyFormatter: the quadruples, out of the findings about all objects.

Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.context import ImageContext, Step, as_json
from uncanny.answers import ANOMALIES, Finding
from uncanny.schema import Anomaly


async def format_anomalies(image: ImageContext, findings: Sequence[Finding]) -> tuple[Anomaly, ...]:
    """Merged and verified quadruples. Without findings there is nothing to ask, and the answer is empty."""
    if not findings:
        return ()
    step = Step("AnomalyFormatter", 1, "format")
    return await image.items(
        step, ANOMALIES, max_tokens=image.config.formatter_output_tokens, findings=as_json(findings)
    )
