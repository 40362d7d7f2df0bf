"""Making, screening and asking about pairs in the table of protocols."""

from __future__ import annotations

from functools import partial

from uncanny.protocol import Input, Protocol

_input = partial(Input, "pairs", "run", bundled=False)

PROTOCOLS = (
    Protocol(
        "pairs_make",
        ("pairs", "make"),
        "Make pairs",
        "Paint over a region of each image, several times, and keep everything outside the region as it was.",
        "uncanny.eval.pairs.parameters:MakeParameters",
        Input("images", "images", "Good images: upload them, or choose a folder of the server."),
        records="candidates.jsonl",
        report=False,
        record="uncanny.eval.pairs.data:Original",
        extra="pairs",
        packages=("cv2", "diffusers"),
    ),
    Protocol(
        "pairs_screen",
        ("pairs", "screen"),
        "Screen pairs",
        "Find the candidates that people should look at.",
        "uncanny.eval.pairs.parameters:ScreenParameters",
        _input(help="The candidates that were made."),
        records="annotations.jsonl",
        prompts=("pairs",),
        report=False,
        reviewed=True,
        record="uncanny.eval.pairs.data:Screened",
    ),
    Protocol(
        "pairs_items",
        ("pairs", "items"),
        "Keep pairs",
        "Write the pairs that people kept, with drafts of questions, and a page of all candidates.",
        "uncanny.eval.pairs.parameters:ItemsParameters",
        _input(help="The candidates that were made."),
        makes="scores",
        records="items.jsonl",
        unit="items",
        csv_head="uncanny.eval.pairs.result:COLUMNS",
    ),
)
