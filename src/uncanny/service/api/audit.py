"""The audit log for operators."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query

from uncanny.service.answers import AuditPage
from uncanny.service.api.auth import for_operators
from uncanny.service.api.routes import Kept, routes

ROUTER: Final = routes("service")


@ROUTER.get("/audit", summary="Who changed what", dependencies=for_operators)
def audit(
    service: Kept,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="`next` of the page before.")] = None,
) -> AuditPage:
    """Every change that was done, and every login that failed; the newest first."""
    return service.audit.page(limit=limit, before=before)
