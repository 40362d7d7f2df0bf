"""How many images are scored, live on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uncanny.cli.terminal import harmless, on_terminal
from uncanny.eval.semantic.score_file import OnImage
from uncanny.eval.semantic.score_image import ScoredPair


@contextmanager
def image_progress(total: int, *, enabled: bool) -> Iterator[OnImage]:
    """What is to be called after each image; silent where nobody watches."""
    if not enabled or not on_terminal():
        yield lambda _name, _scored: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("images"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    told = TextColumn("{task.fields[name]}", markup=False)
    with Progress(*columns, told, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("images", total=total, name="")

        def show(name: str, _scored: ScoredPair) -> None:
            bar.update(task, advance=1, name=harmless(name))

        yield show
