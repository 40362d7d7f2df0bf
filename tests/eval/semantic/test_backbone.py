"""What can be wrong with a backbone is said in one line, before anything is scored, with what to do."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.eval.semantic.conftest import Made
from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity import weights
from uncanny.eval.common.similarity.backbone import load, sound
from uncanny.eval.common.similarity.base import open_measure

# A backbone is made and loaded, which takes torch seconds.
pytestmark = pytest.mark.slow


def refused(backbone: object, layer: int | None = 2, device: str | None = "cpu") -> str:
    with pytest.raises(UsageError) as error:
        open_measure("bertscore", MeasureParameters(backbone=str(backbone), num_layers=layer, device=device))
    return str(error.value)


@pytest.fixture
def copied(backbone_folder: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(backbone_folder("bert"), tmp_path / "copied"))


def test_a_folder_needs_a_layer(copied: Path) -> None:
    assert "`num_layers`" in refused(copied, None)


@pytest.mark.parametrize("layer", [5, 99, -1])
def test_a_layer_that_is_not_there(copied: Path, layer: int) -> None:
    what = f"has 4 layers, so there is no layer {layer}" if layer > 0 else f"must be at least 1, not {layer}"
    assert what in refused(copied, layer)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "no such folder" in refused(tmp_path / "nothing")
    assert "no such folder" in refused("./nothing")
    assert "neither a folder" in refused("a/b/c")


@pytest.mark.parametrize(
    ("gone", "missing"),
    [
        ("config.json", "config.json"),
        ("model.safetensors", "weights"),
        ("tokenizer*", "tokenizer"),
        ("*", "config"),
    ],
)
def test_a_folder_that_is_no_whole_model(copied: Path, gone: str, missing: str) -> None:
    for path in [*copied.glob(gone), *(copied.glob("vocab*") if gone == "tokenizer*" else [])]:
        path.unlink()
    message = refused(copied)
    assert missing in message
    assert "missing" in message


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "no-such-model"}'),
        ("config.json", b'{"auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}'),
        ("model.safetensors", b"not tensors at all"),
        ("tokenizer.json", b"{"),
        ("model.safetensors.index.json", b""),
    ],
)
def test_a_damaged_model_is_one_line(
    copied: Path, file: str, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    if file.endswith("index.json"):
        (copied / "model.safetensors").unlink()
    (copied / file).write_bytes(content)
    assert "copied" in refused(copied)
    assert capfd.readouterr() == ("", "")


def test_weights_that_would_be_random_are_refused(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 6}))
    assert "have no weights" in refused(copied)


def test_half_precision_on_disk_is_full_precision_in_use(copied: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    save_file(
        {k: v.half() for k, v in tensors.items()}, copied / "model.safetensors", metadata={"format": "pt"}
    )
    assert load(copied, "copied", 2, "cpu").model.dtype == torch.float32


def test_a_model_without_a_layer_in_bert_score_is_refused(copied: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    GPT2Model(GPT2Config(vocab_size=300, n_embd=8, n_layer=2, n_head=2)).save_pretrained(copied)
    assert "bert-score cannot take layer 2 of a 'gpt2' model" in refused(copied)


def test_weights_that_are_not_here_and_a_hub_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from huggingface_hub import constants

    # Port 9 of this machine: refused at once, as without a network.
    for place in ("constants.ENDPOINT", "hf_api.ENDPOINT", "constants.HF_HUB_CACHE"):
        module, name = place.split(".")
        value = str(tmp_path) if name == "HF_HUB_CACHE" else "http://127.0.0.1:9"
        monkeypatch.setattr(f"huggingface_hub.{module}.{name}", value, raising=False)
    assert str(tmp_path) == constants.HF_HUB_CACHE
    message = refused("distilbert-base-uncased", None)
    assert "cannot be reached" in message
    assert "compare texts with chrf" in message
    assert "compare texts with chrf" in message
    assert capfd.readouterr() == ("", "")


def test_a_device_that_is_not_there(copied: Path) -> None:
    assert "cuda:99" in refused(copied, device="cuda:99")
    assert "abacus" in refused(copied, device="abacus")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bert_score", None)
    assert "[semantic]" in refused("distilbert-base-uncased", None)


def test_opening_and_scoring_print_nothing(copied: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from uncanny.eval.common.similarity.base import TextPairs

    measure = open_measure("bertscore", MeasureParameters(backbone=str(copied), num_layers=2, device="cpu"))
    list(measure.matrices([TextPairs(["x " * 900, "\u200b"], ["y", ""])]))
    assert capfd.readouterr() == ("", "")


def test_described_without_the_path_and_with_the_weights(copied: Path) -> None:
    measure = open_measure("bertscore", MeasureParameters(backbone=str(copied), num_layers=2, device="cpu"))
    assert str(copied.parent) not in json.dumps(measure.described)
    assert measure.described["backbone"] == "copied"
    assert measure.described["num_layers"] == 2
    assert set(measure.described["versions"]) == {"bert-score", "transformers", "torch"}
    assert not measure.compares_with_published
    before = weights.content_hash(copied)
    content = bytearray((copied / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copied / "model.safetensors").write_bytes(content)
    assert weights.content_hash(copied) != before


@pytest.mark.parametrize(
    ("name", "layer", "is_path", "table"),
    [
        ("distilbert-base-uncased", None, False, "distilbert-base-uncased"),
        ("distilbert/distilbert-base-uncased", None, False, "distilbert-base-uncased"),
        ("distilbert-base-uncased", 4, False, None),
        ("distilbert-base-uncased", 5, True, None),
        ("roberta-large-mnli", None, False, "roberta-large-mnli"),
        ("FacebookAI/roberta-large-mnli", 19, False, "roberta-large-mnli"),
        ("google/mt5-large", None, False, "google/mt5-large"),
        ("bert-base-uncased", None, False, None),
    ],
)
def test_which_published_table_applies(
    name: str, layer: int | None, is_path: bool, table: str | None
) -> None:
    taken = weights.layer_of(name, layer, is_path=is_path)
    assert weights.published_table(name, taken, is_path=is_path) == table


def test_published_backbones_have_their_table_and_the_layer_of_bert_score() -> None:
    tables = Path(weights.__file__).parents[2] / "published" / "semantic_scores.json"
    known: dict[str, Any] = json.loads(tables.read_text())["backbones"]
    assert set(weights.PUBLISHED) == set(known)
    for name, layer in weights.PUBLISHED.items():
        assert weights.known_layers()[name] == layer


def test_a_folder_with_the_name_of_a_known_backbone_is_not_taken_for_it(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.rename(copied.parent / "roberta-base")
    monkeypatch.chdir(copied.parent)
    assert weights.local_folder("roberta-base") is None
    assert weights.local_folder("./roberta-base") == copied.parent / "roberta-base"


def test_sound_text() -> None:
    assert sound(" a\ud83d\ude42b \n") == "a🙂b"
    assert sound("\ud83dx") == "\ufffdx"
