"""How learned models compute: quietly, and with weights whose gradients come back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from uncanny.errors import UsageError  # noqa: E402
from uncanny.models.compute import choose_device, frozen, quiet_libraries  # noqa: E402


def test_gradients_come_back_after_an_error() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    with frozen(layer):
        assert not layer.weight.requires_grad
    with pytest.raises(RuntimeError), frozen(layer):
        layer(torch.zeros(1, 3))
    assert layer.weight.requires_grad
    assert not layer.bias.requires_grad


def test_libraries_are_as_loud_as_before() -> None:
    logging = transformers.utils.logging

    def loud() -> tuple[bool, int]:
        return logging.is_progress_bar_enabled(), logging.get_verbosity()

    before = loud()
    with quiet_libraries():
        assert loud() == (False, before[1])
    with quiet_libraries("transformers", reports=False):
        assert loud() == (False, logging.ERROR)
    assert loud() == before


def test_a_device_that_is_not_there_is_refused() -> None:
    assert choose_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="cannot be used"):
        choose_device("cuda:99")


def test_the_fastest_device_is_chosen_everywhere_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device(None) == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device(None) == "cuda"
