"""Options about how images are annotated, the same in every command that annotates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from uncanny.cli.numbers import OUTPUT_TOKENS, TEMPERATURE, TOP_P, Whole

F = TypeVar("F", bound=Callable[..., Any])

PLAN = (
    *("repeats", "max_objects", "scene_scans", "temperature", "top_p"),
    *("max_output_tokens", "formatter_output_tokens"),
)
_PIXELS = [
    click.option(
        "--max-side",
        type=Whole(1, 1_000_000),
        help="Scale larger images down to this many pixels. [default: send as is]",
    ),
    click.option(
        "--image-format",
        type=click.Choice(["keep", "png", "jpeg"]),
        default="keep",
        show_default=True,
        help="Convert images; keep sends a file's own bytes where the model takes them.",
    ),
    click.option(
        "--jpeg-quality",
        type=Whole(1, 100),
        default=95,
        show_default=True,
        help="Where a JPEG has to be written.",
    ),
    click.option(
        "--max-pixels",
        type=Whole(1, 10**12),
        default=100_000_000,
        show_default=True,
        help="Larger images are not opened.",
    ),
]
_OPTIONS = [
    click.option(
        "--repeats", type=Whole(1, 100), default=3, show_default=True, help="Drafts of the object list."
    ),
    click.option(
        "--max-objects",
        type=Whole(1, 1_000),
        default=12,
        show_default=True,
        help="Most objects examined in an image.",
    ),
    click.option(
        "--scene-scans",
        type=Whole(0, 100),
        default=0,
        show_default=True,
        help="Extra looks at the image as a whole.",
    ),
    click.option(
        "--temperature",
        type=TEMPERATURE,
        default=0.3,
        show_default=True,
        help="Sent where the model takes one.",
    ),
    click.option(
        "--top-p", type=TOP_P, default=0.95, show_default=True, help="Sent where the model takes one."
    ),
    click.option(
        "--max-output-tokens",
        type=OUTPUT_TOKENS,
        default=2000,
        show_default=True,
        help="Doubled when an answer is cut off.",
    ),
    click.option(
        "--formatter-output-tokens",
        type=OUTPUT_TOKENS,
        default=5000,
        show_default=True,
        help="The same for the last step.",
    ),
    *_PIXELS,
]


def annotate_options(command: F) -> F:
    """Decorate a command with all of them."""
    return _with(_OPTIONS, command)


def pixel_options(command: F) -> F:
    """Decorate a command with those about what is done to images before they are sent."""
    return _with(_PIXELS, command)


def _with(options: Sequence[Callable[[F], F]], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def read_plan(**options: Any) -> Any:
    """`AnnotatePlan` from the command line. Raises UsageError."""
    from uncanny.agents.plan import AnnotatePlan
    from uncanny.cli.checked import checked

    return checked(AnnotatePlan, {name: options[name] for name in PLAN})


def read_policy(
    *, max_side: int | None, image_format: Any, jpeg_quality: int, max_pixels: int, **_: object
) -> Any:
    """`PixelPolicy` from the command line. Raises UsageError."""
    from uncanny.images import PixelPolicy

    return PixelPolicy(
        max_side=max_side, format=image_format, jpeg_quality=jpeg_quality, max_pixels=max_pixels
    )
