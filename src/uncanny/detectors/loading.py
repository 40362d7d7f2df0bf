"""From a folder to a classifier: which kind of detector it holds, its labels, and its weights.

Nothing of a folder is run: weights are safetensors, or pickles that torch reads as weights only, and the code
is that of installed libraries. Nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncanny.detectors.folder import REMEDY, check_config, check_whole, read_object
from uncanny.detectors.multitask import MARK, Multitask
from uncanny.detectors.timm_vit import heads_of, is_plain, vit_config, vit_state
from uncanny.detectors.tokens import Tokens, tokens_of
from uncanny.detectors.views import View
from uncanny.errors import UncannyError, UsageError, first_line
from uncanny.extras import optional
from uncanny.files.digests import folder_digest
from uncanny.models.compute import quiet_libraries
from uncanny.schema import Source
from uncanny.wording import counted, option, shown

if TYPE_CHECKING:
    from torch import Tensor, nn

TRAINED: Final = "model"
"""The folder of a training run that its model is in."""
_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin", "model.pt", "model.pth")
# Words of labels, as data sets of generated images have them.
_WORDS: Final[Mapping[Source, frozenset[str]]] = {
    "generated": frozenset(
        ("fake", "generated", "synthetic", "artificial", "ai", "aigc", "deepfake", "diffusion", "gan")
    ),
    "real": frozenset(
        ("real", "natural", "nature", "human", "hum", "authentic", "photo", "photograph", "genuine")
    ),
}


@dataclass(frozen=True, slots=True)
class Classifier:
    """A loaded detector: `module` has the weights, `logit` gives a number an image, above 0 for it.

    `logit` takes pixels (images, 3, height, width), and whether to return attentions: it returns logits
    (images,) and a list of attentions, empty where the network has none or none were asked for. `tokens` are
    those that its head reads, None for networks without attention between all tokens. `multitask` is the
    whole model where the detector is one. `described` is for records and pages.
    """

    module: nn.Module
    logit: Callable[[Tensor, bool], tuple[Tensor, list[Tensor]]]
    view: View
    labels: tuple[str, ...]
    described: Mapping[str, Any]
    tokens: Tokens | None = None
    multitask: Multitask | None = field(default=None, repr=False)


def load_classifier(folder: Path, generated_label: str | None = None) -> Classifier:
    """The detector in `folder`; see the documentation of detectors for what it may hold.

    `generated_label` is the label that means "generated", where the labels do not say it. Weights are on the
    CPU, in evaluation mode. Raises UsageError for a folder without a detector, weights that do not fit,
    labels that do not say which is which, and missing packages.
    """
    kind = check_folder(folder)
    optional("torch", "detectors", "A detector")
    try:
        optional("transformers", "detectors", "A detector")
        with quiet_libraries(reports=False):
            if kind == "multitask":
                return _multitask(folder)
            if kind == "timm":
                return _timm(folder, generated_label)
            return _transformers(folder, generated_label)
    except UncannyError:
        raise
    except ImportError as error:
        raise UsageError(
            f"transformers cannot load {folder} with the packages that are installed ({first_line(error)})",
            remedy="Often torchvision is missing, or of another build than torch: install the one that "
            "belongs to your torch.",
        ) from error
    except Exception as error:  # libraries raise all kinds of errors on weights that are none
        raise UsageError(
            f"{folder} does not hold a detector that can be loaded ({type(error).__name__}: "
            f"{first_line(error)})"[:400],
            remedy=REMEDY,
        ) from error


def check_folder(folder: Path) -> str:
    """Which kind of detector a folder holds, by its files: `multitask`, `timm` or `transformers`.

    Imports nothing. Raises UsageError.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", remedy=REMEDY)
    if (folder / MARK).is_file():
        return "multitask"
    if not (folder / "config.json").exists() and (folder / TRAINED / "config.json").is_file():
        raise UsageError(
            f"{folder} is a run, and its detector is a folder in it", remedy=f"Pass {folder / TRAINED}."
        )
    config = check_config(folder)
    if "architecture" in config:
        return "timm"
    if "model_type" in config:
        if "auto_map" in config:
            raise UsageError(
                f"{folder / 'config.json'} names code of its own, which uncanny does not run",
                remedy="Pass a classifier of an architecture that transformers has.",
            )
        return "transformers"
    raise UsageError(
        f"{folder / 'config.json'} names neither a model_type (transformers) nor an architecture (timm)",
        remedy=REMEDY,
    )


