"""`uncanny demo` and `uncanny fake-server`: the bundled images and answers, without key, GPU or network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import check_run_folder
from uncanny.cli.common.options import PATH, Real, Whole, force_option, json_option, port_option, quiet_option
from uncanny.demo.sets import BUNDLED, SCENES


@click.command("demo", cls=Command, config=False)
@click.argument("images", type=click.Choice(BUNDLED), default=SCENES)
@click.option("-o", "--run", default=Path("runs/demo"), show_default=True, type=PATH, help="The run folder.")
@force_option
@json_option
@quiet_option
def command(images: str, run: Path, force: bool, as_json: bool, quiet: bool) -> None:
    """Annotate the bundled sample images with the built-in demo model.

    This needs no key, no GPU and no network. The demo model knows only these images, and makes a few
    documented mistakes on purpose. IMAGES is `scenes` (the default) or `large-scenes`: large pictures with
    one small fault each.
    """
    import asyncio

    from uncanny.annotation.run import annotate_async
    from uncanny.cli.annotate import AnnotateSummary
    from uncanny.cli.common.session import TerminalStop, show_end
    from uncanny.demo.scenes import scene_files
    from uncanny.records.run_folder import copy_into

    check_run_folder(run, force=force)
    copies = copy_into(run / "images", scene_files(images))
    annotated = asyncio.run(
        annotate_async(copies, model="demo", out=run, stop=TerminalStop(), progress=not quiet)
    )
    raise click.exceptions.Exit(show_end(AnnotateSummary(annotated), as_json=as_json, quiet=quiet))


@click.command("fake-server", cls=Command)
@port_option
@click.option(
    "--latency-ms", type=Real(0, 3.6e6), default=0.0, show_default=True, help="Time before each answer."
)
@click.option(
    "--jitter-ms",
    type=Real(0, 3.6e6),
    default=0.0,
    show_default=True,
    help="Maximum random time to add to it.",
)
@click.option(
    "--faults",
    default="",
    metavar="NAME=RATE,…",
    help="Shares of answers that go wrong: 429, 429-retry-after, 500, 529, overloaded, blocked, hang, cut, "
    "truncated-json, malformed, refusal, length.",
)
@click.option(
    "--at-once",
    default="",
    metavar="N[@SECONDS],…",
    help="Maximum number of open requests, from so many seconds after the first on: 40,20@10. More get a "
    "429.  [default: no limit]",
)
@click.option(
    "--batch-seconds",
    type=Real(0, 1e6),
    default=0.0,
    show_default=True,
    help="Time after which a batch ends.",
)
@click.option(
    "--batch-faults",
    default="",
    metavar="NAME=RATE,…",
    help="Shares of the lines of batches that go wrong: rejected, expired, missing, 500, malformed, refusal, "
    "length.",
)
@click.option(
    "--batch-tokens",
    type=Whole(1, 10**12),
    default=None,
    help="Maximum number of input tokens in all OpenAI batches under way.  [default: no limit]",
)
@click.option(
    "--as",
    "provider",
    metavar="PROVIDER",
    help="Provider whose OpenAI protocol to imitate (path, fields, errors), such as gemini.  [default: none]",
)
@click.option(
    "--objects",
    type=Whole(1, 200),
    default=8,
    show_default=True,
    help="Number of objects made up for an unknown image.",
)
@click.option(
    "--anomalies",
    type=Whole(0, 400),
    default=None,
    help="Maximum number of anomalies in an unknown image.  [default: two for each object]",
)
@click.option(
    "--seed",
    type=Whole(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same answers and faults.",
)
@click.option(
    "--max-seconds",
    type=Real(0, 1e8, above=True),
    default=None,
    help="Stop after this many seconds. [default: never]",
)
def fake_server_command(faults: str, batch_faults: str, at_once: str, **values: Any) -> None:
    """Serve the OpenAI and the Anthropic API on this machine without a model, to try a pipeline.

    Bundled images get prepared answers; other images get made-up answers that are marked as synthetic. The
    first line printed is `listening on http://127.0.0.1:PORT`. GET /stats returns counts of the requests.

    \b
    Use it, in another terminal, after `uncanny fake-server --port 8766` in this one:
      OPENAI_API_KEY=any uncanny annotate photos/ --model openai/any \\
          --base-url http://127.0.0.1:8766/v1 -o runs/dry
    """
    from uncanny.demo.server.app import FakeServerOptions, parse_faults, serve
    from uncanny.demo.server.faults import parse_batch_faults, parse_limits

    serve(
        FakeServerOptions(
            faults=parse_faults(faults),
            batch_faults=parse_batch_faults(batch_faults),
            at_once=parse_limits(at_once),
            **values,
        )
    )
