"""`multitask`: authenticity and artifacts in one model, alone, or one after the other.

Source: X-AIGD, section 5 and appendix B.2: Swin, a linear classifier on pooled features, UPerNet with an
auxiliary FCN head of 512 channels; losses with the weights 1, 1 and 0.2; AdamW with 2e-5 for the backbone and
2e-4 for the heads; batch 16, 80,000 steps; JPEG 30–100 on generated images only, resizing by 0.5–2, crops,
flips. Deviations: the learning rate falls to 0 along a line, which the paper does not say, and the last model
is kept instead of the best of a validation set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from uncanny.detectors.folder import check_config, loading
from uncanny.detectors.multitask import MARK, Aspect
from uncanny.errors import UsageError
from uncanny.learn.common.card import detector_words, write_card
from uncanny.learn.common.machine import begin_memory, device_of, machine_words, require
from uncanny.learn.common.result import LearnRun
from uncanny.learn.common.session import LearnSession, base_folder, training
from uncanny.learn.vision.data import Alignment, Changes, class_pixels, read_splits, training_order
from uncanny.learn.vision.detector import notes_of
from uncanny.learn.vision.losses import LossWeights, class_weights
from uncanny.learn.vision.parameters import MultitaskTraining
from uncanny.models.compute import quiet_libraries
from uncanny.parameters import path_of, takes
from uncanny.protocol import protocols
from uncanny.wording import option

TASK: Final = "learn_multitask"
QUALITY: Final = (30, 100)
RESIZE: Final = (0.5, 2.0)
SIDE: Final = 512
WHERE: Final = "predicted pixels"
_ON_TOP: Final = ("probe", "transfer")
# What each task trains, and what its model says in the end: a changed backbone spoils the heads on it.
_TRAINS: Final[Mapping[str, tuple[Aspect, ...]]] = {
    "multitask": ("authenticity", "pixels"),
    "authenticity": ("authenticity",),
    "pixels": ("pixels",),
    "probe": ("authenticity",),
    "transfer": ("authenticity",),
}
_SAYS: Final[Mapping[str, tuple[Aspect, ...]]] = {**_TRAINS, "probe": ("authenticity", "pixels")}


@takes(MultitaskTraining)
def multitask(data: str | PathLike[str], parameters: MultitaskTraining) -> LearnRun:
    """Train one model to tell generated images from real ones, and to mark their artifacts by category.

    `data` is any file or folder of artifacts that `uncanny.artifacts.load` reads, in which records say if
    an image is generated or real. Generated images without regions count for authenticity alone. The same
    call resumes a run that was interrupted or killed.

    `out` gets `model`, which `uncanny artifacts run` asks by its folder, with a model card; `steps.jsonl`,
    `results.json`, `examples.jsonl` and `run.json`.

    Returns the run, also if it was interrupted. Raises UsageError for data or a model that cannot be used,
    and where a package of the extra `learn` is missing.

    >>> run = uncanny.learn.multitask(  # doctest: +SKIP
    ...     "truth/", base="models/swin-base", out="runs/multitask"
    ... )
    >>> run.state, run.steps[-1].loss  # doctest: +SKIP
    ('finished', 1.08)
    """
    require(protocols()[TASK].packages)
    path = path_of("data", data)
    files = {"train": path} | ({} if parameters.held_out is None else {"test": Path(parameters.held_out)})
    with training(TASK, parameters, data=files, plan={}) as session:
        if not session.finished:
            with quiet_libraries(reports=False):
                _train(session, parameters, path)
    run = LearnRun(session.path)
    if run.state == "finished" and session.writes:
        _write_card(run)
    return run


def _train(session: LearnSession, parameters: MultitaskTraining, data: Path) -> None:
    import torch

    from uncanny.learn.vision.loop import Samples, samples_needed, train_on
    from uncanny.learn.vision.measure import compared, figures_of, said_of, shown
    from uncanny.learn.vision.multitask_loss import MultitaskLoss, asker

    held_out = None if parameters.held_out is None else Path(parameters.held_out)
    root = None if parameters.root is None else Path(parameters.root)
    splits = read_splits(data, held_out, parameters.held_out_share, parameters.seed, root)
    device = device_of(parameters)
    torch.manual_seed(parameters.seed)
    model = _model(parameters)
    model.aspects = _SAYS[parameters.task]
    pixels = class_pixels([each for each in splits.train if each.is_annotated])
    weights = class_weights(pixels, parameters.max_weight)
    trains = _TRAINS[parameters.task]
    module = MultitaskLoss(model, trains, torch.tensor(weights), LossWeights(*parameters.loss_weights)).to(
        device
    )
    if parameters.task == "probe":
        model.segmenter.requires_grad_(False)
        module.frozen = True
    # What it is trained on is what it will see.
    side = parameters.side or model.view.shortest or SIDE
    model.view = replace(model.view, shortest=side, longest=4 * side)
    ask = asker(model)
    before = said_of(splits.test, model.view, ask, 1, device, parameters.batch)
    steps, number = samples_needed(parameters, len(splits.train), parameters.batch, None)
    samples = Samples(
        splits.train,
        training_order(splits.train, number, parameters.seed, balance=parameters.balance),
        Changes(side, QUALITY, RESIZE),
        model.square(side),
        Alignment(),
        parameters.seed,
    )
    trained, groups = _groups(module, parameters)
    module.train()
    begin_memory(device)
    train_on(
        module,
        samples,
        torch.optim.AdamW(groups),
        "linear",
        inputs=lambda rows: {name: rows[name] for name in ("pixels", "generated", "classes")},
        session=session,
        parameters=parameters,
        batch=parameters.batch,
        device=device,
    )
    after = said_of(splits.test, model.view, ask, 1, device, parameters.batch)
    if not session.writes:
        return
    model.save(session.model)
    session.write_examples(shown(session, before, after, parameters.before_and_after))
    session.write_results(
        {
            "examples": {name: len(images) for name, images in splits.named().items()},
            "steps": steps,
            "parameters": sum(each.numel() for each in module.parameters()),
            "trainable_parameters": sum(each.numel() for each in trained),
            "machine": machine_words(device),
            "class_pixels": pixels.tolist(),
            "class_weights": weights,
            "figures": compared(figures_of(before, WHERE), figures_of(after, WHERE)),
            "notes": notes_of(splits),
            "published": published_rows(),
        }
    )


def _model(parameters: MultitaskTraining) -> Any:
    """A new model on a backbone, or the multitask model that a probe or a transfer starts from."""
    import transformers

    from uncanny.detectors.multitask import Multitask
    from uncanny.detectors.views import View

    folder = base_folder(parameters)
    is_multitask = (folder / MARK).is_file()
    if parameters.task in _ON_TOP and not is_multitask:
        raise UsageError(
            f"{option('base')} must be a model that was trained for artifacts",
            remedy=f"Train one with {option('task')} pixels, and pass its folder `model`.",
        )
    with loading(folder, "a multitask model or a backbone", "Pass a Swin Transformer."):
        if is_multitask:
            return Multitask.load(folder)
        check_config(folder)
        here = {"local_files_only": True, "trust_remote_code": False}
        config = transformers.AutoConfig.from_pretrained(folder, **here)
        if len(getattr(config, "depths", ())) != 4:
            raise UsageError(
                f"{option('base')} is a {config.model_type}, which is not a backbone of four stages",
                remedy="Pass a Swin Transformer.",
            )
        return Multitask.new(config, View(shortest=SIDE), channels=parameters.head_channels, weights=folder)


def _groups(module: Any, parameters: MultitaskTraining) -> tuple[list[Any], list[dict[str, Any]]]:
    """Trained weights, and the same with the learning rate of each. Raises nothing."""
    backbone: list[Any] = []
    heads: list[Any] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            (backbone if ".backbone." in name else heads).append(parameter)
    groups = [
        {"params": some, "lr": rate}
        for some, rate in ((backbone, parameters.backbone_rate), (heads, parameters.head_rate))
        if some
    ]
    return [*backbone, *heads], groups


def published_rows() -> dict[str, Any]:
    """The rows of X-AIGD, table 2, of models that were trained on its artifacts."""
    from uncanny.eval.common.published import published

    rows = published("artifact_scores")["authenticity_and_category_agnostic"]
    columns = ("acc", "f1", "iou", "pix_p", "pix_r", "pix_f1")
    names = [each for each in rows if each["model"].startswith(("AJ", "PAD", "Transfer", "Multi"))]
    return {
        "columns": ["Acc", "F1", "IoU", "PixP", "PixR", "PixF1"],
        "rows": [[each["model"], *(each.get(name) for name in columns)] for each in names],
        "note": "X-AIGD, table 2, in percent, on its test set: other images than yours.",
    }


def _write_card(run: LearnRun) -> Path:
    """Raises OSError."""
    says = _SAYS[run.manifest.plan["task"]]
    command = "detect" if says == ("authenticity",) else "artifacts run"
    return write_card(
        run,
        title="Multitask: authenticity and artifacts of images",
        about="Says "
        + " and ".join(
            {"authenticity": "how likely an image is generated", "pixels": "which pixels are artifacts"}[each]
            for each in says
        )
        + ".",
        use=detector_words(run, command),
        library="transformers",
        limits=(
            "It was measured on the held-out images above only, and not on other generators.",
            "It marks artifacts of low level better than those of meaning or physics.",
            "Pixels that it marks were not necessarily the reason for its verdict.",
        ),
    )
