"""RealismJudge: the first check, on the edited image alone. Is it realistic?"""

from __future__ import annotations

from uncanny.agents.verdict import ROLES, Check, Judged, Judging, judged
from uncanny.answers.realism_verdict import Realistic, read_realistic
from uncanny.models.base import SentImage

CHECK: Check[Realistic] = Check(ROLES["realism"], "first_check", "`Yes` or `No`", read_realistic)


async def judge_realism(edited: SentImage, judging: Judging) -> Judged[Realistic]:
    """Raises ModelUnusableError or BudgetError."""
    return await judged(CHECK, "first", (edited,), judging)
