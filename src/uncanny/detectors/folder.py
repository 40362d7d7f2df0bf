"""What a folder from somebody else may say of its model: nothing that runs code or asks a network.

transformers and timm do what `config.json` says: timm reads a pickle that `model_args` names, and asks a hub
for an architecture with a source before its name. Weights that a folder lacks are random numbers to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson

from uncanny.errors import UncannyError, UsageError, first_line
from uncanny.wording import counted, shown

REMEDY: Final = "Pass a folder with config.json and weights of an image classifier."
# Arguments of timm's models that describe a network. Others, such as `checkpoint_path`, are refused.
_TIMM_ARGUMENTS: Final = frozenset(
    (
        *(
            "act_layer",
            "class_token",
            "depth",
            "depths",
            "dims",
            "drop_path_rate",
            "drop_rate",
            "dynamic_img_size",
        ),
        *(
            "embed_dim",
            "fc_norm",
            "final_norm",
            "global_pool",
            "img_size",
            "in_chans",
            "init_values",
            "mlp_ratio",
        ),
        *("no_embed_class", "norm_layer", "num_heads", "output_stride", "patch_size", "pre_norm"),
        *("qk_norm", "qkv_bias", "reg_tokens", "window_size"),
    )
)
_NAME: Final = re.compile(r"\w+(\.\w+)?", re.ASCII)


def read_object(path: Path, remedy: str = REMEDY) -> dict[str, Any]:
    """A JSON object in a file. Raises UsageError for a file that is missing or not an object."""
    content: object = None
    with suppress(OSError, orjson.JSONDecodeError):
        content = orjson.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise UsageError(f"{path} is missing or not a JSON object", remedy=remedy)
    return content


def check_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a folder, if libraries can be given it.

    Of it and all objects in it, `architecture` and `backbone` are names alone, and `model_args` describe a
    network and name no files. Raises UsageError.
    """
    path = folder / "config.json"
    config = read_object(path)
    if (folder / "adapter_config.json").exists():
        raise UsageError(
            f"{folder} holds an adapter beside a model, which may name another model to load",
            remedy="Merge the adapter into the model first.",
        )
    for each in _objects(config):
        for key in ("architecture", "backbone"):
            name = each.get(key)
            if isinstance(name, str) and _NAME.fullmatch(name) is None:
                raise UsageError(
                    f"{path} names {shown(name)} as {key}, which is not a name of timm",
                    remedy="Only names such as resnet50 are taken: nothing is read from elsewhere.",
                )
        arguments = each.get("model_args") or {}
        if not isinstance(arguments, Mapping):
            raise UsageError(f"model_args in {path} is not an object", remedy=REMEDY)
        for key, value in arguments.items():
            if key not in _TIMM_ARGUMENTS or not _is_plain(value):
                raise UsageError(
                    f"{path} passes {shown(key)} to timm, which uncanny does not",
                    remedy=f"Of model_args it takes {', '.join(sorted(_TIMM_ARGUMENTS))}.",
                )
    return config


@contextmanager
def loading(folder: Path, what: str, remedy: str = REMEDY) -> Iterator[None]:
    """Whatever libraries raise on a folder that is not `what` is a UsageError, but for an ImportError."""
    try:
        yield
    except (UncannyError, ImportError):
        raise
    except Exception as error:
        raise UsageError(
            f"{folder} cannot be loaded as {what} ({type(error).__name__}: {first_line(error)})"[:400],
            remedy=remedy,
        ) from error


def check_whole(folder: Path, info: Mapping[str, Any], *, new: str | None = None) -> None:
    """Refuse a model with weights at random because its folder lacks them. Raises UsageError.

    `info` is what transformers says of loading it. Weights whose names begin with `new` are meant to be new.
    """
    missing = sorted(name for name in info["missing_keys"] if new is None or not name.startswith(new))
    if missing:
        raise UsageError(
            f"{folder} lacks {counted(len(missing), 'weight')} of its model, such as {missing[0]}",
            remedy="Pass a folder with all of them. A classifier has those of its head, which it has not "
            "before it is fine-tuned.",
        )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _is_plain(value: Any) -> bool:
    """A number, a yes or no, a name, or a list of these."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float) or _NAME.fullmatch(str(value)) is not None
