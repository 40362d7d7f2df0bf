"""`uncanny fake-server`: the options, handed to the server."""

from __future__ import annotations

import click

from uncanny.cli.command import Command
from uncanny.cli.options import SEED, Real, Whole


@click.command("fake-server", cls=Command)
@click.option(
    "--port",
    type=Whole(0, 65_535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--latency-ms", type=Real(0, 3.6e6), default=0.0, show_default=True, help="Time before each answer."
)
@click.option(
    "--jitter-ms",
    type=Real(0, 3.6e6),
    default=0.0,
    show_default=True,
    help="Random part on top, at most this much.",
)
@click.option(
    "--faults",
    default="",
    metavar="NAME=RATE,…",
    help="Shares of answers that go wrong: 429, 429-retry-after, 500, 529, hang, cut, truncated-json, "
    "malformed, refusal, length.",
)
@click.option(
    "--objects",
    type=Whole(1, 200),
    default=8,
    show_default=True,
    help="Objects made up for an unknown image.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same faults.")
@click.option(
    "--max-seconds", type=Real(0, 1e8, above=True), default=None, help="Stop after so long. [default: never]"
)
def command(
    port: int,
    latency_ms: float,
    jitter_ms: float,
    faults: str,
    objects: int,
    seed: int,
    max_seconds: float | None,
) -> None:
    """Serve the OpenAI and the Anthropic protocol on this machine, to dry-run a pipeline.

    Answers come from the bundled scenes; for other images they are made up and marked as synthetic.
    The first line printed is `listening on http://127.0.0.1:PORT`. GET /stats counts what was asked.

    \b
    Use it, in another terminal, after `uncanny fake-server --port 8766` in this one:
      OPENAI_API_KEY=any uncanny annotate photos/ --model openai/any \\
          --base-url http://127.0.0.1:8766/v1 -o runs/dry
    """
    from uncanny.demo.server.app import FakeServerOptions, parse_faults, serve

    serve(
        FakeServerOptions(
            port=port,
            latency_ms=latency_ms,
            jitter_ms=jitter_ms,
            faults=parse_faults(faults),
            objects=objects,
            seed=seed,
            max_seconds=max_seconds,
        )
    )
