"""Sentences and a backbone for measuring: sizes and lengths of real ones, words and weights made up."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.common import sized

IMAGES, EACH = sized(200, 4), 6
# Words of a phenomenon and of a reasoning, from a few to the longest that models write.
_WORDS = {"phenomenon": (18, 45), "reasoning": (22, 60)}
_STARTS, _ENDS = 24_000, 6_000


def distilbert(folder: Path) -> Path:
    """DistilBERT as released, 6 layers of width 768, with random weights and made-up word pieces."""
    import torch
    from transformers import BertTokenizer, DistilBertConfig, DistilBertModel

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    pieces += [_word(n) for n in range(_STARTS)] + [f"##{_word(n)}" for n in range(_ENDS)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    BertTokenizer.from_pretrained(folder, model_max_length=512).save_pretrained(folder)
    torch.manual_seed(0)
    DistilBertModel(DistilBertConfig(vocab_size=30_522)).save_pretrained(folder)
    return folder


def images(count: int, seed: int = 0) -> list[dict[str, tuple[list[str], list[str]]]]:
    """For each image and field: predicted and true texts, all different."""
    rng = random.Random(seed)
    return [{field: (_texts(rng, field), _texts(rng, field)) for field in _WORDS} for _ in range(count)]


def _texts(rng: random.Random, field: str) -> list[str]:
    return [_text(rng, rng.randint(*_WORDS[field])) for _ in range(EACH)]


def _text(rng: random.Random, words: int) -> str:
    chosen = [_word(int(_STARTS * rng.random() ** 2)) for _ in range(words)]
    # About one word in six is not in a vocabulary as a whole.
    return " ".join(w + _word(rng.randrange(_ENDS)) if rng.random() < 0.16 else w for w in chosen) + "."


def _word(number: int) -> str:
    """Five letters, another five for each number."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number * 7 + 3, 26) if not letters else divmod(number, 26)
        letters += "abcdefghijklmnopqrstuvwxyz"[letter]
    return letters
