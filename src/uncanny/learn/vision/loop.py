"""Training on images with the trainer of transformers: samples by their place, and a line a step."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, SequentialSampler
from transformers import Trainer, TrainingArguments

from uncanny.detectors.views import View
from uncanny.learn.common.machine import dtype_of
from uncanny.learn.common.session import LearnSession
from uncanny.learn.common.trainer import RunCallback, train, trainer_settings
from uncanny.learn.vision.data import Alignment, Changes, Labeled
from uncanny.learn.vision.losses import IGNORED
from uncanny.learn.vision.parameters import VisionParameters
from uncanny.runs.display import counting


@dataclass(frozen=True, slots=True)
class Samples(Dataset[dict[str, torch.Tensor]]):
    """All samples of a run, in the order in which they are trained on."""

    images: Sequence[Labeled]
    order: Sequence[int]
    changes: Changes
    view: View
    alignment: Alignment
    seed: int

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        """`pixels` (3, side, side), `generated`, `classes` (side, side), and `known`: whether they are."""
        labeled = self.images[self.order[place]]
        image, classes = labeled.pixels()
        classes = self.alignment.mask(labeled, image, classes, self.seed)
        rng = np.random.default_rng([self.seed, place])
        image, classes = self.changes.apply(image, classes, labeled.generated, rng)
        pixels, _ = self.view.tensor(image)
        return {
            "pixels": pixels,
            "generated": torch.tensor(float(labeled.generated)),
            "classes": torch.from_numpy(classes.astype(np.int64)),
            "known": torch.tensor(float(labeled.is_annotated)),
        }


def samples_needed(
    parameters: VisionParameters, images: int, batch: int, epochs: float | None
) -> tuple[int, int]:
    """Optimizer steps, and samples of all of them: whole batches, so that none is smaller."""
    a_step = batch * parameters.accumulate * _processes()
    steps = parameters.max_steps or math.ceil(images * (epochs or 1.0) / a_step)
    if epochs is not None and parameters.max_steps is not None:
        steps = min(steps, math.ceil(images * epochs / a_step))
    return steps, steps * a_step


def train_on(
    module: torch.nn.Module,
    samples: Samples,
    optimizer: torch.optim.Optimizer,
    schedule: str,
    *,
    inputs: Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]],
    session: LearnSession,
    parameters: VisionParameters,
    batch: int,
    device: Any,
) -> None:
    """Train to the end, from the last checkpoint on. `inputs` makes the module's keywords of a batch."""
    settings = trainer_settings(parameters, session, device) | {
        "max_steps": len(samples) // (batch * parameters.accumulate * _processes()),
        "per_device_train_batch_size": batch,
        "gradient_accumulation_steps": parameters.accumulate,
        "lr_scheduler_type": schedule,
        "remove_unused_columns": False,
        "max_grad_norm": 1.0,
        "bf16": dtype_of(parameters, device) is torch.bfloat16,
    }
    arguments = TrainingArguments(**settings)

    class VisionTrainer(Trainer):
        """Takes samples in their order, and says the parts of a loss."""

        parts: Mapping[str, float] = {}

        def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
            return SequentialSampler(samples)

        def compute_loss(
            self,
            model: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            outputs = model(**inputs)
            self.parts = {name: value.item() for name, value in outputs.items() if name != "loss"}
            return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

        def log(self, logs: dict[str, float], *args: Any, **more: Any) -> None:
            super().log({**logs, **self.parts} if "loss" in logs else logs, *args, **more)

    def collate(rows: list[Any]) -> dict[str, Any]:
        return inputs({name: torch.stack([row[name] for row in rows]) for name in rows[0]})

    with counting("steps", enabled=parameters.progress) as count:

        def show(done: int, total: int) -> None:
            if count is not None:
                count.reach(done, total)

        callback = RunCallback(session, device, show)
        trainer = VisionTrainer(
            model=module,
            args=arguments,
            train_dataset=samples,
            data_collator=collate,
            optimizers=(optimizer, None),
            callbacks=[callback],
        )
        trainer.model_accepts_loss_kwargs = False
        train(trainer, session, callback)


def _processes() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def artifacts_of(classes: torch.Tensor) -> torch.Tensor:
    """1 where there is an artifact, of whichever category, 0 elsewhere."""
    return ((classes > 0) & (classes != IGNORED)).float()
