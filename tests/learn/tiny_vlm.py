"""A tiny Qwen2.5-VL with random weights and its own tokenizer, made offline. The same seed makes the same.

`colored` are pictures of one color with noise; `pretrained` has learned to name the color, as a base model
knows what it sees before it is taught a form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
PATCH = 14
COLORS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 60, 220)}


def make_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Words of `texts` are tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([*texts] * 4, trainer)
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def make_config(
    tokenizer: Tokenizer, *, hidden: int, layers: int, width: int | None, vocabulary: int | None
) -> Any:
    vocabulary_ids = tokenizer.get_vocab()
    ids = {name: vocabulary_ids[name] for name in SPECIAL}
    heads = max(2, hidden // 64)
    text = {
        "vocab_size": vocabulary or tokenizer.get_vocab_size(),
        "hidden_size": hidden,
        "intermediate_size": width or 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": sections(hidden // heads),
        },
        "bos_token_id": None,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "patch_size": PATCH,
        "out_hidden_size": hidden,
        "window_size": 56,
        "fullatt_block_indexes": [1],
    }
    return Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        tie_word_embeddings=False,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )


def sections(head: int) -> list[int]:
    """How the rotations of a head are shared among time, height and width."""
    half = head // 2
    return [half - 2 * (half * 3 // 8), half * 3 // 8, half * 3 // 8]


def make_vlm(
    out: Path,
    texts: Sequence[str],
    *,
    hidden: int = 64,
    layers: int = 8,
    width: int | None = None,
    vocabulary: int | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Any:
    """Write the model and its processor into `out`, and return the model."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(texts)
    torch.manual_seed(seed)
    made: Any = Qwen2_5_VLForConditionalGeneration(
        make_config(tokenizer, hidden=hidden, layers=layers, width=width, vocabulary=vocabulary)
    )
    model = made.to(dtype)
    model.generation_config.eos_token_id = tokenizer.token_to_id("<|im_end|>")
    model.generation_config.pad_token_id = tokenizer.token_to_id("<|endoftext|>")
    model.save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"))
    write_settings(out)
    return model


def write_settings(out: Path) -> None:
    import trl

    template = (Path(trl.__file__).parent / "chat_templates" / "qwen2_5_vl.jinja").read_text()
    images = {
        "size": {"shortest_edge": 56 * 56, "longest_edge": 614_656},
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "processor_class": "Qwen2_5_VLProcessor",
    }
    settings = {
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "model_max_length": 4096,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "bos_token": None,
            "unk_token": None,
            "additional_special_tokens": [
                name for name in SPECIAL if name not in ("<|im_end|>", "<|endoftext|>")
            ],
        },
        "preprocessor_config.json": images | {"image_processor_type": "Qwen2VLImageProcessor"},
        "video_preprocessor_config.json": images | {"video_processor_type": "Qwen2VLVideoProcessor"},
    }
    for name, content in settings.items():
        (out / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    (out / "chat_template.jinja").write_text(template, encoding="utf-8")


def colored(folder: Path, color: str, number: int, side: int = 56) -> Path:
    """A picture of this color with noise."""
    random = np.random.default_rng([number, list(COLORS).index(color)])
    pixels = np.array(COLORS[color]) + random.integers(-25, 25, (side, side, 3))
    path = folder / f"{color}{number}.png"
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    return path


def pretrain(
    folder: Path, model: Any, batches: Sequence[Sequence[tuple[Path, str, str]]], steps: int
) -> float:
    """Teach all weights pictures, questions and answers, a batch after the other; returns the last loss.

    The model is written into `folder` again.
    """
    from transformers import AutoProcessor
    from trl.chat_template_utils import get_training_chat_template
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    loaders: Any = AutoProcessor
    processor = loaders.from_pretrained(str(folder))
    processor.image_processor.size = {"shortest_edge": 56 * 56, "longest_edge": 56 * 56}
    collator = DataCollatorForVisionLanguageModeling(
        processor, assistant_only_loss=True, chat_template=get_training_chat_template(processor)
    )

    def row(path: Path, question: str, answer: str) -> dict[str, Any]:
        asked = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}
        said = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
        return {"messages": [asked, said], "images": [Image.open(path).convert("RGB")]}

    prepared = [collator([row(*each) for each in batch]) for batch in batches]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    loss = torch.zeros(())
    model.train()
    for step in range(steps):
        loss = model(**prepared[step % len(prepared)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval().save_pretrained(folder)
    return float(loss.detach())
