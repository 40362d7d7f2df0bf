"""Where learned models compute."""

from __future__ import annotations

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
