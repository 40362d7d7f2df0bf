"""Measuring edits in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "edits_measure",
        ("edits", "measure"),
        "Measure edits",
        "Measure how much edits changed, and where.",
        "uncanny.eval.edits.parameters:MeasureParameters",
        Input("pairs", "pairs", "A file of pairs, or `scenes`. Or name two folders under “More options”."),
        makes="scores",
        csv_head="uncanny.eval.edits.result:HEADS",
        records="edits.jsonl",
        records_at="out",
    ),
    Protocol(
        "perturb",
        ("edits", "perturb"),
        takes="uncanny.eval.edits.run.parameters:PerturbParameters",
        prompts=("edits",),
        report=False,
    ),
    Protocol(
        "prompts",
        ("edits", "prompts"),
        takes="uncanny.eval.edits.run.parameters:PromptsParameters",
        prompts=("edits",),
        report=False,
    ),
    Protocol("edits_people", ("edits", "people"), takes="uncanny.parameters:Parameters", report=False),
    Protocol("edits_rate", ("edits", "rate"), takes="uncanny.parameters:Parameters", report=False),
)
