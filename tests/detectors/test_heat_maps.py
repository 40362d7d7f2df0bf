"""Grad-CAM against its formula written out, and the maps that a detector gives of whole images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.detectors.conftest import save  # noqa: E402
from uncanny.detectors.detector import Detector, Judgement, open_detector  # noqa: E402
from uncanny.detectors.heat_maps import choose, judge_batch  # noqa: E402
from uncanny.detectors.loading import load_classifier  # noqa: E402
from uncanny.detectors.parameters import DetectorParameters  # noqa: E402
from uncanny.errors import ImageError, UsageError  # noqa: E402

LABELS: Any = {"id2label": {0: "real", 1: "fake"}, "label2id": {"real": 0, "fake": 1}}


@pytest.fixture
def resnet(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", **LABELS
    )
    return save(transformers.ResNetForImageClassification(config), tmp_path / "resnet")


@pytest.fixture
def swin(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.SwinConfig(
        embed_dim=8, depths=[1, 1], num_heads=[1, 2], image_size=64, window_size=4, patch_size=4, **LABELS
    )
    return save(transformers.SwinForImageClassification(config), tmp_path / "swin")


def test_gradcam_of_tokens_behind_a_class_token_equals_its_formula(tmp_path: Path) -> None:
    """CLIP classifies by the mean of its patches, so that the gradient is the same at each."""
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = transformers.CLIPConfig(
        vision_config={**sizes, "image_size": 48, "patch_size": 12},
        text_config={**sizes, "vocab_size": 9, "bos_token_id": 1, "eos_token_id": 2},
        **LABELS,
    )
    classifier = load_classifier(save(transformers.CLIPForImageClassification(config), tmp_path / "clip", 48))
    assert classifier.view.size == (48, 48)
    pixels = torch.rand(2, 3, 48, 48)
    _, maps = judge_batch(classifier, pixels, "gradcam")
    model: Any = classifier.module
    with torch.no_grad():
        tokens = model.vision_model(pixels).last_hidden_state[:, 1:].double().numpy()
        weight = model.classifier.weight.double().numpy()
    raw = (tokens @ (weight[1] - weight[0])).clip(0).reshape(2, 4, 4)
    low = raw.min(axis=(1, 2), keepdims=True)
    span = (raw - low).max(axis=(1, 2), keepdims=True)
    assert maps is not None
    assert np.abs(maps.numpy() - (raw - low) / np.where(span > 0, span, 1)).max() < 1e-3


def test_gradcam_equals_its_formula(resnet: Path) -> None:
    """The head is an average and a linear layer, so the gradient is known: the weights' difference."""
    classifier = load_classifier(resnet)
    pixels = torch.rand(2, 3, 64, 64)
    logits, maps = judge_batch(classifier, pixels, "gradcam")
    model: Any = classifier.module
    with torch.no_grad():
        features = model.resnet(pixels).last_hidden_state.double().numpy()
        weight = model.classifier[1].weight.double().numpy()
        said = model(pixel_values=pixels).logits
    raw = np.einsum("c,nchw->nhw", weight[1] - weight[0], features).clip(0)
    low = raw.min(axis=(1, 2), keepdims=True)
    span = (raw - low).max(axis=(1, 2), keepdims=True)
    expected = (raw - low) / np.where(span > 0, span, 1)
    assert maps is not None
    assert np.abs(maps.numpy() - expected).max() < 1e-3
    assert torch.allclose(logits, said[:, 1] - said[:, 0], atol=1e-6)


@pytest.mark.parametrize("method", ["gradcam", "smooth_gradcam"])
def test_gradcam_of_swin_has_its_places(swin: Path, method: Any) -> None:
    classifier = load_classifier(swin)
    assert choose("auto", classifier) == "gradcam"
    _, maps = judge_batch(classifier, torch.rand(1, 3, 64, 64), method)
    assert maps is not None
    assert maps.shape == (1, 8, 8)
    assert maps.min() >= 0
    assert maps.max() <= 1


def test_attention_is_not_for_networks_without_a_class_token(swin: Path) -> None:
    with pytest.raises(UsageError, match="needs a vision transformer with attention"):
        open_detector(swin, DetectorParameters(maps="rollout", device="cpu"))


@pytest.mark.parametrize("method", ["auto", "rollout", "gradient_rollout", "relevance", "none"])
def test_a_detector_gives_maps_of_the_size_of_each_image(saved_vit: Path, method: Any) -> None:
    detector = open_detector(saved_vit, DetectorParameters(maps=method, batch_size=2, device="cpu"))
    rng = np.random.default_rng(0)
    sizes = [(80, 50), (64, 64), (31, 90)]
    images = [
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes
    ]
    judged = detector.judge(images)
    for each, (width, height) in zip(judged, sizes, strict=True):
        assert each.score is not None
        assert 0 < each.score < 1
        assert each.source == ("generated" if each.score >= 0.5 else "real")
        if method == "none":
            assert each.heat is None
        else:
            assert each.heat is not None
            assert each.heat.shape == (height, width)
            assert 0.9 < each.heat.max() <= 1
    # One at a time they are judged alike.
    assert [detector.judge([image])[0].score for image in images] == pytest.approx(
        [each.score for each in judged], abs=1e-6
    )


def test_sliding_windows_cover_the_image(saved_vit: Path) -> None:
    detector = open_detector(saved_vit, DetectorParameters(sliding=True, device="cpu"))
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (70, 150, 3), dtype=np.uint8))
    (judged,) = detector.judge([image])
    assert judged.heat is not None
    assert judged.heat.shape == (70, 150)
    # Each window has its maximum: its probability, at most 1.
    assert all(judged.heat[:64, x : x + 64].max() > 0 for x in (0, 64, 86))


def test_no_number_is_not_real(saved_vit: Path) -> None:
    classifier = load_classifier(saved_vit)
    detector = Detector(classifier, DetectorParameters(device="cpu"))
    images = [Image.new("RGB", (9, 9), color) for color in ("red", "blue")]
    assert all(isinstance(each, Judgement) for each in detector.judge_each(images))
    with torch.no_grad():
        for weights in classifier.module.parameters():
            weights.fill_(torch.nan)
    with pytest.raises(ImageError, match="gives no number"):
        detector.judge(images)
    assert [type(each) for each in detector.judge_each(images)] == [ImageError] * 2
