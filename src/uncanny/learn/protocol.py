"""Training in the table of protocols."""

from __future__ import annotations

from functools import partial

from uncanny.protocol import Input, Protocol

_CHATS = Input(
    "data",
    "chats",
    "Chats that `uncanny export` wrote as sft or sft-detect: the folder, or its train.jsonl.",
    bundled=False,
)
_TRUTH = Input(
    "data",
    "truth",
    "Images with artifacts: a run, artifacts.jsonl, or files of labelme, COCO or masks.",
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
    extra="learn",
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
    _training(
        name="learn_grounder",
        command=("learn", "grounder"),
        title="Train a grounder",
        summary="Train a vision-language model to locate artifacts, by rewards for its own answers.",
        takes="uncanny.learn.grounding.parameters:GrounderParameters",
        input=_TRUTH,
        run="uncanny.learn.grounding.run:grounder",
    ),
    _training(
        name="learn_detector",
        command=("learn", "detector"),
        title="Train a detector",
        summary="Train a vision transformer to tell generated images from real ones, by their artifacts.",
        takes="uncanny.learn.vision.parameters:DetectorTraining",
        input=_TRUTH,
        run="uncanny.learn.vision.detector:detector",
        packages=("torch", "transformers", "peft", "accelerate"),
    ),
    _training(
        name="learn_multitask",
        command=("learn", "multitask"),
        title="Train a multitask model",
        summary="Train one model to tell generated images from real ones and to mark their artifacts.",
        takes="uncanny.learn.vision.parameters:MultitaskTraining",
        input=_TRUTH,
        run="uncanny.learn.vision.multitask:multitask",
        packages=("torch", "transformers", "accelerate"),
    ),
)
