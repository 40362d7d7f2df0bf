"""A vision transformer that is trained with its attention: the module, and what is saved of it.

A trained detector is saved as a classifier of transformers. DINOv2's own classifier also pools the patches;
the weights for that half are zeros, so that it says what the class token alone says, as it was trained.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import peft
import torch
import transformers
from torch import Tensor, nn

from uncanny.detectors.attention import AttentionMap, attention_map
from uncanny.detectors.folder import check_config, check_whole, loading
from uncanny.detectors.views import View
from uncanny.errors import UncannyError, UsageError
from uncanny.learn.vision.losses import alignment_loss, artifact_map
from uncanny.wording import option

LABELS = ("real", "generated")
_HERE = {"local_files_only": True, "trust_remote_code": False}
_MOST_DIFFERENCE = 1e-3


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """How the loss is made: β, λ, and how attention is followed."""

    weight: float
    benign_weight: float
    attention: AttentionMap


class AlignedDetector(nn.Module):
    """A transformer with a linear head on its class token.

    `forward` returns the loss of a batch with its parts, so that several processes that share a batch get
    the gradients of one.
    """

    def __init__(self, backbone: Any, side: int, settings: AlignmentSettings) -> None:
        super().__init__()
        self.config = backbone.config
        self.settings, self.side, self.patch = settings, side, int(backbone.config.patch_size)
        self.backbone = backbone
        self.head = nn.Linear(backbone.config.hidden_size, 1)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    @property
    def grid(self) -> tuple[int, int]:
        """Patches down and across."""
        return self.side // self.patch, self.side // self.patch

    def look(self, pixels: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits of "generated" (images,) and the attentions."""
        output = self.backbone(pixel_values=pixels, output_attentions=True)
        return self.head(output.last_hidden_state[:, 0]).squeeze(1), list(output.attentions)

    def attention(self, logits: Tensor, attentions: list[Tensor], *, train: bool = True) -> Tensor:
        """A_cls, (images, h, w), 0–1."""
        method = self.settings.attention
        return attention_map(attentions, self.grid, logits, method=method, train=train)

    def forward(self, pixels: Tensor, generated: Tensor, marked: Tensor, known: Tensor) -> dict[str, Tensor]:
        """`generated` is 1 or 0 an image, `marked` (images, side, side) 1 where there is an
        artifact.

        `known` says of each image if its artifacts are; the alignment loss is a mean over those that are.

        Source: X-AIGD, equation 2: L = BCE + β · L_align.
        """
        logits, attentions = self.look(pixels)
        bce = nn.functional.binary_cross_entropy_with_logits(logits, generated)
        if not self.settings.weight:
            return {"loss": bce, "bce": bce.detach()}
        attention = self.attention(logits, attentions)
        share = known.sum() / len(known)
        wanted = artifact_map(marked, self.patch)
        # A mean over all images with those unknown at no distance, made one over those known.
        wanted = torch.where(known[:, None, None].bool(), wanted, attention.detach())
        aligned = alignment_loss(attention, wanted, self.settings.benign_weight) / share.clamp_min(1e-8)
        loss = bce + self.settings.weight * aligned
        return {"loss": loss, "bce": bce.detach(), "alignment": aligned.detach()}


def new_detector(
    folder: Path, side: int | None, settings: AlignmentSettings, rank: int | None
) -> AlignedDetector:
    """From a folder of weights of a vision transformer. `rank` is that of adapters, None trains all weights.

    Raises UsageError for weights of another kind of model, and for a folder that lacks some.
    """
    check_config(folder)
    load: Any = transformers.AutoModel.from_pretrained
    with loading(folder, "a vision transformer", "Pass a folder of transformers, such as DINOv2."):
        config = transformers.AutoConfig.from_pretrained(folder, **_HERE)
        kind = config.model_type
        pooled = {"add_pooling_layer": False} if kind in ("vit", "deit") else {}
        eager = {"attn_implementation": "eager", "output_loading_info": True}
        backbone, info = load(folder, **eager, **_HERE, **pooled)
        check_whole(folder, info)
    names = [name for name, _ in backbone.named_parameters()]
    if not any(name.endswith("cls_token") for name in names):
        raise UsageError(
            f"{option('base')} is a {kind}, which has no class token",
            remedy="Pass a vision transformer, such as DINOv2.",
        )
    # A model of a fixed size has its positions for that size alone.
    own = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
    chosen = side or (own if kind in ("vit", "deit") else 224)
    chosen -= chosen % int(config.patch_size)
    if kind in ("vit", "deit") and chosen != own:
        raise UsageError(
            f"{option('base')} takes images of {own} × {own} pixels", remedy=f"Remove {option('side')}."
        )
    if rank is not None:
        projections = [name for name in ("q_proj", "k_proj", "v_proj", "o_proj") if name in " ".join(names)]
        lora = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=projections)
        with warnings.catch_warnings():  # it asks for gradient checkpointing in an old way
            warnings.simplefilter("ignore", FutureWarning)
            backbone = peft.get_peft_model(backbone, lora)
    for name, parameter in backbone.named_parameters():
        # Used in pretraining alone; processes that train together wait for each gradient.
        if "mask_token" in name:
            parameter.requires_grad_(False)
    return AlignedDetector(backbone, chosen, settings)


def save_detector(model: AlignedDetector, folder: Path) -> None:
    """Write a classifier of transformers. Raises UncannyError where it would not say the same, OSError."""
    model.eval()
    backbone: Any = model.backbone
    device = next(model.parameters()).device
    probe = torch.rand(2, 3, model.side, model.side, generator=torch.Generator().manual_seed(0)).to(device)
    with torch.no_grad():
        before, _ = model.look(probe)
    if isinstance(backbone, peft.PeftModel):
        backbone = backbone.merge_and_unload()
    config = transformers.AutoConfig.for_model(**model.config.to_dict())
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {name: number for number, name in enumerate(LABELS)}
    classes: Any = transformers.AutoModelForImageClassification
    classifier = classes.from_config(config, attn_implementation="eager").to(device)
    classifier.base_model.load_state_dict(backbone.state_dict())
    width = model.head.weight.shape[1]
    with torch.no_grad():
        classifier.classifier.weight.zero_()
        for row, sign in enumerate((-0.5, 0.5)):  # the difference of both is the logit
            classifier.classifier.weight[row, :width] = sign * model.head.weight[0]
            classifier.classifier.bias[row] = sign * model.head.bias[0]
        logits = classifier.eval()(pixel_values=probe).logits
    difference = (logits[:, 1] - logits[:, 0] - before).abs().max().item()
    if difference > _MOST_DIFFERENCE * max(1.0, before.abs().max().item()):
        raise UncannyError(
            f"The classifier of {config.model_type} does not say what was trained: off by {difference:g}",
            remedy="Train another kind of vision transformer, such as DINOv2.",
        )
    classifier.save_pretrained(folder)
    content = orjson.dumps(view_of(model.side).to_json(), option=orjson.OPT_INDENT_2)
    (folder / "preprocessor_config.json").write_bytes(content + b"\n")


def view_of(side: int) -> View:
    """How a trained detector sees an image: all of it, brought to a square."""
    return View(size=(side, side))
