"""`detector`: a vision transformer whose attention is drawn to artifacts.

Source: X-AIGD, section 6, appendix B.3 (full fine-tuning: 1e-5, batch 8, 20 epochs, β = 0.1, gradient
rollout) and D.4 (LoRA: rank 8, 1e-4 along a cosine, batch 32, β = 1, λ = 0.4, rollout). λ is chosen by
balanced accuracy on validation images, for each repeat. Deviation: these are a share of the training images;
the paper takes 1,000 further photographs with 5,000 generated images of theirs. What it does not say: the
optimizer (AdamW, as for its multi-task model), the schedule of full fine-tuning (constant), and the scale of
the adapters (twice the rank).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UncannyError, UsageError
from uncanny.learn.common.card import detector_words, write_card
from uncanny.learn.common.held_out import sample
from uncanny.learn.common.machine import begin_memory, device_of, machine_words, require
from uncanny.learn.common.result import LearnRun
from uncanny.learn.common.session import LearnSession, StopTrainingError, base_folder, training
from uncanny.learn.vision.data import Alignment, Changes, Splits, read_splits, training_order
from uncanny.learn.vision.parameters import DetectorTraining, Tuning
from uncanny.models.compute import frozen, quiet_libraries
from uncanny.parameters import path_of, takes
from uncanny.protocol import protocols
from uncanny.wording import counted, option

TASK: Final = "learn_detector"
QUALITY: Final = (60, 100)
WHERE: Final = "attention"
# The published rows of each kind of tuning, and the number of their table.
_PUBLISHED: Final[Mapping[str, tuple[str, int]]] = {"full": ("alignment", 4), "lora": ("alignment_masks", 14)}
_BALANCED: Final = "balanced accuracy"
# By how images are tuned: batch, learning rate, β, how attention is followed, and schedule.
_RECIPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "full": {
        "batch": 8,
        "learning_rate": 1e-5,
        "alignment_weight": 0.1,
        "attention": "gradient_rollout",
        "schedule": "constant",
    },
    "lora": {
        "batch": 32,
        "learning_rate": 1e-4,
        "alignment_weight": 1.0,
        "attention": "rollout",
        "schedule": "cosine",
    },
}


@takes(DetectorTraining)
def detector(data: str | PathLike[str], parameters: DetectorTraining) -> LearnRun:
    """Train a vision transformer to tell generated images from real ones by their artifacts.

    `data` is any file or folder of artifacts that `uncanny.artifacts.load` reads, in which records say if
    an image is generated or real. The same call resumes a run that was interrupted or killed.

    `out` gets `model`, a classifier of transformers with a model card, which `uncanny detect` asks by
    its folder; `steps.jsonl`, `results.json`, `examples.jsonl` and `run.json`. With several values of λ or
    repeats each training has a folder of its own in `out`. All of these have the same images; a share of the
    training images chooses the λ of each repeat and the model that is kept.

    Returns the run, also if it was interrupted. Raises UsageError for data or a model that cannot be used,
    and where a package of the extra `learn` is missing.

    >>> run = uncanny.learn.detector(  # doctest: +SKIP
    ...     "truth/", base="models/dinov2-base", out="runs/detector"
    ... )
    >>> run.state, run.steps[-1].loss  # doctest: +SKIP
    ('finished', 0.21)
    """
    require(protocols()[TASK].packages)
    path = path_of("data", data)
    files = {"train": path} | ({} if parameters.held_out is None else {"test": Path(parameters.held_out)})
    # Of an ablation: other masks are other data.
    files |= {} if parameters.masks is None else {"masks": Path(parameters.masks)}
    with training(TASK, parameters, data=files, plan={}) as session:
        if not session.finished:
            splits = _splits(parameters, path)
            with quiet_libraries(reports=False):
                if len(parameters.benign_weights) == parameters.repeats == 1:
                    _train(session, parameters, splits)
                else:
                    _train_each(session, parameters, files, splits)
    return _ended(session)


def _ended(session: LearnSession) -> LearnRun:
    run = LearnRun(session.path)
    if session.state == "finished" and session.writes:
        _write_card(run)
    return run


def _train_each(
    session: LearnSession, parameters: DetectorTraining, files: Mapping[str, Path], splits: Splits
) -> None:
    """A run for each λ and seed in its own folder, all on the same images.

    For each seed the λ is chosen, and of these models the best is kept, by images that none is trained or
    measured on.
    """
    splits = splits.with_validation(parameters.validation_share, parameters.seed)
    if len({each.generated for each in splits.validation}) < 2:
        raise UsageError(
            f"{option('benign_weights')} and {option('repeats')} need generated and real images to choose "
            "by; one kind has too few",
            remedy=f"Raise {option('validation_share')}, or add images.",
        )
    runs: dict[tuple[float, int], LearnRun] = {}
    seeds = range(parameters.seed, parameters.seed + parameters.repeats)
    for weight, seed in product(parameters.benign_weights, seeds):
        own: dict[str, Any] = {"benign_weights": (weight,), "seed": seed, "repeats": 1}
        own["out"] = session.path / f"benign-{weight:g}-seed-{seed}"
        part = DetectorTraining(**parameters.given | own)
        with training(TASK, part, data=files, plan={"split_seed": parameters.seed}) as one:
            if not one.finished:
                _train(one, part, splits)
        if one.state != "finished":
            raise StopTrainingError
        runs[weight, seed] = _ended(one)
    if not session.writes:
        return
    chosen = chosen_weights({each: _validated(run) for each, run in runs.items()})
    kept = max(seeds, key=lambda seed: _validated(runs[chosen[seed], seed]))
    best = runs[chosen[kept], kept]
    shutil.copytree(best.model, session.model, dirs_exist_ok=True)
    for name in ("steps.jsonl", "examples.jsonl"):
        shutil.copyfile(best.path / name, session.path / name)
    by_weight = {weight: _mean([runs[weight, seed] for seed in seeds]) for weight, _ in runs}
    words = ", ".join(f"{chosen[seed]:g} for seed {seed}" for seed in seeds)
    session.write_results(
        {
            **best.results,
            "figures": _mean([runs[chosen[seed], seed] for seed in seeds]),
            "chosen": {str(seed): weight for seed, weight in chosen.items()},
            "by_benign_weight": {
                f"{weight:g}": {name: each["after"] for name, each in figures.items()}
                for weight, figures in by_weight.items()
            },
            "notes": [
                f"Figures are means over {counted(parameters.repeats, 'seed')}. The λ with the best "
                f"{_BALANCED} on validation images is {words}; the model is that of {best.path.name}. "
                "Held-out images chose nothing.",
                *best.results["notes"],
            ],
        }
    )


def chosen_weights(validated: Mapping[tuple[float, int], float]) -> dict[int, float]:
    """For each seed the λ with the highest figure, by λ and seed; of equal ones the first."""
    return {
        seed: max((weight for weight, of in validated if of == seed), key=lambda each: validated[each, seed])
        for _, seed in validated
    }


def _validated(run: LearnRun) -> float:
    value: float | None = run.results["validation"][_BALANCED]
    if value is None:
        raise UncannyError(f"{run.path} has no {_BALANCED} on validation images", remedy="Train it again.")
    return value


def _mean(runs: Sequence[LearnRun]) -> dict[str, dict[str, float | None]]:
    """Figures as means over runs; None where one of them was not measured."""
    some = [run.results["figures"] for run in runs]
    means: dict[str, dict[str, float | None]] = {}
    for name in some[0]:
        means[name] = {}
        for when in ("before", "after"):
            values = [each.get(name, {}).get(when) for each in some]
            known = [value for value in values if value is not None]
            means[name][when] = sum(known) / len(known) if len(known) == len(values) else None
    return means


def _train(session: LearnSession, parameters: DetectorTraining, splits: Splits) -> None:
    import torch

    from uncanny.learn.vision.aligned import AlignmentSettings, new_detector, save_detector, view_of
    from uncanny.learn.vision.loop import Samples, artifacts_of, samples_needed, train_on
    from uncanny.learn.vision.measure import compared, figures_of, said_of, shown

    recipe = {
        name: value if (given := getattr(parameters, name, None)) is None else given
        for name, value in _RECIPES[parameters.tuning].items()
    }
    benign_weight, seed = parameters.benign_weights[0], parameters.seed
    device = device_of(parameters)
    torch.manual_seed(seed)
    rank = parameters.rank if parameters.tuning == "lora" else None
    settings = AlignmentSettings(recipe["alignment_weight"], benign_weight, recipe["attention"])
    model = new_detector(base_folder(parameters), parameters.side, settings, rank).to(device)
    view = view_of(model.side)
    # In this order some of each kind are shown.
    cases = sample(splits.test, lambda each: each.generated, len(splits.test), parameters.seed)

    def ask(pixels: Any, _: Any) -> Any:
        model.eval()
        with frozen(model):
            logits, attentions = model.look(pixels.requires_grad_())
            maps = model.attention(logits, attentions, train=False)
        return logits.detach(), maps.detach()

    before = said_of(cases, view, ask, model.patch, device)
    batch = recipe["batch"]
    steps, number = samples_needed(parameters, len(splits.train), batch, parameters.epochs)
    samples = Samples(
        splits.train,
        training_order(splits.train, number, seed, balance=parameters.balance),
        Changes(model.side, QUALITY),
        view,
        Alignment(parameters.align_to, None if parameters.masks is None else Path(parameters.masks)),
        seed,
    )
    trained = [each for each in model.parameters() if each.requires_grad]
    model.train()
    begin_memory(device)
    train_on(
        model,
        samples,
        torch.optim.AdamW(trained, lr=recipe["learning_rate"]),
        recipe["schedule"],
        inputs=lambda rows: {
            "pixels": rows["pixels"],
            "generated": rows["generated"],
            "marked": artifacts_of(rows["classes"]),
            "known": rows["known"],
        },
        session=session,
        parameters=parameters,
        batch=batch,
        device=device,
    )
    after = said_of(cases, view, ask, model.patch, device)
    validation = said_of(splits.validation, view, ask, model.patch, device)
    if not session.writes:
        return
    save_detector(model, session.model)
    session.write_examples(shown(session, before, after, parameters.before_and_after))
    session.write_results(
        {
            "examples": {name: len(images) for name, images in splits.named().items()},
            "steps": steps,
            "parameters": sum(each.numel() for each in model.parameters()),
            "trainable_parameters": sum(each.numel() for each in trained),
            "machine": machine_words(device),
            "benign_weight": benign_weight,
            "figures": compared(figures_of(before, WHERE), figures_of(after, WHERE)),
            **({"validation": figures_of(validation, WHERE)} if validation else {}),
            "notes": notes_of(splits),
            "published": published_rows(parameters.tuning),
        }
    )


def _splits(parameters: DetectorTraining, data: Path) -> Splits:
    held_out = None if parameters.held_out is None else Path(parameters.held_out)
    root = None if parameters.root is None else Path(parameters.root)
    return read_splits(data, held_out, parameters.held_out_share, parameters.seed, root)


def notes_of(splits: Splits) -> list[str]:
    """What is to be known of the data, a sentence each."""
    notes = []
    words = {"train": "training", "test": "held-out", "validation": "validation"}
    for name, images in splits.named().items():
        generated = [each for each in images if each.generated]
        notes.append(
            f"{len(images):,} {words[name]} images: {len(generated):,} generated, of which "
            f"{sum(each.is_annotated for each in generated):,} with artifacts known, "
            f"{len(images) - len(generated):,} real."
        )
    return notes


def published_rows(tuning: Tuning) -> dict[str, Any]:
    """X-AIGD's table 4 for full fine-tuning, 14 for LoRA: by mask, on four datasets."""
    from uncanny.eval.common.published import published

    key, number = _PUBLISHED[tuning]
    rows = published("artifact_scores")[key]
    cells = [(name, of) for name in rows[0] if name != "mask" for of in ("acc", "f1")]
    return {
        "columns": [f"{name} {of.capitalize()}" for name, of in cells],
        "rows": [[f"mask: {row['mask'].lower()}", *(row[name][of] for name, of in cells)] for row in rows],
        "note": f"X-AIGD, table {number}, in percent: attention drawn to these masks in training, measured "
        "on four datasets, which are other images than yours. `uncanny artifacts score` measures the same.",
    }


def _write_card(run: LearnRun) -> Path:
    """Raises OSError."""
    return write_card(
        run,
        title="Detector: tells generated images from real ones",
        about="Gives the probability that an image is generated. In training its attention was drawn to "
        + ("artifacts." if run.manifest.plan["align_to"] == "artifact" else "masks of an ablation."),
        use=detector_words(run, "detect")
        + "\n\ntransformers loads it with `AutoModelForImageClassification`.",
        library="transformers",
        limits=(
            "It was measured on the held-out images above only, and not on other generators.",
            "An image that it takes for real may be generated, and the other way round.",
            "Where it looks is not a proof of an artifact.",
        ),
    )
