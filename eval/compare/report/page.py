"""The HTML page of comparisons: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from pathlib import Path

from uncanny.eval.common.page import write_result_page
from uncanny.eval.compare.score.result import CompareResult


def write_compare_page(
    result: CompareResult, path: Path, *, title: str | None = None, max_images: int = 300
) -> Path:
    """Write the page to `path` and return it."""
    return write_result_page(
        result,
        path,
        title=title or "Comparison",
        lead=result.comparisons[0].headline,
        facts={},
        n_inputs=max_images,
    )
