"""Learned models from packages of the extra `perceptual`, and from folders that are there.

Nothing is ever downloaded. What is missing is an error that names it. Packages are imported when a model is
opened.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.extras import install_hint

if TYPE_CHECKING:
    import torch

Pixels = NDArray[np.uint8]


def import_package(name: str) -> Any:
    """Raises UsageError where it cannot be imported, for whatever reason: torchvision may not fit torch."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed: {error}", remedy=install_hint("perceptual")) from error
    except Exception as error:
        raise UsageError(
            f"{name} cannot be imported ({type(error).__name__}: {error})"[:300],
            remedy="Do torch and torchvision belong together?",
        ) from error


@contextmanager
def loading(failed: str, remedy: str | None = None) -> Iterator[None]:
    """Raises UsageError, which begins with `failed`, for whatever goes wrong."""
    try:
        yield
    except Exception as error:
        raise UsageError(f"{failed} ({type(error).__name__}: {error})"[:300], remedy=remedy) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Loading without reports and progress bars on the terminal."""
    from transformers.utils import logging as theirs

    level, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        theirs.set_verbosity(level)
        if bars:
            theirs.enable_progress_bar()  # type: ignore[no-untyped-call]


def image_tensor(pixels: Pixels, device: str) -> torch.Tensor:
    """(1, 3, height, width), 0–1."""
    import torch

    return torch.from_numpy(pixels.copy()).to(device).permute(2, 0, 1)[None].float() / 255


def weights_folder(path: Path, what: str) -> Path:
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder with {what}", remedy="Download it first: uncanny does not.")
    return path
