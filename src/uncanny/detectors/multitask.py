"""One model for authenticity and pixels: a Swin backbone, a linear classifier, and UPerNet.

Source: X-AIGD, section 5 and appendix B.2. A folder of it holds a segmentation model that transformers loads
by itself (`config.json`, `model.safetensors`), the classifier beside it (`authenticity.safetensors`), how
images are prepared (`preprocessor_config.json`), and `multitask.json`: what it was trained for.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import orjson

from uncanny.detectors.folder import check_config, check_whole
from uncanny.detectors.views import View
from uncanny.errors import UsageError
from uncanny.extras import optional
from uncanny.schema import ARTIFACT_CATEGORIES

if TYPE_CHECKING:
    from torch import Tensor, nn

Aspect = Literal["authenticity", "pixels"]
ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)
"""What a multitask model says of an image: whether it is generated, and which pixels are artifacts."""

MARK: Final = "multitask.json"
_HEAD: Final = "authenticity.safetensors"
# Class 0 is what is not an artifact.
CLASSES: Final = ("background", *ARTIFACT_CATEGORIES)
HEAD_CHANNELS: Final = 512
# Swin's windows and its halvings: sides that are a multiple of this need no padding.
STRIDE: Final = 32


class Heads(NamedTuple):
    """What the heads say of a batch.

    `authenticity` are logits of "generated" (images,), `pixels` are logits of `CLASSES` (images, classes,
    height, width), at the size of the input; `auxiliary` are those of the auxiliary head, of the same shape.
    """

    authenticity: Tensor
    pixels: Tensor
    auxiliary: Tensor


class Multitask:
    """The model: `module` has all parameters, `aspects` what it was trained for, `view` how it sees."""

    def __init__(self, segmenter: Any, view: View, aspects: tuple[Aspect, ...] = ASPECTS) -> None:
        torch = optional("torch", "detectors", "A multitask model")
        self.segmenter, self.view, self.aspects = segmenter, view, aspects
        self.classifier: nn.Linear = torch.nn.Linear(segmenter.backbone.channels[-1], 1)
        self.module: nn.Module = torch.nn.ModuleDict(
            {"segmenter": self.segmenter, "classifier": self.classifier}
        )

    @classmethod
    def new(
        cls, backbone: Any, view: View, *, channels: int = HEAD_CHANNELS, weights: Path | None = None
    ) -> Multitask:
        """With heads that have learned nothing.

        `backbone` is the configuration of a backbone of transformers with four stages, such as `SwinConfig`.
        `channels` is the width of both segmentation heads. `weights` is a folder of the backbone's weights,
        which transformers has saved; None leaves them random. Raises UsageError for a folder that lacks some.
        """
        transformers = optional("transformers", "detectors", "A multitask model")
        stages = [f"stage{number}" for number in range(1, len(backbone.depths) + 1)]
        backbone.out_features = stages
        config = transformers.UperNetConfig(
            backbone_config=backbone,
            hidden_size=channels,
            auxiliary_channels=channels,
            num_labels=len(CLASSES),
            id2label=dict(enumerate(CLASSES)),
            label2id={name: number for number, name in enumerate(CLASSES)},
        )
        segmenter = transformers.UperNetForSemanticSegmentation(config)
        if weights is not None:
            segmenter.backbone, info = type(segmenter.backbone).from_pretrained(
                weights, out_features=stages, local_files_only=True, output_loading_info=True
            )
            # A model that classifies has no norms of its stages.
            check_whole(weights, info, new="hidden_states_norms.")
        return cls(segmenter, view)

    def __call__(self, pixels: Tensor) -> Heads:
        """What the heads say of images (images, 3, height, width)."""
        from torch.nn.functional import interpolate

        features = self.segmenter.backbone(pixels).feature_maps
        size = pixels.shape[2:]
        main, auxiliary = (
            interpolate(head(features), size=size, mode="bilinear", align_corners=False)
            for head in (self.segmenter.decode_head, self.segmenter.auxiliary_head)
        )
        pooled = features[-1].mean(dim=(2, 3))
        return Heads(self.classifier(pooled).squeeze(1), main, auxiliary)

    def authenticity(self, pixels: Tensor) -> Tensor:
        """Logits of "generated" alone, which cost no segmentation."""
        features = self.segmenter.backbone(pixels).feature_maps
        logits: Tensor = self.classifier(features[-1].mean(dim=(2, 3))).squeeze(1)
        return logits

    def square(self, side: int) -> View:
        """Its view of images that are brought to a square of `side` pixels, as training needs them."""
        return replace(self.view, size=(side, side), shortest=None, longest=None)

    def save(self, folder: Path) -> None:
        """Write the folder that `load` reads. Raises OSError."""
        from safetensors.torch import save_file

        self.segmenter.save_pretrained(folder)
        save_file(
            {name: value.contiguous() for name, value in self.classifier.state_dict().items()},
            folder / _HEAD,
        )
        mark = {"aspects": list(self.aspects), "classes": list(CLASSES)}
        for name, content in ((MARK, mark), ("preprocessor_config.json", self.view.to_json())):
            (folder / name).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")

    @classmethod
    def load(cls, folder: Path) -> Multitask:
        """From the folder that `save` wrote. Raises UsageError for one that does not fit, and OSError."""
        transformers = optional("transformers", "detectors", "A multitask model")
        from safetensors.torch import load_file

        mark = orjson.loads((folder / MARK).read_bytes())
        if mark.get("classes") != list(CLASSES) or not set(mark.get("aspects", ())) <= set(ASPECTS):
            raise UsageError(
                f"{folder / MARK} names other classes than this version of uncanny",
                remedy="Train the model with this version.",
            )
        check_config(folder)
        view = View.of_processor(orjson.loads((folder / "preprocessor_config.json").read_bytes()), 512)
        segmenter, info = transformers.UperNetForSemanticSegmentation.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
        check_whole(folder, info)
        model = cls(segmenter, view, tuple(mark["aspects"]))
        model.classifier.load_state_dict(load_file(folder / _HEAD))
        return model
