"""Training in the table of protocols."""

from __future__ import annotations

from functools import partial

from uncanny.protocol import Input, Protocol

_CHATS = Input(
    "data",
    "chats",
    "Chats of `uncanny export --to sft` or `sft-detect`: the folder, or its train.jsonl.",
    bundled=False,
)
_training = partial(
    Protocol,
    makes="run",
    records="steps.jsonl",
    unit="steps",
    record="uncanny.learn.common.steps:StepRecord",
    page="uncanny.learn.common.report:page_of",
    then=("report",),
    packages=("torch", "transformers", "trl", "peft"),
)

PROTOCOLS = (
    _training(
        name="learn_reasoner",
        command=("learn", "reasoner"),
        title="Train a reasoner",
        summary="Train a vision-language model to list anomalies, on verified annotations.",
        takes="uncanny.learn.reasoning.parameters:ReasonerParameters",
        input=_CHATS,
        run="uncanny.learn.reasoning.run:reasoner",
    ),
)
