"""`batches.jsonl` of a run: what is handed in as a batch, written before and after.

So a kill in between loses no batch, and hands none in twice.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from uncanny.records.shared_log import SharedLog

BatchEvent = Literal["submitting", "submitted", "done"]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Most = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BatchEntry(BaseModel):
    """A line of `batches.jsonl`: what happens to the batch that we call `tag`.

    `submitting` comes before it is handed in, with the `model`, a digest of the address of its `server`,
    the `keys` of its lines in the answer cache, and the most `tokens` and US dollars it can take; `submitted`
    after that, with the provider's `id` of it; `done` when its answers are in the cache, or it was not taken.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tag: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    event: BatchEvent
    at: datetime
    model: str | None = None
    server: str | None = None
    keys: tuple[Key, ...] = ()
    tokens: Most = 0
    cost_usd: Most = 0
    id: str | None = None


def batch_log(path: Path) -> SharedLog[BatchEntry]:
    """The file at `path`, which need not be there."""
    return SharedLog(path, BatchEntry, lock=".batches.lock", what="batches")
