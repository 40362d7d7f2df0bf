"""A CLIP model and a tokenizer of a few words, with random weights, in the form that transformers saves."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = ("wall", "with", "one", "two", "corner", "dog", "cat", "a")


def write_tokenizer(folder: Path, *, end: str) -> None:
    """Words of a few letters, for a model without a vocabulary of its own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {word: place for place, word in enumerate(("[PAD]", "[UNK]", "[START]", end, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"[START] $A {end}", special_tokens=[("[START]", 2), (end, 3)]
    )
    # By its module: types of the package itself are of any kind.
    transformers: Any = import_module("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=16
    )
    fast.save_pretrained(folder)


def write_clip(folder: Path) -> Path:
    """The folder of the model."""
    import transformers

    layers = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config={**layers, "vocab_size": 16, "max_position_embeddings": 16, "eos_token_id": 3},
        vision_config={**layers, "image_size": 32, "patch_size": 8},
        projection_dim=8,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    write_tokenizer(folder, end="[END]")
    (folder / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0.5] * 3, "image_std": [0.5] * 3})
    )
    return folder
