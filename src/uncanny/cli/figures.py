"""Figures as people read them; what was not measured is said to be so."""

from __future__ import annotations

NOT_PRICED = "not priced"


def count(value: float | None) -> str:
    """`1.2M`, `34k`, `560`; `?` where unmeasured."""
    if value is None:
        return "?"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (unit != "k" and value >= size):
            return f"{value / size:.1f}{unit}" if value < 100 * size else f"{value / size:.0f}{unit}"
    return f"{value:,.0f}"


def cost(value: float | None) -> str:
    if value is None:
        return NOT_PRICED
    return f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def share(part: float | None, whole: float | None) -> str:
    """Percent; `?` where unmeasured, `–` of nothing."""
    if part is None or whole is None:
        return "?"
    return f"{100 * part / whole:.0f} %" if whole else "–"


def duration(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 12 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
