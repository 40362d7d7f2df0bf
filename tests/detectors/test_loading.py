"""Detectors from folders: transformers, timm without timm, labels, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.detectors.conftest import vit_config  # noqa: E402
from uncanny.detectors.folder import check_config, loading  # noqa: E402
from uncanny.detectors.loading import check_folder, generated_index, load_classifier, margin, name_of  # noqa: E402
from uncanny.detectors.multitask import Multitask  # noqa: E402
from uncanny.detectors.timm_vit import heads_of  # noqa: E402
from uncanny.detectors.views import View  # noqa: E402
from uncanny.errors import UsageError  # noqa: E402

TIMM = Path(__file__).parents[1] / "data" / "timm_vit"


def test_a_checkpoint_of_timm_says_what_timm_says() -> None:
    """`tests/data/timm_vit/make.py` has asked timm itself."""
    classifier = load_classifier(TIMM)
    pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32).sin()
    with torch.no_grad():
        logits = classifier.module(pixel_values=pixels).logits
        score, attentions = classifier.logit(pixels, True)
    expected = torch.tensor(json.loads((TIMM / "expected.json").read_text())["logits"])
    assert torch.allclose(logits, expected, atol=1e-5)
    assert torch.allclose(score, expected[:, 1] - expected[:, 0], atol=1e-5)
    assert classifier.labels == ("authentic", "synthetic")
    assert len(attentions) == 2
    assert classifier.tokens is not None
    assert (classifier.tokens.patch, classifier.tokens.shares) == (8, (1, 0))
    assert classifier.view.crop == (32, 32)


def test_a_classifier_of_transformers(saved_vit: Path) -> None:
    classifier = load_classifier(saved_vit)
    assert classifier.described["architecture"] == "ViTForImageClassification"
    assert classifier.view.size == (64, 64)
    pixels = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        logits = classifier.module(pixel_values=pixels).logits
        score, attentions = classifier.logit(pixels, False)
    assert torch.allclose(torch.sigmoid(score), logits.softmax(dim=1)[:, 1], atol=1e-6)
    assert not attentions


def test_how_images_are_prepared_is_not_guessed(saved_vit: Path, tmp_path: Path) -> None:
    for file, key, lacks in (
        (saved_vit / "preprocessor_config.json", "image_std", "image_std"),
        (shutil.copytree(TIMM, tmp_path / "timm") / "config.json", "pretrained_cfg", "mean and std"),
    ):
        content = json.loads(file.read_text()) | {key: None}
        file.write_text(json.dumps(content))
        with pytest.raises(UsageError, match=rf"by what pixels are normalized \({lacks}\)"):
            load_classifier(file.parent)
    (saved_vit / "preprocessor_config.json").unlink()
    with pytest.raises(UsageError, match=r"preprocessor_config.json is missing") as refused:
        load_classifier(saved_vit)
    assert "save the image processor" in str(refused.value)


def test_the_margin_is_the_odds_against_all_other_classes() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(torch.sigmoid(margin(logits, 2)), logits.softmax(dim=1)[:, 2])
    assert margin(torch.tensor([[1.5]]), 0).item() == 1.5


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        (("real", "fake"), 1),
        (("Fake", "Real"), 0),
        (("artificial", "human"), 0),
        (("nature", "AI-generated"), 1),
        (("0_real", "1_other"), 1),
        (("SyntheticImage", "RealImage"), 0),
        (("real", "fake", "painting"), 1),
        (("fake",), 0),
        (("LABEL_0",), 0),
    ],
)
def test_labels_say_which_one_is_generated(labels: tuple[str, ...], index: int) -> None:
    assert generated_index(labels, None) == index


def test_labels_that_do_not_say_it_need_a_word() -> None:
    labels = ("LABEL_0", "LABEL_1")
    with pytest.raises(UsageError, match="do not say which one means generated"):
        generated_index(labels, None)
    assert generated_index(labels, "label_1") == generated_index(labels, "1") == 1
    with pytest.raises(UsageError, match="Its labels are LABEL_0, LABEL_1"):
        generated_index(labels, "fake")
    with pytest.raises(UsageError):
        generated_index(("gan", "diffusion", "real"), None)


def write(folder: Path, config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_folders_without_a_detector_are_refused(tmp_path: Path, saved_vit: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        check_folder(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="missing or not a JSON object"):
        check_folder(tmp_path)
    with pytest.raises(UsageError, match="neither a model_type"):
        check_folder(write(tmp_path / "a", {"labels": []}))
    code = {"model_type": "vit", "auto_map": {"AutoModel": "code.Model"}}
    with pytest.raises(UsageError, match="names code of its own"):
        check_folder(write(tmp_path / "b", code))
    run = tmp_path / "run"
    shutil.copytree(saved_vit, run / "model")
    with pytest.raises(UsageError, match="is a run, and its detector is a folder in it"):
        check_folder(run)
    assert [name_of(each) for each in (run / "model", saved_vit)] == ["run", "vit"]
    (saved_vit / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(UsageError, match="does not hold a detector that can be loaded"):
        load_classifier(saved_vit)


def test_a_model_without_its_head_is_refused(tmp_path: Path) -> None:
    config = vit_config()
    transformers.ViTModel(config).save_pretrained(tmp_path / "headless")
    with pytest.raises(UsageError, match=r"lacks 2 weights of its model, such as classifier.bias"):
        load_classifier(tmp_path / "headless")


def test_a_model_that_answers_prompts_is_refused(tmp_path: Path) -> None:
    transformers.Qwen2_5_VLConfig().save_pretrained(tmp_path / "vlm")
    with pytest.raises(
        UsageError, match=r"holds a qwen2_5_vl, of which transformers has no image classifier"
    ):
        load_classifier(tmp_path / "vlm")


def test_labels_must_be_as_many_as_the_weights_have(tmp_path: Path) -> None:
    folder = tmp_path / "timm"
    shutil.copytree(TIMM, folder)
    config = json.loads((folder / "config.json").read_text())
    write(folder, config | {"label_names": ["real", "fake", "painting"]})
    with pytest.raises(UsageError, match="names 3 labels, and the weights have 2"):
        load_classifier(folder)


def test_packages_that_do_not_fit_are_told_apart_from_bad_folders(
    saved_vit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("Could not import module 'ViTForImageClassification'")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fail)
    with pytest.raises(UsageError, match="with the packages that are installed") as refused:
        load_classifier(saved_vit)
    assert "torchvision" in str(refused.value)


def test_heads_of_the_largest_models_of_timm() -> None:
    assert [heads_of(name) for name in ("vit_huge_patch14_224", "vit_base_patch16_224")] == [16, None]


def test_a_pickle_that_runs_code_is_not_read(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    class Hostile:
        def __reduce__(self) -> Any:
            return Path.touch, (ran,)

    folder = write(
        tmp_path / "timm", {"architecture": "vit_tiny_patch16_224", "label_names": ["real", "fake"]}
    )
    torch.save(Hostile(), folder / "pytorch_model.bin")
    with pytest.raises(Exception):  # noqa: B017, PT011 torch has an error of its own
        load_classifier(folder)
    assert not ran.exists()


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    transformers.ViTForImageClassification(vit_config()).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    write(folder, config | {"hidden_size": 48})
    with pytest.raises(UsageError):
        load_classifier(folder)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"architecture": "resnet18", "model_args": {"checkpoint_path": "evil.bin"}}, "'checkpoint_path'"),
        ({"architecture": "resnet18", "model_args": {"pretrained": True}}, "'pretrained'"),
        ({"architecture": "resnet18", "model_args": {"act_layer": {"a": 1}}}, "'act_layer'"),
        ({"architecture": "hf-hub:somebody/model"}, "'hf-hub:somebody/model'"),
        ({"architecture": "local-dir:/tmp/x"}, "'local-dir:/tmp/x'"),
        ({"model_type": "timm_wrapper", "model_args": {"checkpoint_path": "evil.bin"}}, "'checkpoint_path'"),
        ({"model_type": "upernet", "backbone_config": {"backbone": "somebody/model"}}, "'somebody/model'"),
        ({"model_type": "x", "towers": [{"model_args": {"checkpoint_path": "evil"}}]}, "'checkpoint_path'"),
    ],
)
def test_a_config_that_leads_elsewhere_is_refused(tmp_path: Path, config: Any, told: str) -> None:
    folder = write(tmp_path / "foreign", config | {"label_names": ["real", "fake"]})
    for read in (check_config, check_folder, load_classifier):
        with pytest.raises(UsageError, match=told):
            read(folder)


def test_what_describes_a_network_reaches_timm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def create_model(name: str, **arguments: Any) -> Any:
        asked.update(arguments, name=name)
        return torch.nn.Linear(4, 2)

    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create_model))
    arguments = {"global_pool": "avg", "img_size": [64, 64], "reg_tokens": 4, "fc_norm": False}
    config = {"architecture": "vit_small_patch16_64.tag", "label_names": ["real", "fake"]}
    normalized = {"mean": [0.5] * 3, "std": [0.5] * 3}
    folder = write(tmp_path / "timm", config | {"model_args": arguments, "pretrained_cfg": normalized})
    torch.save(torch.nn.Linear(4, 2).state_dict(), folder / "pytorch_model.bin")
    assert load_classifier(folder).labels == ("real", "fake")
    assert asked == {"name": "vit_small_patch16_64", "num_classes": 2, "pretrained": False, **arguments}


def test_a_plain_transformer_of_timm_that_pools_otherwise_is_not_loaded_as_one(tmp_path: Path) -> None:
    """The same weights, of which timm would take the mean of the patches."""
    shutil.copytree(TIMM, tmp_path / "timm")
    config = json.loads((TIMM / "config.json").read_text())
    write(tmp_path / "timm", config | {"model_args": {**config.get("model_args", {}), "global_pool": "avg"}})
    with pytest.raises(UsageError, match="needs timm"):
        load_classifier(tmp_path / "timm")


def test_a_backbone_without_its_head_is_not_a_detector(tmp_path: Path) -> None:
    transformers.ViTModel(vit_config()).save_pretrained(tmp_path / "vit")
    with pytest.raises(UsageError, match=r"lacks 2 weights of its model, such as classifier\.bias"):
        load_classifier(tmp_path / "vit")


def test_a_backbone_that_lacks_a_layer_is_not_trained(tmp_path: Path) -> None:
    """Of a multitask model only the norms of its stages are new."""
    labels = {"depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "embed_dim": 8, "image_size": 64}
    config = transformers.SwinConfig(**labels, window_size=2)
    transformers.SwinModel(config).save_pretrained(tmp_path)
    new = partial(Multitask.new, config, View(shortest=64, longest=256), channels=8)
    new(weights=tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    del state["embeddings.norm.weight"]
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        UsageError, match=r"lacks 1 weight of its model, such as swin\.embeddings\.norm\.weight"
    ):
        new(weights=tmp_path)


def test_an_adapter_beside_a_model_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "foreign", {"model_type": "vit"})
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')
    with pytest.raises(UsageError, match="holds an adapter"):
        check_config(folder)


def test_what_libraries_raise_on_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded as a model \(RuntimeError: "):  # noqa: SIM117
        with loading(tmp_path, "a model"):
            raise RuntimeError
