"""`uncanny review`: a page on this machine, on which people judge the findings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, Whole
from uncanny.cli.common.pages import check_name, page_server_options, serve_page

if TYPE_CHECKING:
    from uncanny.service.review.queue import Order


@click.command("review", cls=Command, extra="review")
@click.argument("run", type=PATH)
@click.option(
    "--reviewer", metavar="NAME", help="Name of the reviewer.  [default: the page asks, and remembers]"
)
@click.option(
    "--order",
    type=click.Choice(["uncertain", "file"]),
    default="uncertain",
    show_default=True,
    help="Order of findings: most doubtful first (uncertain), or image by image as in the file (file).",
)
@click.option(
    "--per-finding",
    type=Whole(1, 1000),
    default=None,
    help="Verdicts after which a finding leaves the queue, unless they tie.  [default: everybody judges all]",
)
@page_server_options
def command(
    run: Path, reviewer: str | None, order: Order, per_finding: int | None, port: int, opens: bool
) -> None:
    """Judge the findings of RUN on a local page, one key per verdict: accept, reject, unsure.

    Verdicts, edited texts, boxes and added findings go to RUN/reviews.jsonl, an append-only log; nothing else
    in the run changes. Several people may review one run at the same time. The first line printed is
    `listening on http://127.0.0.1:PORT`; Ctrl-C ends it.

    \b
    Keys: a accept, r reject, u unsure, z undo, j/k next and previous finding, n/p image,
    e edit, b box, m add what was missed, ? all keys.
    """
    check_name(reviewer, "--reviewer")
    from uncanny.service.review.pages import ReviewSite, review_app
    from uncanny.service.review.run import ReviewRun

    app = review_app(
        ReviewSite(
            ReviewRun.open(run, per_finding=per_finding),
            reviewer=None if reviewer is None else reviewer.strip(),
            order=order,
        )
    )
    serve_page(app, port, opens=opens)
