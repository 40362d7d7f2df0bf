"""Inpainting pipelines of diffusers in this process, `diffusers/<name>`: a folder, or a name of the hub.

The pipeline is loaded by the first request, on the device that this names, else on a GPU if there is one, and
paints one picture after another.
"""

from __future__ import annotations

import asyncio
import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from uncanny.errors import (
    ModelUnusableError,
    ProviderError,
    RequestRejectedError,
    StorageError,
    TransientError,
    UsageError,
    text_of,
)
from uncanny.extras import install_hint
from uncanny.files.digests import folder_digest
from uncanny.images.encode import png_bytes
from uncanny.models.base import Capabilities, ModelProvider, ModelRequest, ModelResponse, Painting, Tokens
from uncanny.models.compute import choose_device, quiet_libraries
from uncanny.models.error_body import one_line
from uncanny.models.painting.canvas import on_canvas
from uncanny.models.registry import weights_place

# By the name of a parameter of a `Painting`, that of an argument of a pipeline.
_ARGUMENTS: Final = {"guidance": "guidance_scale", "strength": "strength", "steps": "num_inference_steps"}
# Flux packs latents two by two: sides are multiples of twice the factor of the VAE.
_PACKED: Final = 2
_FREE: Final = Tokens(input=0, output=0, cached=0, cache_written=0)


class DiffusersProvider(ModelProvider):
    """An inpainting pipeline, such as Stable Diffusion inpainting or FLUX Fill.

    `model` is a folder in diffusers' format, or the name of a repository, with `@` and a revision behind it
    if need be. Weights are read from safetensors files only, and nothing that comes with them is run. Seeds
    are drawn on the CPU, so that another device paints nearly the same. Raises `ModelUnusableError` where
    diffusers is not installed.
    """

    capabilities = Capabilities(paints=True, fixed_concurrency=True, temperature=False, top_p=False)

    def __init__(self, model: str) -> None:
        self.name = f"diffusers/{model}"
        if find_spec("diffusers") is None or find_spec("torch") is None:
            raise ModelUnusableError(
                f"{self.name} needs diffusers and torch in this Python", remedy=install_hint("pairs")
            )
        self._model = model
        self._pipeline: Any = None
        self._served = ""
        self._painting = asyncio.Lock()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Paint one picture; see `ModelProvider.generate`."""
        if request.painting is None:
            raise RequestRejectedError(
                f"{self.name} paints pictures and does not answer questions", remedy="Use another model."
            )
        async with self._painting:
            return await asyncio.to_thread(self._paint, request, request.painting)

    def _paint(self, request: ModelRequest, painting: Painting) -> ModelResponse:
        if self._pipeline is None:
            with quiet_libraries("transformers", "diffusers", reports=False):
                self._pipeline, self._served = _loaded(self.name, self._model, painting.device)
        try:
            return self._painted(request, painting)
        except (ProviderError, StorageError):
            raise
        except Exception as error:
            message = f"{self.name}: {one_line(text_of(error), ())}"
            if "out of memory" in str(error).lower():
                raise TransientError(message, kind="memory") from error
            raise RequestRejectedError(message) from error

    def _painted(self, request: ModelRequest, painting: Painting) -> ModelResponse:
        import torch

        pipeline = self._pipeline
        picture, _, text = request.to_paint()
        multiple = _PACKED * int(getattr(pipeline, "vae_scale_factor", 8))
        size = (-(-picture.width // multiple) * multiple, -(-picture.height // multiple) * multiple)
        canvas = on_canvas(request, size)
        taken = inspect.signature(pipeline.__call__).parameters
        sent = {
            name: value
            for name, value in painting.parameters.items()
            if name == "seed" or _ARGUMENTS[name] in taken
        }
        output = pipeline(
            prompt=text,
            image=canvas.picture,
            mask_image=canvas.mask,
            width=size[0],
            height=size[1],
            generator=torch.Generator("cpu").manual_seed(painting.seed),
            **{_ARGUMENTS[name]: value for name, value in sent.items() if name != "seed"},
        )
        flagged = getattr(output, "nsfw_content_detected", None)
        if flagged and flagged[0]:
            reason = "the pipeline's safety checker blanked the picture"
            return ModelResponse("", "refusal", _FREE, self._served, reason=reason)
        drawn = output.images[0]
        return ModelResponse(
            painting.keep(png_bytes(canvas.back(drawn), 1), sent, resampled=canvas.resamples(drawn)),
            tokens=_FREE,
            model=self._served,
        )


def _loaded(name: str, model: str, device: str | None) -> tuple[Any, str]:
    """The pipeline, and its name with what tells its weights from others. Raises ModelUnusableError."""
    import diffusers as library
    import torch

    # Its classes have no types.
    auto: Any = library.AutoPipelineForInpainting
    plain: Any = library.DiffusionPipeline

    repository, _, revision = model.partition("@")
    try:
        device = choose_device(device)
    except UsageError as error:
        raise ModelUnusableError(error.message, remedy=error.remedy) from error
    options: dict[str, Any] = {"dtype": torch.bfloat16 if device.startswith("cuda") else torch.float32}
    options["use_safetensors"] = True
    try:
        folder = Path(weights_place(model))
        if not folder.is_dir():
            folder = Path(plain.download(repository, revision=revision or None))
        try:
            pipeline = auto.from_pretrained(folder, **options)
        except ValueError:  # it does not know every inpainting pipeline, FLUX Fill for one
            pipeline = plain.from_pretrained(folder, **options)
        if "mask_image" not in inspect.signature(pipeline.__call__).parameters:
            raise ValueError(f"{type(pipeline).__name__} takes no mask")
    except Exception as error:  # whatever hub, files and libraries raise
        raise ModelUnusableError(
            f"{name} cannot be loaded: {one_line(text_of(error), ())}",
            remedy="Pass the folder of an inpainting pipeline of diffusers, or its name on the hub.",
        ) from error
    pipeline.set_progress_bar_config(disable=True)
    # The hub's cache calls folders after commits.
    version = folder.name if folder.parent.name == "snapshots" else folder_digest(folder, anywhere=True)[:16]
    return pipeline.to(device), f"{repository}@{version}"
