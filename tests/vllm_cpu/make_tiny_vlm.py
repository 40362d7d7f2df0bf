"""Make a tiny Qwen3-VL with random weights, offline:  VENV/bin/python make_tiny_vlm.py OUT [--seed 0]

What it writes is noise, but noise that ends: see `shape_answers`. The same seed gives the same bytes.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

VOCABULARY = 1536
CONTEXT = 16_384
HIDDEN = 64
PATCH = 16
MOST_PIXELS = 256 * 256
INITIAL = 0.15
"""Spread of the weights, far above the usual start: images and prompts are to change the answer."""

END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = (PAD, "<|im_start|>", END, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")

# Punctuation marks and digits stay single tokens, so that `shape_answers` can weigh each of them.
PRETOKEN = Regex(r"\p{N}|[^\s\p{L}\p{N}]|\s?\p{L}+|\s")

CHAT = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string -%}
{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] in ('image', 'image_url') -%}<|vision_start|><|image_pad|><|vision_end|>
{%- elif 'text' in part -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
{%- endif -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""


def make_tokenizer() -> Tokenizer:
    corpus = Path(__file__).with_name("corpus.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(PRETOKEN, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return tokenizer


def make_config(ids: dict[str, int]) -> Any:
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
        "bos_token_id": None,
        "eos_token_id": ids[END],
        "pad_token_id": ids[PAD],
    }
    vision = {
        "depth": 1,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_heads": 2,
        "patch_size": PATCH,
        "out_hidden_size": HIDDEN,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [0],
    }
    config = Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        tie_word_embeddings=False,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    config.dtype = "float32"
    return config


def make_model(tokenizer: Tokenizer, seed: int) -> Any:
    ids = {name: tokenizer.token_to_id(name) for name in SPECIAL}
    config = make_config({name: number for name, number in ids.items() if number is not None})
    torch.manual_seed(seed)
    # Typed as Any: transformers wraps `to` in a way that type checkers misread.
    made: Any = Qwen3VLForConditionalGeneration(config)
    model = made.to(torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim >= 2:
                weight.normal_(0, INITIAL)
        shape_answers(model, tokenizer)
    model.generation_config.eos_token_id = ids[END]
    model.generation_config.pad_token_id = ids[PAD]
    return model


# Channels of the residual stream that no layer reads or writes: the first is constant, the others say what
# the last token was. LEVEL is their value there, NORMED about what the last normalisation leaves of it.
ANY, QUOTE, OPENED, DIGIT, BREAK = range(5)
DIGITS = "0123456789"
MARKS = {'"': QUOTE, "[": OPENED, "Ċ": BREAK, **dict.fromkeys(DIGITS, DIGIT)}
LEVEL, NORMED = 12.0, 3.5

# How strongly layers read, and write what they attended to and computed: so that what came long before
# counts for about as much as the last token.
READS, ATTENDED, COMPUTED = 4.0, 1.0, 0.1

# Words get random logits of this spread, all else fixed ones on the same scale. MEASURED is the spread that
# a unit output layer would give.
SPREAD, MEASURED = 1.0, 7.0
SELDOM_TWICE = 0.06  # against saying one word over and over
LOGITS: dict[int, dict[str, float]] = {
    ANY: {
        '"': 3.7,
        END: 2.35,
        ".": 1.0,
        "}": 0.6,
        "]": 0.1,
        **dict.fromkeys(",:[{", 0.0),
        **dict.fromkeys(DIGITS, 0.5),
    },
    QUOTE: {'"': -9.0},  # no empty strings
    OPENED: {"]": -0.9},  # few empty lists
    DIGIT: dict.fromkeys(DIGITS, -1.9),
    BREAK: {END: -9.0},  # no empty answers
}
UNWANTED = -8.0
WORD = re.compile("Ġ[A-Za-z]{2,}")


def shape_answers(model: Any, tokenizer: Tokenizer) -> None:
    """Give tokens the odds under which answers end by themselves, also when constrained to a JSON schema.

    Purely random weights hardly ever close a string or a list before the output limit. So some channels of
    the residual stream are reserved, and the output layer turns them into fixed logits for punctuation and
    the end of an answer. Words stay random and depend on the prompt and the image.
    """
    text = model.model.language_model
    embedding, head = text.embed_tokens.weight, model.lm_head.weight
    reserved = slice(0, len(LOGITS))
    for layer in text.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for reads in (attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj):
            reads.weight[:, reserved] = 0
            reads.weight.mul_(READS)
        for writes, factor in ((attention.o_proj, ATTENDED), (mlp.down_proj, COMPUTED)):
            writes.weight.mul_(factor)
            writes.weight[reserved] = 0
    embedding.mul_(1 / INITIAL)
    embedding[:, reserved] = 0
    embedding[:, ANY] = LEVEL
    head.mul_(SPREAD / MEASURED / INITIAL)
    head.sub_(SELDOM_TWICE * embedding)
    head[:, reserved] = 0
    vocabulary = tokenizer.get_vocab()
    for token, row in vocabulary.items():
        if not WORD.fullmatch(token):
            head[row] = 0
            head[row, ANY] = UNWANTED / NORMED
    for token, channel in MARKS.items():
        embedding[vocabulary[token], channel] = LEVEL
    for channel, logits in LOGITS.items():
        for token, logit in logits.items():
            head[vocabulary[token], channel] = logit / NORMED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, arguments.seed)
    model.save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"))
    write_settings(out)
    count = sum(weight.numel() for weight in model.parameters())
    size = sum(file.stat().st_size for file in out.iterdir())
    print(f"{out}: {count / 1e6:.2f} million weights, {size / 1e6:.2f} MB")


def write_settings(out: Path) -> None:
    images = {
        "size": {"shortest_edge": (2 * PATCH) ** 2, "longest_edge": MOST_PIXELS},
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "processor_class": "Qwen3VLProcessor",
    }
    settings = {
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "bos_token": None,
            "eos_token": END,
            "pad_token": PAD,
            "unk_token": None,
            "add_prefix_space": False,
            "add_bos_token": False,
            "additional_special_tokens": [name for name in SPECIAL if name not in (END, PAD)],
            "chat_template": CHAT,
        },
        "preprocessor_config.json": images | {"image_processor_type": "Qwen2VLImageProcessor"},
        "video_preprocessor_config.json": images | {"video_processor_type": "Qwen3VLVideoProcessor"},
    }
    for name, content in settings.items():
        (out / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    (out / "chat_template.jinja").write_text(CHAT, encoding="utf-8")


if __name__ == "__main__":
    main()
