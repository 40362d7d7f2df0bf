"""A trainer of transformers in a run: a line per step, whole checkpoints, progress, a clean stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from uncanny.errors import UncannyError
from uncanny.learn.common.machine import peak_memory
from uncanny.learn.common.parameters import LearnParameters
from uncanny.learn.common.session import LearnSession, StopTrainingError, mark_whole, step_of

# What the trainer says of the whole run, and says of no step.
_SUMMARY: Final = "train_runtime"


class RunCallback(TrainerCallback):
    """Writes the run's files as training goes on. `show` is told of steps done and steps to do."""

    def __init__(self, session: LearnSession, device: Any, show: Callable[[int, int], None]) -> None:
        self._session, self._device, self._show = session, device, show
        self._log = session.steps
        self._began = time.monotonic()
        self.stop = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        # Steps after the checkpoint are made once more.
        resumed = self._session.resumed
        if state.is_world_process_zero:
            self._log.cut((step_of(resumed) or 0) if resumed is not None else 0)
        self._began = time.monotonic()
        self._show(state.global_step, state.max_steps)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._show(state.global_step, state.max_steps)
        if self.stop:
            control.should_save = control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if not state.is_world_process_zero or not logs or _SUMMARY in logs:
            return
        now = time.monotonic()
        figures = {name: value for name, value in logs.items() if name not in ("epoch", "step_time")}
        own = {"seconds": round(now - self._began, 4), "memory_bytes": peak_memory(self._device)}
        self._log.append({"step": state.global_step, "epoch": logs.get("epoch"), **figures, **own})
        self._began = now

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if state.is_world_process_zero:
            mark_whole(Path(str(args.output_dir)) / f"checkpoint-{state.global_step}")


def trainer_settings(parameters: LearnParameters, session: LearnSession, device: Any) -> dict[str, Any]:
    """Arguments that all trainers of transformers share, for `TrainingArguments` and its kind."""
    return {
        "output_dir": str(session.checkpoints),
        "seed": parameters.seed,
        "data_seed": parameters.seed,
        "max_steps": parameters.max_steps or -1,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "steps",
        "save_steps": parameters.checkpoint_every,
        # One more: the oldest is removed before the newest is known to be whole.
        "save_total_limit": parameters.keep_checkpoints + 1,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",
        "bf16": False,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": device.type == "cuda",
    }


def train(trainer: Any, session: LearnSession, callback: RunCallback) -> None:
    """Train to the end, from the last whole checkpoint on.

    Ctrl-C and SIGTERM end it after the step in progress, with a checkpoint; a second Ctrl-C ends it at once.
    Raises StopTrainingError then, which `training` takes; UncannyError where weights are no longer numbers.
    """
    trainer.remove_callback(PrinterCallback)
    with _stopping(callback):
        trainer.train(resume_from_checkpoint=None if session.resumed is None else str(session.resumed))
    if callback.stop and trainer.state.global_step < trainer.state.max_steps:
        raise StopTrainingError
    trained = (each for each in trainer.model.parameters() if each.requires_grad)
    if not all(bool(each.isfinite().all()) for each in trained):
        raise UncannyError(
            "Training diverged: some weights are no longer finite numbers",
            remedy="Train in another folder, with a lower learning rate.",
        )


@contextmanager
def _stopping(callback: RunCallback) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        if callback.stop:
            raise KeyboardInterrupt
        callback.stop = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
