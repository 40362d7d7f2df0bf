"""What training a vision-language model takes, by calculation: GPU memory, arithmetic, hours.

`python -m benchmarks learn_size` prints the table of docs/learn.md for models of 7 billion parameters;
`learn_gpu` prints the same calculation beside what it measures.

Assumptions, all of which `Needs` keeps apart:

- Weights are bfloat16 and frozen. Adapters, their gradients and the two moments of AdamW are float32: 16
  bytes a trained parameter.
- Activations are computed again in the backward pass: of each layer its input stays (bfloat16), of one layer
  everything: four times the hidden size for inputs and outputs, query, key and value, and three times the
  width of the MLP, and as much again for their gradients. Attention keeps no matrix of scores.
- Logits are never there all at once: TRL computes the loss on the tokens of answers alone, a bfloat16 tile of
  `TILE_TOKENS` of them by `TILE_WORDS` words of the vocabulary at a time.
- The vision tower is frozen and keeps nothing.
- A token takes 2 floating-point operations per weight forward, 2 to compute it again, and 2 backward: frozen
  weights have no gradient. Attention over n tokens adds 4 · n · hidden a layer and token, three times. Only
  tokens of answers go through the last layer, to the vocabulary.
- The GPU reaches `UTILIZATION` of its peak: what `learn_gpu` measured on an H200 with 7.6 billion weights.
  Smaller models reach less. It is not measured on the other cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

UTILIZATION: Final = 0.25
# Source: TRL 1.16, `TOKEN_CHUNK_SIZE` in kernels/chunked_logprob.py and `_CHUNKED_LOGPROB_CHUNK_SIZE` in
# trainer/utils.py.
TILE_TOKENS, TILE_WORDS = 4096, 32_768
# Dense bfloat16, TFLOP/s; bytes of memory; GB/s. Source: the data sheets of NVIDIA.
GPUS: Final = {
    "RTX A6000": (155.0, 48, 768.0),
    "A100 80 GB": (312.0, 80, 2039.0),
    "H100 SXM": (989.0, 80, 3350.0),
    "H200 SXM": (989.0, 141, 4800.0),
}
GIB: Final = 2**30
# Parts of a chat of the exported form: a question, and a list of some five anomalies.
QUESTION, ANSWER = 160, 500
PARTS: Final = ("weights", "adapters", "layer_inputs", "one_layer", "logits", "bytes")
# 614,656 pixels as 784 tokens of 28 × 28.
PIXELS_A_TOKEN: Final = 28 * 28


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model. `vision` are the weights of the vision tower."""

    hidden: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    vision: int
    tied: bool = False

    @property
    def layer(self) -> int:
        """Weights of a layer of the language model, without biases and norms."""
        attention = self.hidden * self.head * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.width

    @property
    def head_weights(self) -> int:
        return self.hidden * self.vocabulary

    @property
    def language(self) -> int:
        embeddings = self.head_weights * (1 if self.tied else 2)
        return self.layers * self.layer + embeddings

    def adapters(self, rank: int, every: int) -> int:
        """Weights of adapters on query, key and value of every n-th layer."""
        outputs = self.head * (self.heads + 2 * self.kv_heads)
        return len(range(0, self.layers, every)) * rank * (3 * self.hidden + outputs)


# Source: the model's config.json.
QWEN2_5_VL_7B: Final = Shape(3584, 28, 18944, 28, 4, 128, 152_064, 676_550_144)


