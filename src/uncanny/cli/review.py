"""`uncanny review`: a page on this machine, on which people judge the findings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncanny.cli.command import Command
from uncanny.cli.options import PATH, Whole
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.service.review.queue import Order


@click.command("review", cls=Command)
@click.argument("run", type=PATH)
@click.option(
    "--reviewer", metavar="NAME", help="Whose verdicts they are.  [default: the page asks, and remembers]"
)
@click.option(
    "--order",
    type=click.Choice(["uncertain", "file"]),
    default="uncertain",
    show_default=True,
    help="What comes first: findings that need a look most, or image by image as in the file.",
)
@click.option(
    "--per-finding",
    type=Whole(1, 1000),
    default=None,
    help="Verdicts that are enough for a finding, unless they tie.  [default: everybody judges all]",
)
@click.option(
    "--port",
    type=Whole(0, 65_535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
def command(
    run: Path, reviewer: str | None, order: Order, per_finding: int | None, port: int, opens: bool
) -> None:
    """Judge the findings of RUN on a local page, one key a verdict: accept, reject, unsure.

    Verdicts, edited texts, boxes and added findings go to RUN/reviews.jsonl, an append-only log; nothing else
    of the run changes. Several people may review one run, also at the same time. The first line printed is
    `listening on http://127.0.0.1:PORT`; Ctrl-C ends it. Needs the extra: pip install 'uncanny[review]'.

    \b
    Keys: a accept, r reject, u unsure, z undo, j/k next and previous finding, n/p image,
    e edit, b box, m add what was missed, ? all keys.
    """
    if reviewer is not None and not 1 <= len(reviewer.strip()) <= 200:
        raise UsageError("--reviewer has to be a name of 1 to 200 characters")
    try:
        from uncanny.service.listen import serve
        from uncanny.service.review.pages import review_app
        from uncanny.service.review.run import ReviewRun
        from uncanny.service.safety import Guard
    except ModuleNotFoundError as error:
        raise UsageError(
            f"`uncanny review` needs {error.name}", remedy="Install it: pip install 'uncanny[review]'."
        ) from error

    app = review_app(
        ReviewRun.open(run, per_finding=per_finding),
        reviewer=None if reviewer is None else reviewer.strip(),
        order=order,
    )
    serve(Guard(app), port, ready=_open if opens else lambda _: None)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
