"""AnomalyFormatter: the quadruples, out of the findings about all objects.

Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from uncanny.agents.context import as_json
from uncanny.agents.state import AnnotateState, Context, findings_of
from uncanny.agents.steps import FORMAT


async def format_anomalies(state: AnnotateState, image: Context) -> AnnotateState:
    """`anomalies`: merged and verified quadruples. Without findings no call is made, and there are none."""
    findings = findings_of(state)
    if not findings:
        return {"anomalies": []}
    limit = image.config.formatter_output_tokens
    verified = await image.items(FORMAT, max_output_tokens=limit, findings=as_json(findings))
    return {"anomalies": list(verified)}
