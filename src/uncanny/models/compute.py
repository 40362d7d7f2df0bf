"""How models in this process compute: on which device, without progress bars, without gradients of weights.

The one place for these: detectors, training, inpainting and SAM 2 use them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from uncanny.errors import UsageError, first_line


def choose_device(name: str | None) -> str:
    """The device of this name, the fastest one for None. Raises UsageError where it cannot be used."""
    import torch

    if name is not None:
        try:
            torch.empty(0, device=torch.device(name))
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"Device {name!r} cannot be used: {first_line(error)}",
                remedy="Use cpu, cuda, cuda:1 or mps, where torch is built for it.",
            ) from error
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


@contextmanager
def quiet_libraries(*names: str, reports: bool = True) -> Iterator[None]:
    """Without the progress bars of transformers, or of these libraries of its kind, which must be installed,
    and without what libraries deprecate.

    With `reports` False also without what they say of loading, such as of weights that are not used.
    """
    told: list[tuple[Any, bool, int]] = []
    for name in names or ("transformers",):
        logging = import_module(f"{name}.utils.logging")
        told.append((logging, logging.is_progress_bar_enabled(), logging.get_verbosity()))
    for logging, _, _ in told:
        logging.disable_progress_bar()
        if not reports:
            logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        for logging, bars, verbosity in told:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()


@contextmanager
def frozen(module: Any) -> Iterator[None]:
    """Without gradients of the parameters of a `torch.nn.Module`, which a map does not need."""
    kept = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in kept:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in kept:
            parameter.requires_grad_()
