"""Measures by learned models, with tiny weights made here, and what is said where something is missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.eval.edits.made_pairs import known_cases, save, squares, write_pairs
from tests.eval.made_clip import WORDS, write_clip, write_tokenizer
from uncanny.edits import GatedEdits, gate, measure, open_perceptual
from uncanny.errors import UsageError
from uncanny.eval.edits import perceptual
from uncanny.settings import Settings

# Read by `_libraries` when a test here runs, not whenever tests are looked for: that takes seconds.
torch: Any = None
transformers: Any = None

pytestmark = pytest.mark.slow


def define_operators() -> Any:
    """PyPI's torchvision is built for torch with CUDA: beside another one it lacks operators.

    No network here uses them, but it cannot be imported without. They last as long as what is returned.
    """
    try:
        import_module("torchvision")
    except ImportError:
        return None
    except RuntimeError:
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    else:
        return None
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return operators


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> Iterator[None]:
    global torch, transformers
    torch = pytest.importorskip("torch")
    operators = define_operators()
    transformers = pytest.importorskip("transformers")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    del operators


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("models") / "tiny-clip")


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("models") / "bert"
    config = transformers.BertConfig(
        vocab_size=16, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    transformers.BertModel(config).save_pretrained(folder)
    write_tokenizer(folder, end="[END]")
    model = package.SentenceTransformer(str(folder), device="cpu")
    target = folder.parent / "tiny-sentences"
    model.save(str(target))
    return target


def test_text_similarity_of_labels(sentences: Path, tmp_path: Path) -> None:
    pair = {"original": "black.png", "edited": "one.png"}
    known_cases(tmp_path)
    file = write_pairs(
        tmp_path / "e.jsonl",
        {"id": "same", **pair, "label": "a dog", "edited_label": "a dog"},
        {"id": "other", **pair, "label": "a dog", "edited_label": "a cat"},
        {"id": "caption", **pair, "label": "a dog", "caption": "one", "edited_caption": "two"},
        {"id": "none", **pair, "label": "a dog"},
    )
    edits = measure(file, perceptual=open_perceptual(text_model=sentences))
    values = {each.id: each.text_similarity for each in edits}
    assert values["same"] == pytest.approx(1)
    assert values["other"] is not None
    assert -1 <= values["other"] < 1
    assert values["caption"] is not None
    assert values["none"] is None
    assert edits["none"].unmeasured["text_similarity"] == "no words for both sides"
    about = edits.to_json()["perceptual"]["text_similarity"]
    assert about["model"] == "tiny-sentences"
    assert len(about["weights"]) == 16
    assert edits["other"].bins["text_similarity"] in ("small", "medium")


EVIL = "from pathlib import Path\nPath({mark!r}).touch()\nclass Evil:\n    pass\n"


def test_code_beside_a_text_model_is_not_run(sentences: Path, tmp_path: Path) -> None:
    """A folder of weights whose `modules.json` names a class of a file that lies in it."""
    folder, mark = tmp_path / "hostile", tmp_path / "ran"
    shutil.copytree(sentences, folder)
    (folder / "evil.py").write_text(EVIL.format(mark=str(mark)))
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": len(modules), "name": "evil", "path": "", "type": "evil.Evil"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UsageError, match="contains no sentence-transformers model"):
        open_perceptual(text_model=folder)
    assert not mark.exists()


def test_code_beside_a_clip_model_is_not_run(clip: Path, tmp_path: Path) -> None:
    folder, mark = tmp_path / "hostile", tmp_path / "ran"
    shutil.copytree(clip, folder)
    (folder / "evil.py").write_text(EVIL.format(mark=str(mark)))
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text()) | {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
    file.write_text(json.dumps(config | {"tokenizer_class": "Evil"}))
    gate(known_cases(tmp_path), clip=folder)  # by a tokenizer of the library's own
    assert not mark.exists()


def test_gates_by_clip_are_cosines_of_its_embeddings(clip: Path, tmp_path: Path) -> None:
    edits = gate(known_cases(tmp_path), clip=clip)
    assert set(edits.applied) >= {"clip_similarity", "directional_similarity", "text_similarity"}
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(clip)

    def image(name: str) -> Any:
        from PIL import Image

        small = Image.open(tmp_path / f"{name}.png").convert("RGB").resize((32, 32), Image.Resampling.BICUBIC)
        values = torch.tensor(np.asarray(small)).permute(2, 0, 1)[None].float() / 255
        vision = model.vision_model(pixel_values=(values - 0.5) / 0.5).pooler_output
        return torch.nn.functional.normalize(model.visual_projection(vision))

    def text(words: str) -> Any:
        tokens = tokenizer([words], return_tensors="pt")
        hidden = model.text_model(input_ids=tokens["input_ids"]).pooler_output
        return torch.nn.functional.normalize(model.text_projection(hidden))

    with torch.no_grad():
        for name in ("one", "two"):
            first, second = image("black"), image(name)
            before, after = text("wall"), text(f"wall with {name}")
            values = edits[name].values
            cosine = torch.nn.functional.cosine_similarity
            assert values["clip_similarity"] == pytest.approx(float(cosine(first, second)), abs=1e-4)
            assert values["text_similarity"] == pytest.approx(float(cosine(before, after)), abs=1e-4)
            way = float(cosine(first - second, before - after))
            assert values["directional_similarity"] == pytest.approx(way, abs=1e-3)


def test_how_well_captions_fit_their_originals_is_clipscore(clip: Path, tmp_path: Path) -> None:
    """2.5 times the cosine of image and caption, 0 at least; the lowest five of a hundred fail."""
    from PIL import Image

    known_cases(tmp_path)
    names = ("black", "one", "two", "corner")
    pairs = [
        {"id": f"{name} {word}", "original": f"{name}.png", "edited": "one.png", "caption": f"a {word}"}
        for name in names
        for word in WORDS
    ]
    without = {"id": "without", "original": "one.png", "edited": "two.png", "edited_caption": "a dog"}
    edits = gate(write_pairs(tmp_path / "e.jsonl", *pairs, without), clip=clip)
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(clip)
    wanted = {}
    with torch.no_grad():
        for name in names:
            picture = Image.open(tmp_path / f"{name}.png").convert("RGB")
            small = np.asarray(picture.resize((32, 32), Image.Resampling.BICUBIC))
            values = (torch.tensor(small).permute(2, 0, 1)[None].float() / 255 - 0.5) / 0.5
            for word in WORDS:
                tokens = tokenizer([f"a {word}"], return_tensors="pt")
                cosine = model(input_ids=tokens["input_ids"], pixel_values=values)
                logits = float(cosine.logits_per_image) / float(model.logit_scale.exp())
                wanted[f"{name} {word}"] = 2.5 * max(logits, 0)
    assert scores_of(edits) == pytest.approx(wanted, abs=1e-4)
    assert any(wanted.values())
    low = edits.limits["clip_score"].low
    assert low == pytest.approx(np.percentile(list(wanted.values()), 5), abs=1e-4)
    lower = gate(tmp_path / "e.jsonl", clip=clip, clip_score_low=95)
    failed = {each.id for each in lower if "clip_score" in each.failed}
    cutoff = lower.limits["clip_score"].low or 0
    assert failed == {name for name, value in scores_of(lower).items() if value < cutoff}
    assert failed
    assert edits["without"].unmeasured["clip_score"] == "there is no caption of the original"
    assert edits["without"].passed is None


def scores_of(edits: GatedEdits) -> dict[str, float]:
    return {each.id: each.values["clip_score"] for each in edits if "clip_score" in each.values}


def test_of_a_pair_of_two_sizes_clip_compares_the_words_alone(clip: Path, tmp_path: Path) -> None:
    known_cases(tmp_path)
    save(tmp_path / "small.png", squares((0, 0, 20), side=100))
    words = {"label": "dog", "edited_label": "cat", "caption": "a dog", "edited_caption": "a cat"}
    pair = {"id": "e", "original": "one.png", "edited": "small.png", **words}
    edit = gate(write_pairs(tmp_path / "e.jsonl", pair), clip=clip)["e"]
    assert set(edit.values) == {"text_similarity"}
    assert edit.unmeasured["clip_score"] == edit.unmeasured["pair"]
    assert edit.passed is None


def test_an_edit_that_changed_nothing_has_no_direction(clip: Path, tmp_path: Path) -> None:
    known_cases(tmp_path)
    pair = {"original": "one.png", "edited": "one.png", "label": "dog", "edited_label": "cat"}
    edit = gate(write_pairs(tmp_path / "e.jsonl", {"id": "same", **pair}), clip=clip)["same"]
    assert edit.values["clip_similarity"] == pytest.approx(1)
    assert edit.unmeasured["directional_similarity"] == "image or words did not change for the model"


def optional(*names: str) -> list[Any]:
    """Packages beside torchvision; `.ci/run` installs them, and insists on them."""
    try:
        return [import_module(name) for name in names]
    except ImportError as error:
        if os.environ.get("UNCANNY_PERCEPTUAL"):
            raise
        pytest.skip(f"{names[0]} or torchvision cannot be imported: {error}")


def test_lpips_with_made_weights(tmp_path: Path) -> None:
    lpips, models = optional("lpips", "torchvision.models")
    torch.manual_seed(0)
    net = models.squeezenet1_1()
    torch.save(net.state_dict(), tmp_path / "squeeze.pth")
    edits = measure(
        known_cases(tmp_path),
        preserved=True,
        perceptual=open_perceptual(lpips="squeeze", lpips_weights=tmp_path / "squeeze.pth"),
    )
    model = lpips.LPIPS(net="squeeze", pnet_rand=True, verbose=False).eval()
    for name, module in net.features.named_children():
        for part in range(1, 8):
            slices = dict(getattr(model.net, f"slice{part}").named_children())
            if name in slices:
                slices[name].load_state_dict(module.state_dict())

    def tensor(pixels: Any) -> Any:
        return torch.tensor(pixels).permute(2, 0, 1)[None].float() / 127.5 - 1

    with torch.no_grad():
        wanted = float(model(tensor(squares()), tensor(squares((100, 100, 40)))))
    assert edits["one"].lpips == pytest.approx(wanted, rel=1e-4)
    assert edits["one"].lpips != 0
    assert edits["one"].preserved_lpips == 0, "nothing changed outside the mask"
    assert edits.to_json()["perceptual"]["lpips"]["net"] == "squeeze"
    save(tmp_path / "tiny.png", squares(side=4))
    pair = {"id": "t", "original": "tiny.png", "edited": "tiny.png"}
    models_of_lpips = open_perceptual(lpips="squeeze", lpips_weights=tmp_path / "squeeze.pth")
    tiny = measure(write_pairs(tmp_path / "t.jsonl", pair), perceptual=models_of_lpips)["t"]
    assert tiny.lpips is None
    assert tiny.unmeasured["lpips"].startswith("the model failed")
    (tmp_path / "torn.pth").write_bytes(b"no weights")
    with pytest.raises(UsageError, match="contains no weights"):
        open_perceptual(lpips="squeeze", lpips_weights=tmp_path / "torn.pth")


HUB = """
import torch

