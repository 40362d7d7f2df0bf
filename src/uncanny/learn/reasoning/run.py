"""`reasoner`: LoRA fine-tuning of a vision-language model on exported chats.

Source: AnomReason, appendix C.1 (AnomReasonor): adapters of rank 8 on the query, key and value projections of
every fourth layer of the language model, the vision tower frozen; dropout 0.5 for one turn and 0.9 for two;
1 epoch, batch 4, accumulation 8; 50,176 to 614,656 pixels an image. The paper says neither alpha nor the
learning rate, nor which of four layers: the first two are parameters, and of four layers we take the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.learn.common.chats import TEST, Chat, chats_file, read_chats
from uncanny.learn.common.held_out import Traces, check_apart, sample
from uncanny.learn.common.language import LanguageModel
from uncanny.learn.common.machine import begin_memory, device_of, machine_words, require
from uncanny.learn.common.result import LearnRun
from uncanny.learn.common.session import LearnSession, training
from uncanny.learn.reasoning.card import PROMPTS, write_reasoner_card
from uncanny.learn.reasoning.data import (
    Example,
    Fitted,
    data_set_of,
    examples_of,
    fit,
    questions,
    row_of,
    split_entries,
)
from uncanny.learn.reasoning.measure import Case, answers_of, cases_of, figures_of, published_rows
from uncanny.learn.reasoning.parameters import ReasonerParameters
from uncanny.models.compute import quiet_libraries
from uncanny.parameters import path_of, takes
from uncanny.protocol import protocols
from uncanny.records.jsonl import write_named
from uncanny.runs.display import counting
from uncanny.wording import counted

TASK: Final = "learn_reasoner"
DROPOUT, DROPOUT_TWO_TURNS = 0.5, 0.9


@takes(ReasonerParameters)
def reasoner(data: str | PathLike[str], parameters: ReasonerParameters) -> LearnRun:
    """Train a vision-language model to list the anomalies of images, on verified annotations (AnomReasonor).

    `data` are chats that `export` wrote as `sft` or `sft-detect`: the folder, or its train.jsonl. The loss is
    on the tokens of the answers only. A chat over the token limit is divided, and never cut. The same call
    resumes a run that was interrupted or killed from its last checkpoint, with the same result as if it had
    not been.

    `out` gets `model`, an adapter or the merged model with a model card; `prompts`, with which `detect` asks
    what the model was trained on; `steps.jsonl`, `results.json`, `examples.jsonl` and `run.json`.

    Returns the run, also if it was interrupted. Raises UsageError for data or a model that cannot be used,
    and where a package of the extra `learn` is missing; UncannyError where training changed nothing.

    >>> run = uncanny.learn.reasoner(  # doctest: +SKIP
    ...     "data/a/sft", base="models/qwen2.5-vl", out="runs/reasoner"
    ... )
    >>> run.state, run.steps[-1].loss  # doctest: +SKIP
    ('finished', 0.71)
    """
    require(protocols()[TASK].packages)
    file = chats_file(path_of("data", data))
    held_out = _held_out(file, parameters)
    files = {"train": file} | ({} if held_out is None else {"test": held_out})
    chats = {name: read_chats(path) for name, path in files.items() if name == "train" or path.stat().st_size}
    roots = {name: Path(parameters.root or path.parent) for name, path in files.items()}
    check_apart(*([_traces(each, roots[name]) for each in chats.get(name, ())] for name in ("train", "test")))
    with training(TASK, parameters, data=files, plan={}) as session:
        if not session.finished:
            with quiet_libraries():
                _train(session, parameters, lambda name, special: _examples(chats, roots, name, special))
    run = LearnRun(session.path)
    if run.state == "finished" and session.writes:
        write_reasoner_card(run)
    return run


def _held_out(file: Path, parameters: ReasonerParameters) -> Path | None:
    if parameters.held_out is not None:
        return chats_file(Path(parameters.held_out))
    beside = file.with_name(TEST)
    return beside if beside.is_file() and beside != file else None


def _traces(chat: Chat, root: Path) -> Traces:
    shared = {f"group={chat.group}" if chat.group else "", f"sha256={chat.sha256}" if chat.sha256 else ""}
    return Traces(root / chat.images[0], frozenset(shared - {""}))


def _examples(
    chats: Mapping[str, Sequence[Any]], roots: Mapping[str, Path], name: str, special: Sequence[str]
) -> list[Example]:
    return examples_of(chats.get(name, ()), roots[name], special) if name in roots else []


def _train(
    session: LearnSession,
    parameters: ReasonerParameters,
    examples: Callable[[str, Sequence[str]], list[Example]],
) -> None:
    from uncanny.learn.common.trainer import RunCallback, train

    device = device_of(parameters)
    model = LanguageModel(parameters, device)
    special = special_tokens(model.processor.tokenizer)
    given = {name: examples(name, special) for name in ("train", "test")}
    turns = max(each.turns for each in given["train"])
    collator = _collator(model, given["train"])
    limit = parameters.max_tokens or model.tokens
    with counting("chats", enabled=parameters.progress) as shown:
        if shown is not None:
            shown.begin(sum(map(len, given.values())))
        done: Callable[[], None] = (lambda: None) if shown is None else shown.one
        count = partial(_tokens, collator)
        fitted = {name: fit(each, count, limit, done) for name, each in given.items()}
    if not fitted["train"].examples:
        raise UsageError(
            f"None of the {len(given['train']):,} chats can be trained on", remedy=_why(fitted["train"])
        )
    _write_prompts(session, questions(given["train"]))

    all_cases = cases_of([each for each in given["test"] if each.key not in fitted["test"].unreadable])
    cases = sample(
        all_cases, lambda each: bool(split_entries(each.wanted)), parameters.max_measured, parameters.seed
    )
    before = _answers(model, cases, parameters, "answers before")
    dropout = parameters.dropout
    if dropout is None:
        dropout = DROPOUT if turns == 1 else DROPOUT_TWO_TURNS
    model.add_adapter(parameters, dropout, parameters.seed)
    begin_memory(device)
    with counting("steps", enabled=parameters.progress) as shown:
        callback = RunCallback(session, device, (lambda *_: None) if shown is None else shown.reach)
        trainer = _trainer(model, parameters, session, device, collator, fitted["train"].examples, callback)
        train(trainer, session, callback)
    model.model = trainer.model
    counts = model.counts()  # before a merge, after which nothing is trainable
    if session.writes:
        model.save(session.model, merge=parameters.whole_model)
    after = _answers(model, cases, parameters, "answers after")
    session.write_examples(_shown(session, cases, before, after)[: parameters.before_and_after])
    session.write_results(
        {
            "examples": {name: len(each.examples) for name, each in fitted.items()},
            "tokens": {name: sum(each.tokens) for name, each in fitted.items()},
            "turns": turns,
            **counts,
            "machine": machine_words(device),
            "reads_pixels": model.reads_pixels,
            "figures": _compared(cases, before, after),
            "notes": _notes(model, fitted, len(cases), len(all_cases)),
            "published": published_rows(),
        }
    )


def special_tokens(tokenizer: Any) -> list[str]:
    """What a text must not contain; not all of them have a name or are listed by the tokenizer's settings."""
    added = (each.content for each in tokenizer.added_tokens_decoder.values() if each.special)
    return [each for each in dict.fromkeys((*tokenizer.all_special_tokens, *added)) if len(each) > 1]