def name_of(folder: Path) -> str:
    """What a detector is called: as its folder, or as the run that it was trained in."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == TRAINED else whole.name


def generated_index(labels: tuple[str, ...], generated_label: str | None) -> int:
    """Which of the labels means "generated".

    `generated_label` names it, or its number. Otherwise exactly one label must have a word for it, such as
    `fake`, or, of two labels, the other one a word for real. One label alone is "generated". Raises
    UsageError where that does not tell.
    """
    if generated_label is not None:
        for number, name in enumerate(labels):
            if generated_label.casefold() in (name.casefold(), str(number)):
                return number
        raise UsageError(
            f"{shown(generated_label)} is not a label of the detector",
            remedy=f"Its labels are {', '.join(labels)}.",
        )
    means = [_meaning(name) for name in labels]
    if len(labels) == 1 and means != ["real"]:
        return 0
    if means.count("generated") == 1:
        return means.index("generated")
    if len(labels) == 2 and means.count("real") == 1:
        return 1 - means.index("real")
    raise UsageError(
        f"The detector's labels do not say which one means generated: {', '.join(labels)}",
        remedy=f"Name it with {option('generated_label')}.",
    )


def _meaning(label: str) -> Source | None:
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", label).casefold()))
    found = [source for source, known in _WORDS.items() if words & known]
    return found[0] if len(found) == 1 else None


def margin(logits: Tensor, index: int) -> Tensor:
    """Log-odds of one class against all others: (images, classes) to (images,).

    Its sigmoid is the softmax of that class. One class alone has its logit.
    """
    import torch

    if logits.shape[1] == 1:
        return logits[:, 0]
    others = [number for number in range(logits.shape[1]) if number != index]
    return logits[:, index] - torch.logsumexp(logits[:, others], dim=1)


def _described(folder: Path, kind: str, architecture: str, labels: tuple[str, ...]) -> dict[str, Any]:
    return {
        "detector": name_of(folder),
        "kind": kind,
        "architecture": architecture,
        "labels": list(labels),
        "weights": folder_digest(folder, anywhere=True)[:16],
    }


def _transformers(folder: Path, generated_label: str | None) -> Classifier:
    transformers = optional("transformers", "detectors", "A detector of transformers")
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    config = transformers.AutoConfig.from_pretrained(folder, **here)
    if type(config) not in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING:
        raise UsageError(
            f"{folder} holds a {config.model_type}, of which transformers has no image classifier",
            remedy=f"{REMEDY} A model that answers prompts goes with {option('model')}.",
        )
    labels = tuple(str(config.id2label[number]) for number in range(config.num_labels))
    index = generated_index(labels, generated_label)
    load = transformers.AutoModelForImageClassification.from_pretrained
    # Pixels are of 32 bits, whatever the weights were saved in.
    here |= {"output_loading_info": True, "dtype": "float32"}
    # Only the eager implementation returns attentions; some architectures have no choice.
    try:
        model, info = load(folder, attn_implementation="eager", **here)
    except ValueError:
        model, info = load(folder, **here)
    check_whole(folder, info)
    prepared = read_object(
        folder / "preprocessor_config.json",
        "It says how images were prepared in training: save the image processor into the folder.",
    )
    view = View.of_processor(prepared, _side(config))
    described = _described(folder, "transformers", type(model).__name__, labels)
    return _of_module(model.eval(), index, view, labels, described)


def _of_module(
    model: Any, index: int, view: View, labels: tuple[str, ...], described: Mapping[str, Any]
) -> Classifier:
    """A classifier of transformers."""

    def logit(pixels: Tensor, attentions: bool) -> tuple[Tensor, list[Tensor]]:
        output = model(pixel_values=pixels, **({"output_attentions": True} if attentions else {}))
        return margin(output.logits, index), list(getattr(output, "attentions", None) or ())

    tokens = tokens_of(model, view.window, lambda logits: margin(logits, index))
    return Classifier(model, logit, view, labels, described, tokens)


def _side(config: Any) -> int:
    side = getattr(getattr(config, "vision_config", config), "image_size", None) or 224
    return int(side if isinstance(side, int) else max(side))


def _timm(folder: Path, generated_label: str | None) -> Classifier:
    """A state dict and the `config.json` that timm writes beside it."""
    transformers = optional("transformers", "detectors", "A detector of timm")
    config = check_config(folder)
    architecture = str(config["architecture"]).partition(".")[0]
    state = _state(folder)
    pretrained = config.get("pretrained_cfg") or {}
    names = config.get("label_names") or pretrained.get("label_names")
    number = int(config.get("num_classes") or pretrained.get("num_classes") or 0)
    labels = tuple(map(str, names)) if names else tuple(map(str, range(number)))
    if not labels:
        raise UsageError(
            f"{folder / 'config.json'} says neither num_classes nor label_names", remedy="Add label_names."
        )
    index = generated_index(labels, generated_label)
    outputs = next(
        (value.shape[0] for name, value in state.items() if name in ("head.weight", "fc.weight")), None
    )
    if outputs not in (None, len(labels)):
        raise UsageError(
            f"{folder / 'config.json'} names {counted(len(labels), 'label')}, and the weights have {outputs}",
            remedy="Name as many labels, in the order of the weights, in label_names.",
        )
    view = View.of_timm(pretrained)
    arguments = config.get("model_args") or {}
    if is_plain(architecture, state, arguments):
        heads = arguments.get("num_heads") or heads_of(architecture)
        vit = transformers.ViTConfig(**vit_config(state, heads), attn_implementation="eager")
        model = transformers.ViTForImageClassification(vit)
        model.load_state_dict(vit_state(state))
        described = _described(folder, "timm", architecture, labels)
        return _of_module(model.eval(), index, view, labels, described)
    timm = optional(
        "timm",
        "detectors",
        f"A detector of the architecture {architecture}",
        instead="convert it to transformers",
    )
    model = timm.create_model(architecture, num_classes=len(labels), pretrained=False, **arguments)
    model.load_state_dict(state)

    def logit(pixels: Tensor, _: bool) -> tuple[Tensor, list[Tensor]]:
        return margin(model(pixels), index), []

    return Classifier(model.eval(), logit, view, labels, _described(folder, "timm", architecture, labels))


def _state(folder: Path) -> dict[str, Any]:
    """The weights in a folder, by name; those of a training checkpoint are under one key. Raises OSError."""
    import torch
    from safetensors.torch import load_file

    for name in _WEIGHTS:
        path = folder / name
        if path.is_file():
            if path.suffix == ".safetensors":
                return dict(load_file(path))
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
            for key in ("state_dict", "model", "model_state_dict"):
                if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
                    content = content[key]
            return {str(key).removeprefix("module."): value for key, value in content.items()}
    raise UsageError(f"{folder} has no weights", remedy=f"Put {' or '.join(_WEIGHTS[:2])} in it.")


def _multitask(folder: Path) -> Classifier:
    model = Multitask.load(folder)
    model.module.eval()

    def logit(pixels: Tensor, _: bool) -> tuple[Tensor, list[Tensor]]:
        return model.authenticity(pixels), []

    labels = ("real", "generated")
    described = _described(folder, "multitask", type(model.segmenter.backbone).__name__, labels)
    described["aspects"] = list(model.aspects)
    return Classifier(model.module, logit, model.view, labels, described, multitask=model)