dependencies = ["torch"]


def dino_vitb16(pretrained=True):
    from dreamsim.feature_extraction import load_clip_as_dino

    model = load_clip_as_dino.vit_base(patch_size=16)
    model.load_state_dict(torch.hub.load_state_dict_from_url("https://example.org/dino_vitbase16_pretrain.pth"))
    return model
"""


def write_dreamsim(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of DreamSim's ensemble with random weights; its three networks are made narrow."""
    vit, clip_loader, open_clip_loader, model = optional(
        "dreamsim.feature_extraction.vision_transformer",
        "dreamsim.feature_extraction.load_clip_as_dino",
        "dreamsim.feature_extraction.load_open_clip_as_dino",
        "dreamsim.model",
    )
    peft = import_module("peft")

    def narrow(patch_size: int = 16) -> Any:
        return vit.VisionTransformer(
            patch_size=patch_size, embed_dim=24, depth=12, num_heads=2, mlp_ratio=2, qkv_bias=True
        )

    for loader in (clip_loader, open_clip_loader):
        monkeypatch.setattr(loader, "vit_base", narrow)
    for name in ("clip", "open_clip"):
        network = narrow()
        network.pos_drop = torch.nn.LayerNorm(24)
        state = {**network.state_dict(), "proj": torch.randn(24, 16)}
        torch.save({"state_dict": state}, folder / f"{name}_vitb16_pretrain.pth.tar")
    head = vit.DINOHead(768, 2048)
    places = [(place, part) for place in (0, 2, 4) for part in ("weight", "bias")]
    student = {f"module.head.mlp.{i}.{part}": getattr(head.mlp[i], part).data for i, part in places}
    student["module.head.last_layer.weight"] = head.last_layer.weight.data
    torch.save({"student": student}, folder / "dino_vitb16_pretrain.pth")
    for name in ("checkpoints", "facebookresearch_dino_main"):
        (folder / name).mkdir()
    torch.save(narrow().state_dict(), folder / "checkpoints" / "dino_vitbase16_pretrain.pth")
    (folder / "facebookresearch_dino_main" / "hubconf.py").write_text(HUB)
    ensemble = model.dreamsim_args["model_config"]["ensemble"]
    whole = model.PerceptualModel(**ensemble, device="cpu", load_dir=str(folder), normalize_embeds=True)
    lora = peft.LoraConfig(r=2, lora_alpha=0.5, lora_dropout=0.1, bias="none", target_modules=["qkv"])
    peft.get_peft_model(whole, lora).save_pretrained(folder / "ensemble_lora")


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_dreamsim_with_made_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as it is, from a folder as it fetches it; nothing comes from the network."""
    folder, hub = tmp_path / "weights", torch.hub.get_dir()
    folder.mkdir()
    try:
        write_dreamsim(folder, monkeypatch)
        edits = measure(known_cases(tmp_path), perceptual=open_perceptual(dreamsim=folder))
        (package,) = optional("dreamsim")
        model, prepare = package.dreamsim(device="cpu", cache_dir=str(folder))
    finally:
        torch.hub.set_dir(hub)
    from PIL import Image

    def tensor(name: str) -> Any:
        return prepare(Image.open(tmp_path / f"{name}.png"))

    with torch.no_grad():
        wanted = {name: float(model(tensor("black"), tensor(name))) for name in ("one", "two", "corner")}
    assert {each.id: each.dreamsim for each in edits} == pytest.approx(wanted, abs=1e-6)
    assert all(value > 0 for value in wanted.values())
    assert edits.to_json()["perceptual"]["dreamsim"]["type"] == "ensemble"


def test_what_is_missing_is_named_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"not installed|cannot be imported|No such file"):
        open_perceptual(lpips="alex")
    with pytest.raises(UsageError, match=r"missing|is not a folder"):
        open_perceptual(dreamsim=tmp_path)
    with pytest.raises(UsageError, match=r"not installed|is not a folder"):
        open_perceptual(text_model=tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"contains no CLIP model"):
        gate("scenes", clip=tmp_path)
    with pytest.raises(UsageError, match=r"is not a folder"):
        gate("scenes", clip=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="must be 'alex', 'vgg' or 'squeeze'"):
        open_perceptual(lpips="resnet")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs"):
        open_perceptual(lpips_weights="x.pth")


def test_weights_of_lpips_lie_where_a_job_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a package of the same interface: the file is opened before anything of it is called."""
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
        torch.save({"weight": torch.ones(1, 1), "bias": torch.zeros(1)}, tmp_path / name / "squeeze.pth")

    class Lpips(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, **_: Any) -> None:
            super().__init__()
            self.net = torch.nn.Linear(1, 1)

    monkeypatch.setitem(sys.modules, "lpips", SimpleNamespace(LPIPS=Lpips))
    monkeypatch.setattr(perceptual, "version", lambda _: "0")
    monkeypatch.setattr(perceptual, "_renamed", lambda state, _: state)
    monkeypatch.setattr(
        "uncanny.settings.settings", lambda: Settings(input_folders=((tmp_path / "inside").resolve(),))
    )
    inside = tmp_path / "inside" / "squeeze.pth"
    found = perceptual.Lpips("squeeze", inside, "cpu")
    assert found.described["weights"] == sha256(inside.read_bytes()).hexdigest()[:16]
    inside.unlink()
    inside.symlink_to(tmp_path / "outside" / "squeeze.pth")
    for outside in (inside, tmp_path / "outside" / "squeeze.pth", tmp_path / "outside" / "none.pth"):
        with pytest.raises(UsageError, match="lies in no folder that may be read"):
            perceptual.Lpips("squeeze", outside, "cpu")
