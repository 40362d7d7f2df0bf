"""`grounder`: reward fine-tuning (GRPO) of a vision-language model that says where artifacts are.

Source: X-AIGD, appendix C.3: the model says whether an image is generated and lists artifacts with boxes and
categories; rewards for class, boxes and format. The paper gives no hyperparameters: defaults are ours. It
does not say whether all weights were trained; here low-rank adapters are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from uncanny.answers.boxes import BOX_FORMATS, box_format
from uncanny.errors import UsageError
from uncanny.eval.common.published import published
from uncanny.learn.common.card import write_card
from uncanny.learn.common.held_out import check_apart, sample
from uncanny.learn.common.language import LanguageModel
from uncanny.learn.common.machine import begin_memory, device_of, machine_words, require
from uncanny.learn.common.report import relative
from uncanny.learn.common.result import LearnRun
from uncanny.learn.common.session import LearnSession, training
from uncanny.learn.grounding.data import GroundedImage, Question, read_images, size_sent
from uncanny.learn.grounding.parameters import GrounderParameters
from uncanny.learn.grounding.rewards import REWARDS, Grounded, Size, mean_rewards, read_answer
from uncanny.models.compute import quiet_libraries
from uncanny.parameters import path_of, takes
from uncanny.protocol import protocols
from uncanny.records.jsonl import write_named
from uncanny.runs.display import counting
from uncanny.schema import ARTIFACT_CATEGORIES
from uncanny.wording import counted, option

TASK: Final = "learn_grounder"
_ABOUT: Final = """\
Says of an image whether it was generated, and where its artifacts are: a category and a box for each."""
_USE: Final = """\
Load the adapter onto the base model, or serve both with vLLM. The model was trained to answer one question,
which `question.md` of the run has."""
_LIMITS: Final = (
    "It was trained on the images above only, to give answers that are rewarded: they may still be wrong.",
    "An image without artifacts in its answer is not shown to be real.",
)


@takes(GrounderParameters)
def grounder(data: str | PathLike[str], parameters: GrounderParameters) -> LearnRun:
    """Train a vision-language model to locate artifacts, by rewards for its own answers (GRPO).

    `data` are images with artifacts in any form that `artifacts.load` reads: a run, `artifacts.jsonl`,
    labelme, COCO or masks. Each step samples several answers about an image, rewards each for its form, for
    saying whether the image is generated, and for its boxes, and makes the better ones likelier. The same
    call resumes a run that was interrupted or killed from its last checkpoint.

    `out` gets `model`, an adapter or the merged model with a model card, `steps.jsonl`, `results.json`,
    `examples.jsonl` and `run.json`.

    Returns the run, also if it was interrupted. Raises UsageError for data or a model that cannot be used,
    and where a package of the extra `learn` is missing; UncannyError where training changed nothing.

    >>> run = uncanny.learn.grounder(  # doctest: +SKIP
    ...     "truth/artifacts.jsonl", base="models/qwen2.5-vl", out="runs/grounder"
    ... )
    >>> run.state, run.steps[-1].loss  # doctest: +SKIP
    ('finished', 0.71)
    """
    require(protocols()[TASK].packages)
    if parameters.batch * parameters.accumulate % parameters.group:
        both = f"{option('batch')} × {option('accumulate')}"
        raise UsageError(
            f"{option('group')}, {parameters.group}, does not divide {both}", remedy="Change one of them."
        )
    files = {"train": path_of("data", data)}
    if parameters.held_out is not None:
        files["test"] = Path(parameters.held_out)
    root = None if parameters.root is None else Path(parameters.root)
    images = {name: read_images(path, root) for name, path in files.items()}
    check_apart(*([each.traces for each in images.get(name, ())] for name in ("train", "test")))
    with training(TASK, parameters, data=files, plan={}) as session:
        if not session.finished:
            with quiet_libraries():
                _train(session, parameters, images)
    run = LearnRun(session.path)
    if run.state == "finished" and session.writes:
        library = "transformers" if run.manifest.plan["whole_model"] else "peft"
        write_card(
            run, title="Grounder: locates artifacts", about=_ABOUT, use=_USE, library=library, limits=_LIMITS
        )
    return run


def _train(
    session: LearnSession, parameters: GrounderParameters, images: Mapping[str, Sequence[GroundedImage]]
) -> None:
    from uncanny.learn.common.trainer import RunCallback, train

    device = device_of(parameters)
    model = LanguageModel(parameters, device)
    name = parameters.box_format
    question = Question(box_format(Path(parameters.base).name) if name is None else BOX_FORMATS[name])
    held_out = sample(
        images.get("test", ()), lambda each: each.truth.source, parameters.max_measured, parameters.seed
    )
    before = _answers(model, question, held_out, parameters, "answers before")
    if session.writes:
        example = images["train"][0]
        asked = question.ask(size_sent(model.processor, example.picture()))
        write_named(session.path / "question.md", [asked.encode()])
    model.add_adapter(parameters, parameters.dropout, parameters.seed)
    begin_memory(device)
    with counting("steps", enabled=parameters.progress) as shown:
        callback = RunCallback(session, device, (lambda *_: None) if shown is None else shown.reach)
        trainer = _trainer(model, parameters, session, device, question, images["train"], callback)
        train(trainer, session, callback)
    model.model = trainer.model
    counts = model.counts()  # before a merge, after which nothing is trainable
    if session.writes:
        model.save(session.model, merge=parameters.whole_model)
    after = _answers(model, question, held_out, parameters, "answers after")
    session.write_examples(
        [
            {
                "image": relative(each.file, session.path),
                "wanted": question.answer(
                    each.truth, sent=size_sent(model.processor, each.picture()), original=each.size
                ),
                "before": first,
                "after": second,
            }
            for each, first, second in list(zip(held_out, before, after, strict=True))[
                : parameters.before_and_after
            ]
        ]
    )
    session.write_results(
        {
            "examples": {name: len(each) for name, each in images.items()},
            **counts,
            "machine": machine_words(device),
            "figures": _compared(model, question, held_out, before, after),
            "notes": _notes(images, held_out),
            "published": published_rows(),
        }
    )


def _notes(images: Mapping[str, Sequence[GroundedImage]], measured: Sequence[GroundedImage]) -> list[str]:
    notes = [
        f"Measured on {len(measured):,} of {counted(len(images.get('test', ())), 'held-out image')}, 0 to 1, "
        "higher is better."
    ]
    unknown = sum(each.truth.artifacts is None for each in images["train"])
    unknown_measured = sum(each.truth.artifacts is None for each in measured)
    if unknown or unknown_measured:
        notes.append(
            f"The artifacts of {counted(unknown, 'training image')} and {unknown_measured:,} of the measured "
            "ones are unknown: their boxes have no reward."
        )
    return notes


def reward_functions(
    question: Question, images: Sequence[GroundedImage], sizes: Sequence[Size]
) -> list[Callable[..., list[float | None]]]:
    """The rewards as TRL calls them, each with its name. `sizes` are those that the model sees."""

    def of(
        name: Any, reward: Callable[[Grounded | None, Grounded], float | None]
    ) -> Callable[..., list[float | None]]:
        def rewarded(completions: Sequence[Any], number: Sequence[int], **_: Any) -> list[float | None]:
            values: list[float | None] = []
            for completion, place in zip(completions, number, strict=True):
                image = images[place]
                text = completion if isinstance(completion, str) else _text(completion)
                answer = read_answer(text.strip(), question.form, sent=sizes[place], original=image.size)
                values.append(reward(answer, image.truth))
            return values

        rewarded.__name__ = str(name)
        return rewarded

    return [of(name, reward) for name, reward in REWARDS.items()]


def _text(completion: Sequence[Mapping[str, Any]]) -> str:
    content = completion[-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _trainer(
    model: LanguageModel,
    parameters: GrounderParameters,
    session: LearnSession,
    device: Any,
    question: Question,
    images: Sequence[GroundedImage],
    callback: Any,
) -> Any:
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from uncanny.learn.common.trainer import trainer_settings

    sizes = [size_sent(model.processor, each.picture()) for each in images]
    settings = trainer_settings(parameters, session, device) | {
        "num_train_epochs": parameters.epochs,
        "per_device_train_batch_size": parameters.batch,
        "gradient_accumulation_steps": parameters.accumulate,
        "learning_rate": parameters.learning_rate,
        "gradient_checkpointing": parameters.recompute,
        "num_generations": parameters.group,
        "max_completion_length": parameters.answer_tokens,
        "temperature": parameters.temperature,
        "beta": parameters.kl_weight,
        "remove_unused_columns": False,
    }
    return GRPOTrainer(
        model=model.model,
        reward_funcs=reward_functions(question, images, sizes),
        args=GRPOConfig(**settings),
        train_dataset=data_set_of(question, images, sizes),
        processing_class=model.processor,
        callbacks=[callback],
    )


def data_set_of(question: Question, images: Sequence[GroundedImage], sizes: Sequence[Size]) -> Any:
    """The questions as TRL takes them; pictures are read when a batch is made."""
    from datasets import Dataset

    def rows(batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        numbers = batch["number"]
        return {
            "number": list(numbers),
            "prompt": [[{"role": "user", "content": question.ask(sizes[number])}] for number in numbers],
            "images": [[images[number].picture()] for number in numbers],
        }

    return Dataset.from_dict({"number": list(range(len(images)))}).with_transform(rows)


def _answers(
    model: LanguageModel,
    question: Question,
    images: Sequence[GroundedImage],
    parameters: GrounderParameters,
    unit: str,
) -> list[str]:
    answers = []
    with counting(unit, enabled=parameters.progress) as shown:
        if shown is not None:
            shown.begin(len(images))
        for image in images:
            picture = image.picture()
            asked = {"role": "user", "content": question.ask(size_sent(model.processor, picture))}
            answers.append(model.answer([asked], [picture], parameters.answer_tokens))
            if shown is not None:
                shown.one()
    return answers


def _compared(
    model: LanguageModel,
    question: Question,
    images: Sequence[GroundedImage],
    before: Sequence[str],
    after: Sequence[str],
) -> Mapping[str, Mapping[str, float | None]]:
    if not images:
        return {}
    sizes = [size_sent(model.processor, each.picture()) for each in images]

    def rewards(answers: Sequence[str]) -> Mapping[Any, float | None]:
        read = [
            read_answer(text, question.form, sent=size, original=image.size)
            for text, size, image in zip(answers, sizes, images, strict=True)
        ]
        return mean_rewards(read, [each.truth for each in images])

    first, second = rewards(before), rewards(after)
    return {f"reward: {name}": {"before": first[name], "after": second[name]} for name in first}


def published_rows() -> Mapping[str, Any]:
    """Table 12 of the paper: F1 of instances by category, before and after, for `results.json`."""
    table = published("artifact_scores")
    rows = [
        [row["model"], *(row[name] for name in ARTIFACT_CATEGORIES)]
        for row in table["vlm_instance_f1_at_0.5"]
    ]
    note = (
        f"{table['source']}. Instance-level F1 at t = 0.5, in percent: not the rewards above. "
        "`uncanny artifacts score` measures it."
    )
    return {"columns": list(ARTIFACT_CATEGORIES), "rows": rows, "note": note}
