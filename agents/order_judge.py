"""OrderJudge: the second check, on both images in one order. Which one is more realistic?"""

from __future__ import annotations

from typing import Literal

from uncanny.agents.verdict import ROLES, Check, Judged, Judging, judged
from uncanny.answers.realism_verdict import Position, read_position
from uncanny.models.base import SentImage

Order = Literal["original_first", "edited_first"]
ORDERS: tuple[Order, Order] = ("original_first", "edited_first")
CHECK: Check[Position] = Check(ROLES["order"], "second_check", "`First`, `Second` or `Both`", read_position)


async def judge_order(
    order: Order, original: SentImage, edited: SentImage, judging: Judging
) -> Judged[Position]:
    """Raises ModelUnusableError or BudgetError."""
    images = (original, edited) if order == "original_first" else (edited, original)
    return await judged(CHECK, order, images, judging)
