"""Vision transformers as timm writes them, for transformers: the same network under other names.

timm's own package needs torchvision, whose wheel on the package index is tied to CUDA. For plain vision
transformers, which most released detectors are, the names of the weights are all that differs, so they are
renamed here. Any other architecture goes through timm where it is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from uncanny.errors import UsageError

# Where transformers keeps what timm calls by these names, in a layer and outside of the layers.
_IN_LAYER: Final[Mapping[str, str]] = {
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "attn.proj": "attention.o_proj",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}
_OUTSIDE: Final[Mapping[str, str]] = {
    "cls_token": "vit.embeddings.cls_token",
    "pos_embed": "vit.embeddings.position_embeddings",
    "patch_embed.proj": "vit.embeddings.patch_embeddings.projection",
    "norm": "vit.layernorm",
    "head": "classifier",
}
_LAYER: Final = re.compile(r"blocks\.(\d+)\.(.+)\.(weight|bias)")
_PLAIN: Final = re.compile(r"(vit|deit)_\w+_patch\d+_\d+")
_HEAD_WIDTH: Final = 64
# Arguments that the shapes of the weights show, the number of heads, and what only training has.
_IN_SHAPES: Final = frozenset(
    (
        *("depth", "drop_path_rate", "drop_rate", "embed_dim", "img_size", "in_chans", "mlp_ratio"),
        *("num_heads", "patch_size", "qkv_bias"),
    )
)
# Those that do not have one head for so many channels.
_SIXTEEN_HEADS: Final = ("huge", "giant", "gigantic")


def is_plain(architecture: str, state: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether these weights are of a vision transformer that transformers has, too.

    `arguments` are those that timm's model was made with; some change what the same weights say.
    """
    if not arguments.keys() <= _IN_SHAPES:
        return False
    if _PLAIN.fullmatch(architecture) is None or "distilled" in architecture:
        return False
    return all(_renamed(name) is not None for name in state)


def heads_of(architecture: str) -> int | None:
    """Attention heads, where they do not follow from the width."""
    return 16 if architecture.split("_")[1] in _SIXTEEN_HEADS else None


def vit_config(state: Mapping[str, Any], heads: int | None = None) -> dict[str, Any]:
    """The keywords of a `ViTConfig`, read off the shapes of the weights.

    `heads` is the number of attention heads, which no shape shows; None is timm's rule: 64 channels each.
    Raises UsageError for weights without the parts of a vision transformer.
    """
    try:
        projection, positions = state["patch_embed.proj.weight"], state["pos_embed"]
        first, labels = state["blocks.0.mlp.fc1.weight"], state["head.weight"]
    except KeyError as error:
        raise UsageError(
            f"The weights lack {error.args[0]!r}",
            remedy="Pass the weights of a vision transformer of timm with its head.",
        ) from None
    width, channels, patch = projection.shape[0], projection.shape[1], projection.shape[2]
    layers = 1 + max(int(found[1]) for name in state if (found := _LAYER.fullmatch(name)))
    side = round((positions.shape[1] - 1) ** 0.5)
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads or max(1, width // _HEAD_WIDTH),
        "intermediate_size": first.shape[0],
        "num_channels": channels,
        "patch_size": patch,
        "image_size": side * patch,
        "num_labels": labels.shape[0],
        "qkv_bias": "blocks.0.attn.qkv.bias" in state,
        "layer_norm_eps": 1e-6,
        "hidden_act": "gelu",
    }


def vit_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The weights under the names of `ViTForImageClassification`."""
    renamed: dict[str, Any] = {}
    for name, value in state.items():
        new = _renamed(name)
        assert new is not None, name
        if not new.endswith("*"):
            renamed[new] = value
            continue
        # One matrix of three: queries, keys and values.
        stem, kind = new.removesuffix("*"), name.rpartition(".")[2]
        for part, each in zip("qkv", value.chunk(3), strict=True):
            renamed[f"{stem}{part}_proj.{kind}"] = each.clone()
    return renamed


def _renamed(name: str) -> str | None:
    """What transformers calls it, ending in `*` for the matrix of three; None for what it has not."""
    if (found := _LAYER.fullmatch(name)) is not None:
        number, part, kind = found.groups()
        if part == "attn.qkv":
            return f"vit.layers.{number}.attention.*"
        return f"vit.layers.{number}.{_IN_LAYER[part]}.{kind}" if part in _IN_LAYER else None
    stem, _, kind = name.rpartition(".")
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    return f"{_OUTSIDE[stem]}.{kind}" if stem in _OUTSIDE and kind in ("weight", "bias") else None