def _collator(model: LanguageModel, examples: Sequence[Example]) -> Any:
    """TRL's, which makes batches with the loss on answers only.

    Where the chat template does not mark answers, and TRL does not know it, only chats of one turn can be
    trained on. Raises UsageError for others.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    processor = model.processor
    template = processor.chat_template
    if not has_generation_markers(template):
        try:
            template = get_training_chat_template(processor)
        except ValueError as error:
            if any(each.turns > 1 for each in examples):
                raise UsageError(
                    "The chat template does not mark answers, so chats of two turns cannot be trained on",
                    remedy="Export with `sft`, or put generation marks into the chat template.",
                ) from error
            return DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)
    return DataCollatorForVisionLanguageModeling(processor, assistant_only_loss=True, chat_template=template)


def _batch(collator: Any, examples: Sequence[Example]) -> Any:
    return collator([row_of(each, markers=collator.assistant_only_loss) for each in examples])


def _tokens(collator: Any, example: Example) -> int:
    """How many tokens an example has, its pictures included."""
    return int(_batch(collator, [example])["input_ids"].shape[1])


def _trainer(
    model: LanguageModel,
    parameters: ReasonerParameters,
    session: LearnSession,
    device: Any,
    collator: Any,
    examples: Sequence[Example],
    callback: Any,
) -> Any:
    from trl import SFTConfig, SFTTrainer

    from uncanny.learn.common.trainer import trainer_settings

    settings = trainer_settings(parameters, session, device) | {
        "num_train_epochs": parameters.epochs,
        "per_device_train_batch_size": parameters.batch,
        "gradient_accumulation_steps": parameters.accumulate,
        "learning_rate": parameters.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": parameters.warmup,
        "gradient_checkpointing": parameters.recompute,
        "max_length": None,  # a longer answer would be cut without a word
        "assistant_only_loss": collator.assistant_only_loss,
        "remove_unused_columns": False,
    }
    trainer = SFTTrainer(
        model=model.model,
        args=SFTConfig(**settings),
        train_dataset=data_set_of(examples, markers=collator.assistant_only_loss),
        data_collator=collator,
        processing_class=model.processor,
        callbacks=[callback],
    )
    # The mean over all answer tokens of a step, however it is divided into passes.
    trainer.model_accepts_loss_kwargs = True
    return trainer


def _answers(
    model: LanguageModel, cases: Sequence[Case], parameters: ReasonerParameters, unit: str
) -> list[str]:
    with counting(unit, enabled=parameters.progress) as shown:
        if shown is not None:
            shown.begin(len(cases))
        return answers_of(
            model, cases, parameters.answer_tokens, (lambda: None) if shown is None else shown.one
        )


def _shown(
    session: LearnSession, cases: Sequence[Case], before: Sequence[str], after: Sequence[str]
) -> list[dict[str, Any]]:
    from uncanny.learn.common.report import relative

    return [
        {
            "image": relative(case.example.images[0], session.path),
            "wanted": case.wanted,
            "before": first,
            "after": second,
        }
        for case, first, second in zip(cases, before, after, strict=True)
    ]


def _compared(
    cases: Sequence[Case], before: Sequence[str], after: Sequence[str]
) -> Mapping[str, Mapping[str, float | None]]:
    if not cases:
        return {}
    first, second = figures_of(cases, before), figures_of(cases, after)
    return {name: {"before": first[name], "after": second[name]} for name in first}


def _notes(
    model: LanguageModel,
    fitted: Mapping[str, Fitted],
    measured: int,
    held_out: int,
) -> list[str]:
    train = fitted["train"]
    notes = [
        f"Measured on {measured:,} of {counted(held_out, 'held-out image')}, by the likeliest answer of the "
        "model."
    ]
    if train.split:
        notes.append(f"{counted(train.split, 'chat')} became several, because of the token limit.")
    if train.left_out:
        notes.append(f"{counted(train.left_out, 'chat')} had one entry over the token limit, left out.")
    for name, words in (("train", "image"), ("test", "held-out image")):
        if why := list(fitted[name].unreadable.values()):
            notes.append(f"{counted(len(why), words)} could not be read, first {why[0]}.")
    if not model.reads_pixels:
        notes.append("The model shows pictures in sizes of its own: the limits on pixels had no effect.")
    return notes


def _why(fitted: Fitted) -> str:
    for why in fitted.unreadable.values():
        return f"First: {why}"
    return "Raise the token limit, or export with shorter lists."


def _write_prompts(session: LearnSession, asked: Mapping[str, str]) -> None:
    if session.writes:
        for name, text in asked.items():
            write_named(session.path / PROMPTS / f"{name}.md", [text.replace("$", "$$").encode()])
