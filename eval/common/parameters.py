"""Parameters that several protocols share: how intervals are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Resamples = Annotated[
    int,
    Field(ge=0, le=1_000_000, description="Number of bootstrap resamples for 95 % intervals; 0 for none."),
]
Seed = Annotated[
    int, Field(ge=0, le=2**63 - 1, description="Seed of the bootstrap: the same seed, the same intervals.")
]
