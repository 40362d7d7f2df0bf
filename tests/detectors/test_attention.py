"""Maps of attention, against the same formulas written out in NumPy, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from uncanny.detectors.attention import (  # noqa: E402
    attention_map,
    attention_rollout,
    gradient_rollout,
    relevance,
)

IMAGES = torch.manual_seed(3) and torch.rand(2, 3, 64, 64)


def looked(vit: Any) -> tuple[list[Any], Any]:
    output = vit(IMAGES.clone().requires_grad_(), output_attentions=True)
    return list(output.attentions), output.logits[:, 1] - output.logits[:, 0]


def rollout_in_numpy(attentions: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Abnar and Zuidema's recursion, layer by layer, with loops over images."""
    rows = []
    for image in range(len(attentions[0])):
        flow = np.eye(attentions[0].shape[-1])
        for layer in attentions:
            mean = layer[image].mean(axis=0)
            residual = 0.5 * mean + 0.5 * np.eye(len(mean))
            flow = (residual / residual.sum(axis=1)[:, None]) @ flow
        rows.append(flow[0])
    return np.array(rows)


def weighted_in_numpy(attentions: list[Any], gradients: list[Any], rule: str) -> np.ndarray[Any, Any]:
    rows = []
    for image in range(len(attentions[0])):
        tokens = attentions[0].shape[-1]
        flow = np.eye(tokens)
        for layer, slope in zip(attentions, gradients, strict=True):
            product = layer[image] * slope[image]
            if rule == "gradient_rollout":
                mean = np.maximum(product.mean(axis=0), 0)
                residual = (mean + np.eye(tokens)) / 2
                flow = (residual / residual.sum(axis=1)[:, None]) @ flow
            else:
                flow = flow + np.maximum(product, 0).mean(axis=0) @ flow
        rows.append(flow[0])
    return np.array(rows)


def test_rollout_equals_the_recursion(vit: Any) -> None:
    attentions, _ = looked(vit)
    expected = rollout_in_numpy([each.detach().double().numpy() for each in attentions])
    found = attention_rollout(attentions)
    assert np.abs(found.detach().numpy() - expected).max() < 1e-5
    assert found.sum(dim=1).detach().numpy() == pytest.approx(1, abs=1e-5)
    patches = expected[:, 1:] / expected[:, 1:].max(axis=1)[:, None]
    mapped = attention_map(attentions, (4, 4)).detach().numpy()
    assert np.abs(mapped.reshape(2, -1) - patches).max() < 1e-5
    assert np.ptp(mapped) > 0.1  # it says something


@pytest.mark.parametrize(
    ("rule", "method"), [("gradient_rollout", gradient_rollout), ("relevance", relevance)]
)
def test_weighted_maps_equal_their_recursions(vit: Any, rule: str, method: Any) -> None:
    attentions, target = looked(vit)
    # Gradients of one image at a time: those of a batch must be each image's own.
    slopes = []
    for image in range(2):
        one = vit(IMAGES[image : image + 1].clone().requires_grad_(), output_attentions=True)
        margin = one.logits[0, 1] - one.logits[0, 0]
        slopes.append(torch.autograd.grad(margin, one.attentions))
    gradients = [torch.cat(layer).double().numpy() for layer in zip(*slopes, strict=True)]
    expected = weighted_in_numpy([each.detach().double().numpy() for each in attentions], gradients, rule)
    found = method(attentions, target).detach().numpy()
    assert np.abs(found - expected).max() < 1e-5 * max(1, expected.max())


def test_rollout_by_hand() -> None:
    """One layer, one head: half of its attention, half of itself."""
    attention = torch.tensor([[[[0.2, 0.6, 0.2], [0, 1, 0], [0, 0, 1]]]], dtype=torch.float64)
    assert attention_rollout([attention]).tolist() == [pytest.approx([0.6, 0.3, 0.1])]
    # Of two layers, token 1 passes on what it got: 0.6·(0.6, 0.3, 0.1) + 0.3·(0, 1, 0) + 0.1·(0, 0, 1).
    assert attention_rollout([attention, attention]).tolist() == [pytest.approx([0.36, 0.48, 0.16])]
    assert attention_map([attention, attention], (1, 2)).tolist() == [[pytest.approx([1, 1 / 3])]]


def test_registers_between_class_token_and_patches_are_left_out() -> None:
    attention = torch.eye(7)[None, None].clone()
    attention[0, 0, 0] = torch.tensor([0, 0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    mapped = attention_map([attention], (2, 2))
    assert mapped[0].flatten().tolist() == pytest.approx([1, 0.5, 0.3, 0.2], abs=1e-6)


def test_attention_to_nothing_is_a_map_of_zeros() -> None:
    attention = torch.zeros(1, 1, 5, 5)
    attention[..., 0] = 1
    assert attention_map([attention], (2, 2)).abs().sum() == 0


@pytest.mark.parametrize("method", ["rollout", "gradient_rollout", "relevance"])
def test_gradients_flow_into_all_layers_before_the_last(vit: Any, method: Any) -> None:
    attentions, target = looked(vit)
    mapped = attention_map(attentions, (4, 4), target, method=method, train=True)
    loss = (mapped - torch.eye(4)).square().mean()
    loss.backward()
    for layer in vit.vit.layers:
        for part in (layer.attention.q_proj, layer.attention.k_proj):
            assert part.weight.grad is not None
            assert part.weight.grad.abs().sum() > 0


def test_gradients_of_a_gradient_map_are_those_of_differences(vit: Any) -> None:
    """The second derivative, against finite differences; the library's softmax is in single precision."""
    vit.double()
    weight = vit.vit.layers[0].attention.q_proj.weight
    images = IMAGES.double()

    def loss() -> Any:
        output = vit(images, output_attentions=True)
        target = output.logits[:, 1] - output.logits[:, 0]
        mapped = attention_map(output.attentions, (4, 4), target, method="gradient_rollout", train=True)
        return mapped.square().mean()

    (slope,) = torch.autograd.grad(loss(), weight)
    step = 1e-3
    for row, column in ((0, 0), (5, 7), (20, 3)):
        with torch.no_grad():
            weight[row, column] += step
        above = loss().item()
        with torch.no_grad():
            weight[row, column] -= 2 * step
        below = loss().item()
        with torch.no_grad():
            weight[row, column] += step
        assert float(slope[row, column]) == pytest.approx((above - below) / (2 * step), rel=0.05, abs=1e-4)


def test_accumulated_gradients_equal_those_of_the_whole_batch(vit: Any) -> None:
    """What the paper says gradient rollout prevents: parts of a batch, one after the other."""

    def gradient(parts: list[Any]) -> Any:
        vit.zero_grad()
        for part in parts:
            output = vit(part, output_attentions=True)
            target = output.logits[:, 1] - output.logits[:, 0]
            mapped = attention_map(output.attentions, (4, 4), target, method="gradient_rollout", train=True)
            (mapped.square().mean() * len(part) / len(IMAGES)).backward()  # type: ignore[no-untyped-call]
        return vit.vit.layers[0].attention.q_proj.weight.grad.clone()

    whole, parted = gradient([IMAGES]), gradient([IMAGES[:1], IMAGES[1:]])
    assert torch.allclose(whole, parted, atol=1e-7, rtol=1e-4)
