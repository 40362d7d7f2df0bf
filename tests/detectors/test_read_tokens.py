"""Maps start from the tokens that a head reads; those that would not show it are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.detectors.conftest import save  # noqa: E402
from uncanny.detectors.attention import attention_map  # noqa: E402
from uncanny.detectors.detector import open_detector  # noqa: E402
from uncanny.detectors.heat_maps import choose, judge_batch  # noqa: E402
from uncanny.detectors.loading import Classifier, load_classifier, margin  # noqa: E402
from uncanny.detectors.parameters import DetectorParameters, HeatMap  # noqa: E402
from uncanny.errors import UsageError  # noqa: E402

SIZES: Any = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
LABELS: Any = {"id2label": {0: "real", 1: "fake"}, "label2id": {"real": 0, "fake": 1}}
TEXT: Any = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 50,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
ARCHITECTURES = {
    "ViT": SIZES,
    "Dinov2": SIZES,
    "Dinov2WithRegisters": {**SIZES, "num_register_tokens": 4},
    "CLIP": {"vision_config": SIZES, "text_config": TEXT},
    "Siglip": {"vision_config": SIZES, "text_config": TEXT},
    "Beit": SIZES,
}


def saved(folder: Path, name: str, **more: Any) -> Path:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**ARCHITECTURES[name], **LABELS)
    model = getattr(transformers, f"{name}ForImageClassification")(config)
    for parameter in model.parameters():  # so that attention is not the same everywhere
        torch.nn.init.normal_(parameter, std=0.3)
    if more.get("without_patches"):
        model.classifier.weight.data[:, SIZES["hidden_size"] :] = 0
    return save(model, folder, SIZES["image_size"])


def read(folder: Path, name: str, **more: Any) -> Classifier:
    return load_classifier(saved(folder, name, **more))


@pytest.mark.parametrize(
    ("name", "prefix", "others", "patches"),
    [
        ("ViT", 1, True, False),
        ("Dinov2", 1, True, True),
        ("Dinov2WithRegisters", 5, True, True),
        ("CLIP", 1, False, True),
        ("Siglip", 0, False, True),
        ("Beit", 1, False, True),
    ],
)
def test_what_the_head_reads_says_which_maps_there_are(
    tmp_path: Path, name: str, prefix: int, others: bool, patches: bool
) -> None:
    classifier = read(tmp_path, name)
    tokens = classifier.tokens
    assert tokens is not None
    assert (tokens.prefix, tokens.read_others, tokens.read_patches) == (prefix, others, patches)
    # Registers are read by nothing.
    assert sum(tokens.shares) == pytest.approx(1)
    assert sum(tokens.shares[1:-1]) == 0
    assert choose("auto", classifier) == "relevance"
    right: dict[HeatMap, bool] = {"rollout": True, "gradient_rollout": not patches, "gradcam": not others}
    for method, works in right.items():
        if not works:
            with pytest.raises(UsageError, match="Use relevance or rollout"):
                choose(method, classifier)
            continue
        _, maps = judge_batch(classifier, torch.rand(2, 3, 32, 32), choose(method, classifier))
        assert maps is not None
        assert maps.shape == (2, 4, 4)
        assert (maps.flatten(1).std(dim=1) > 0.01).all()


def test_relevance_of_clip_is_the_mean_of_the_rows_of_its_patches(tmp_path: Path) -> None:
    """Written out for two layers: R = I + C₁ + C₂ + C₂ C₁, less the identity."""
    classifier = read(tmp_path, "CLIP")
    pixels = torch.rand(1, 3, 32, 32)
    _, maps = judge_batch(classifier, pixels.clone(), "relevance")
    output = classifier.module(pixel_values=pixels.requires_grad_(), output_attentions=True)
    slopes = torch.autograd.grad(margin(output.logits, 1).sum(), output.attentions)
    first, second = (
        (layer * slope).clamp_min(0).mean(dim=1)[0]
        for layer, slope in zip(output.attentions, slopes, strict=True)
    )
    expected = (first + second + second @ first)[1:, 1:].mean(dim=0).reshape(4, 4)
    assert maps is not None
    assert torch.allclose(maps[0], (expected / expected.max()).detach(), atol=1e-5)


def test_gradcam_of_clip_equals_its_formula(tmp_path: Path) -> None:
    """The head is a mean over patches and a linear layer; the class token is dropped."""
    classifier = read(tmp_path, "CLIP")
    pixels = torch.rand(1, 3, 32, 32)
    _, maps = judge_batch(classifier, pixels, "gradcam")
    model: Any = classifier.module
    with torch.no_grad():
        features = model.vision_model(pixels).last_hidden_state[0, 1:]
        raw = (features @ (model.classifier.weight[1] - model.classifier.weight[0])).clamp_min(0)
    expected = ((raw - raw.min()) / (raw.max() - raw.min())).reshape(4, 4)
    assert maps is not None
    assert torch.allclose(maps[0], expected, atol=1e-4)


def test_a_head_that_learned_nothing_of_patches_reads_the_class_token(tmp_path: Path) -> None:
    """As `uncanny learn detector` saves DINOv2."""
    classifier = read(tmp_path, "Dinov2", without_patches=True)
    assert classifier.tokens is not None
    assert classifier.tokens.shares == (1, 0)
    pixels = torch.rand(1, 3, 40, 48)
    _, maps = judge_batch(classifier, pixels.clone(), "relevance")
    logits, attentions = classifier.logit(pixels.requires_grad_(), True)
    expected = attention_map(attentions, (5, 6), logits, method="relevance")
    assert maps is not None
    assert torch.allclose(maps, expected.detach(), atol=1e-6)


def test_weights_of_16_bits_are_asked_in_32(tmp_path: Path) -> None:
    folder = saved(tmp_path, "CLIP")
    transformers.CLIPForImageClassification.from_pretrained(folder).half().save_pretrained(folder)
    logits, maps = judge_batch(load_classifier(folder), torch.rand(1, 3, 32, 32), "relevance")
    assert maps is not None
    assert logits.dtype == maps.dtype == torch.float32


def test_gradcam_is_refused_where_the_last_features_have_no_places(saved_vit: Path) -> None:
    """The first layer has places, and the last has rows that are none."""
    patches, last = torch.nn.Conv2d(3, 8, 16, 16), torch.nn.Linear(8, 8)
    module, view = torch.nn.ModuleList([patches, last]), load_classifier(saved_vit).view
    described = {"detector": "rows", "architecture": "vit_timm"}

    def logit(pixels: Any, _: bool) -> Any:
        rows = patches(pixels).flatten(2).transpose(1, 2)
        rows = last(torch.cat([rows.mean(dim=1, keepdim=True), rows], dim=1))
        return margin(rows[:, 0, :2], 1), []

    classifier = Classifier(module, logit, view, ("real", "fake"), described)
    for method in ("auto", "gradcam", "smooth_gradcam"):
        with pytest.raises(UsageError, match="Grad-CAM needs features with places"):
            choose(method, classifier)
    assert choose("none", classifier) == "none"


def test_a_map_that_is_refused_is_refused_when_the_detector_opens(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reads its class token"):
        open_detector(saved(tmp_path, "ViT"), DetectorParameters(maps="gradcam", device="cpu"))
