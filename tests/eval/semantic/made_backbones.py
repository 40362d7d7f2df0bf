"""Backbones with random weights, the same bytes wherever they are made, under transformers 4 and 5 alike.

Weights come from NumPy by the name of each tensor, vocabularies from a list of words. Nothing of uncanny is
imported, so that `record_bert_score.py` runs in an environment of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, BertConfig, DistilBertConfig, MT5Config, RobertaConfig

WORDS = re.findall(
    r"\w+",
    """
the a an of on in and is are not it its with like that cannot do has have shows hand left right six
five finger fingers woman man shadow light lamp falls toward points source clock wall far hours
thirteen bent wet paper window tree dog legs face eye eyes water mirror reflection floor text
letters sign chair table leg same long word case upper lower lead ing trailing space spaces between
new lines mask here show n cm about half zero width soft hyphen cafe naive resume fenster baum
instead
""",
)
_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


def make(folder: Path, kind: str, *, real_size: bool = False, spread: float = 0.08) -> Path:
    """A model folder of `kind` (bert, distilbert, roberta, mt5), as released ones are laid out."""
    vocabulary = {"bert": _word_pieces, "distilbert": _word_pieces, "roberta": _byte_pairs, "mt5": _unigrams}
    size = vocabulary[kind](folder, real_size)
    model = AutoModel.from_config(_config(kind, size, real_size))  # type: ignore[no-untyped-call]
    fill(model, spread)
    model.save_pretrained(folder, safe_serialization=True)
    return folder


def fill(model: torch.nn.Module, spread: float) -> None:
    """Normal weights around 0, and around 1 for the scale of a LayerNorm."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
            scale = "norm" in name.lower() and name.endswith("weight")
            drawn = np.random.default_rng(seed).standard_normal(tuple(tensor.shape), dtype=np.float32)
            tensor.copy_(torch.from_numpy(drawn * np.float32(spread) + np.float32(scale)))


def weights_hash(folder: Path) -> str:
    """SHA-256 over all tensors by name, whatever the file around them looks like."""
    from safetensors.numpy import load_file

    whole = hashlib.sha256()
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        whole.update(f"{name} {tensor.shape}".encode() + tensor.astype("<f4").tobytes())
    return whole.hexdigest()


def _config(kind: str, vocabulary: int, real_size: bool) -> Any:
    width, layers, heads = (768, 6 if kind == "distilbert" else 12, 12) if real_size else (48, 4, 4)
    if kind == "distilbert":
        return DistilBertConfig(
            vocab_size=vocabulary, dim=width, n_layers=layers, n_heads=heads, hidden_dim=4 * width
        )
    if kind == "mt5":
        return MT5Config(
            vocab_size=vocabulary, d_model=width, d_kv=width // heads, d_ff=2 * width, num_layers=layers,
            num_decoder_layers=layers, num_heads=heads,
        )  # fmt: skip
    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }
    if kind == "bert":
        return BertConfig(**shape)
    return RobertaConfig(
        **shape,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )


def _word_pieces(folder: Path, real_size: bool) -> int:
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()] + list(
        "äöüßéñ人手六時計針三本ستشесть"
    )
    letters = list(dict.fromkeys(letters))
    pieces = [
        "[PAD]",
        *(f"[unused{i}]" for i in range(99)),
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *WORDS,
    ]
    pieces += [f"##{letter}" for letter in letters] + ["##s", "##ing", "##er", "##ed"]
    pieces = list(dict.fromkeys(pieces))
    if real_size:
        pieces += [f"[more{i}]" for i in range(30_522 - len(pieces))]
    ids = {piece: at for at, piece in enumerate(pieces)}
    fast = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    fast.decoder = decoders.WordPiece()
    fast.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    _save(folder, fast, {"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    return len(pieces)


def _byte_pairs(folder: Path, real_size: bool) -> int:
    """Whole words by merging letter after letter, with and without the space before them."""
    merges: dict[tuple[str, str], None] = {}
    for word in WORDS:
        for start in ("Ġ" + word, word):
            for end in range(1, len(start)):
                merges[start[:end], start[end]] = None
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *_BYTES, *("".join(pair) for pair in merges)]
    pieces = list(dict.fromkeys(pieces))
    if real_size:
        pieces += [f"more{i}" for i in range(50_264 - len(pieces))]
    ids = {piece: at for at, piece in enumerate([*pieces, "<mask>"])}
    fast = Tokenizer(models.BPE(ids, list(merges)))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    # The released one takes the space before it, and slow tokenizers do so unasked.
    fast.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    (folder / "merges.txt").write_text("#version: 0.2\n" + lines, encoding="utf-8")
    _save(folder, fast, {"tokenizer_class": "RobertaTokenizer"})
    return len(ids)


def _unigrams(folder: Path, real_size: bool) -> int:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(f"▁{word}", -5.0) for word in WORDS] + [(chr(code), -9.0) for code in range(33, 127)]
    if real_size:
        pieces += [(f"▁more{i}", -12.0) for i in range(32_000 - len(pieces))]
    fast = Tokenizer(models.Unigram(pieces, unk_id=2))
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.normalizer = normalizers.NFKC()
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast.decoder = decoders.Metaspace()
    fast.add_special_tokens(["<pad>", "</s>", "<unk>"])
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    folder.mkdir(parents=True, exist_ok=True)
    _save(folder, fast, {"tokenizer_class": "PreTrainedTokenizerFast", **names})
    return len(pieces)


def _save(folder: Path, fast: Tokenizer, config: dict[str, Any]) -> None:
    fast.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 512}))