def shape_of(model: Any) -> Shape:
    """The sizes of a loaded model with the names of Qwen2.5-VL."""
    text = model.config.get_text_config()
    vision = sum(each.numel() for name, each in model.named_parameters() if ".visual." in f".{name}")
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return Shape(
        text.hidden_size,
        text.num_hidden_layers,
        text.intermediate_size,
        text.num_attention_heads,
        text.num_key_value_heads,
        head,
        text.vocab_size,
        vision,
        model.config.tie_word_embeddings,
    )


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes of memory by what they are for, and operations a step."""

    weights: int
    adapters: int
    layer_inputs: int
    one_layer: int
    logits: int
    operations: float
    tokens: int

    @property
    def bytes(self) -> int:
        return self.weights + self.adapters + self.layer_inputs + self.one_layer + self.logits

    def seconds(self, gpu: str) -> float:
        """A step on one GPU."""
        return self.operations / (GPUS[gpu][0] * 1e12 * UTILIZATION)


def needs(
    shape: Shape,
    *,
    tokens: int,
    patches: int,
    batch: int,
    accumulate: int,
    scored: int,
    rank: int = 8,
    every: int = 4,
) -> Needs:
    """What a step of `reasoner` takes.

    A chat has so many `tokens`, `scored` of them in its answer, and its picture so many `patches`.
    """
    together = tokens * batch
    inner = 4 * shape.hidden + shape.head * (shape.heads + 2 * shape.kv_heads) + 3 * shape.width
    attention = 4 * tokens * shape.hidden * shape.layers
    language = tokens * (2 * shape.layers * shape.layer + attention)
    chat = 3 * (language + scored * 2 * shape.head_weights) + 2 * shape.vision * patches
    return Needs(
        weights=2 * (shape.language + shape.vision),
        adapters=16 * shape.adapters(rank, every),
        layer_inputs=2 * together * shape.hidden * shape.layers,
        one_layer=2 * 2 * together * inner,
        logits=2 * min(batch * scored, TILE_TOKENS) * min(shape.vocabulary, TILE_WORDS),
        operations=float(chat) * batch * accumulate,
        tokens=together * accumulate,
    )


def group_needs(
    shape: Shape, *, prompt: int, answer: int, patches: int, group: int, batch: int
) -> tuple[Needs, int, float]:
    """What a group of answers to one image takes in `grounder`, learned from in passes of `batch`.

    Needs of learning, bytes of keys and values while the group is written, and bytes read for it: answers are
    written one token after the other, each reading all weights once for the whole group.
    """
    learned = needs(
        shape,
        tokens=prompt + answer,
        patches=patches,
        batch=batch,
        accumulate=group // batch,
        scored=answer,
    )
    cache = 2 * 2 * shape.layers * shape.kv_heads * shape.head * (prompt + answer) * group
    return learned, cache, float(answer) * 2 * (shape.layers * shape.layer + shape.head_weights)


def main() -> None:
    picture = 614_656 // PIXELS_A_TOKEN
    tokens = picture + QUESTION + ANSWER
    chat = {"tokens": tokens, "patches": 4 * picture, "scored": ANSWER}
    one = needs(QWEN2_5_VL_7B, batch=4, accumulate=8, **chat)
    small = needs(QWEN2_5_VL_7B, batch=1, accumulate=32, **chat)
    print(f"Reasoner, 7B, {tokens:,} tokens a chat, batch 4, accumulation 8; batch 1, accumulation 32:")
    for name in PARTS:
        two = (f"{getattr(each, name) / GIB:8.2f} GiB" for each in (one, small))
        print(f"  {name.replace('_', ' '):13} {'  '.join(two)}")
    for gpu in GPUS:
        seconds = one.seconds(gpu)
        print(f"  {gpu:12} {seconds:6.1f} s a step, {10_000 / 32 * seconds / 3600:5.2f} h for 10,000 chats")
    prompt, answer, group = picture + 900, 256, 8
    learned, cache, read = group_needs(
        QWEN2_5_VL_7B, prompt=prompt, answer=answer, patches=4 * picture, group=group, batch=4
    )
    print(f"Grounder, 7B, {prompt:,} tokens a question, {group} answers of {answer} tokens an image:")
    for name in PARTS:
        print(f"  {name.replace('_', ' '):13} {getattr(learned, name) / GIB:8.2f} GiB")
    print(f"  keys, values  {cache / GIB:8.2f} GiB, while it writes")
    for gpu, (_, _, bandwidth) in GPUS.items():
        writing = read / (bandwidth * 1e9)
        seconds = writing + learned.seconds(gpu)
        print(f"  {gpu:12} {seconds:6.1f} s an image, {5_000 * seconds / 3600:5.2f} h for 5,000 images")


if __name__ == "__main__":
    main()
