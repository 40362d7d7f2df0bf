"""The audit log for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from uncanny.service.api.auth import for_operators
from uncanny.service.api.errors import answers
from uncanny.service.api.routes import Kept


class AuditAnswer(BaseModel):
    """A change: who did what to which subject, when and from which address."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    seq: Annotated[int, Field(examples=[17])]
    at: datetime
    who: Annotated[str, Field(examples=["ann"])]
    role: Annotated[str, Field(examples=["operator"])]
    action: Annotated[str, Field(examples=["cancel"])]
    subject: Annotated[str | None, Field(examples=["job_aaaaaaaaaaaaaaaaaaaa"])]
    address: Annotated[str | None, Field(examples=["127.0.0.1"])]
    details: dict[str, Any]


class AuditPage(BaseModel):
    """Changes, the newest first."""

    model_config = ConfigDict(frozen=True)

    lines: list[AuditAnswer]
    next: int | None


def add_audit_routes(api: APIRouter) -> None:
    @api.get(
        "/audit",
        tags=["service"],
        summary="Who changed what",
        dependencies=for_operators,
        response_model=AuditPage,
        responses=answers(400, 401, 403, 422, 429),
    )
    def audit(
        service: Kept,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[int | None, Query(ge=1, le=2**62, description="`next` of the page before.")] = None,
    ) -> Any:
        """Every change that was done, and every login that failed; the newest first."""
        lines, following = service.audit.page(limit=limit, before=before)
        return {"lines": lines, "next": following}
