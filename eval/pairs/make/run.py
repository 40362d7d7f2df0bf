"""Making candidates: the public functions and their task.

Source: SalArt-VQA, appendix B.3; the texts of prompts after SAGI (supplementary, section 1.3) and Semi-Truths
(section 3.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from uncanny.agents import caption_perturber, prompt_writer
from uncanny.agents.common.annotate_context import AnnotateContext
from uncanny.agents.common.context import AgentContext, failure_kind
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.object_perceiver import take_inventory
from uncanny.agents.pairs import inpainter
from uncanny.agents.pairs.painted import PaintedFolder
from uncanny.agents.steps import TAKE_INVENTORY
from uncanny.client.calls import usage
from uncanny.errors import ExtensionError, StepFailedError, UsageError
from uncanny.eval.common.inputs.named_images import name_images
from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.pairs.data import (
    CANDIDATES,
    Candidate,
    MaskSource,
    Original,
    PromptSource,
    Rejection,
)
from uncanny.eval.pairs.make.compose import (
    COMPRESSION,
    Attempt,
    RgbPixels,
    Working,
    attempts,
    compose,
    outside_painted,
    short_name,
    working,
)
from uncanny.eval.pairs.make.given import GivenMasks
from uncanny.eval.pairs.make.outline import MaskError, Sam2, region_mask
from uncanny.eval.pairs.make.people import PeopleFinder
from uncanny.eval.pairs.make.regions import (
    PEOPLE,
    Region,
    chosen_regions,
    detail_regions,
    object_regions,
)
from uncanny.eval.pairs.make.result import MakeRun
from uncanny.eval.pairs.parameters import MakeConfig, MakeParameters
from uncanny.files.digests import digest
from uncanny.images.encode import png_bytes
from uncanny.images.prepared import PreparedImage, read_rgb
from uncanny.models.base import sent_image
from uncanny.parameters import takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.jsonl import write_in_run
from uncanny.records.record_file import RecordFile
from uncanny.runs.image_task import Images, ImageTask, image_paths, other_models
from uncanny.runs.inputs import ImageFile
from uncanny.runs.parameters import TableParameters
from uncanny.runs.progress import Progress
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import SceneObject, StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord, CallScope
    from uncanny.runs.engine import Engine

# Columns of metadata that say what a picture shows, the first one that has text.
CAPTIONS: Final = ("caption", "prompt", "text")
ROLES: Final[Mapping[str, str]] = {
    **inpainter.ROLES,
    "perceiver": TAKE_INVENTORY.agent,
    **prompt_writer.ROLES,
    **caption_perturber.ROLES,
}
# Images side by side: each holds its pixels, and a GPU has enough to do with one.
_AT_ONCE: Final = 4


def make_task(parameters: MakeParameters, images: Images, *, copy: bool = True) -> MakeTask:
    """The task over these images; `copy` False leaves bundled images where they are.

    Raises UsageError. Blocking.
    """
    if parameters.options.processing is not None:
        raise UsageError(
            "Pictures are not painted in batches or in the background",
            remedy="Make pairs without these options.",
        )
    out = None if parameters.out is None else Path(parameters.out)
    paths, _ = name_images(image_paths(images), out, copy=copy)
    return MakeTask(
        folder=parameters.folder,
        paths=paths,
        models=parameters.models,
        options=parameters.options,
        policy=parameters.policy,
        root=None if parameters.root is None else Path(parameters.root),
        prompts=read_prompts("edits", parameters.prompts),
        table=parameters.part(TableParameters),
        config=parameters.part(MakeConfig, regions=chosen_regions(parameters)),
        has_model=parameters.model is not None,
    )


@takes(MakeParameters, "out")
async def make_async(images: Images, parameters: MakeParameters) -> MakeRun:
    """Paint over a region of each image, several times, and keep everything outside the region as it was.

    `images` are files and folders, also Parquet and Arrow files with pictures in their rows, or the word
    `scenes` for the bundled images. For each image it finds regions, makes their masks, and asks the
    inpainter for `attempts` candidates of each. Pixels outside the mask are put back from the original, bit
    for bit. Captions come from a column `caption`, `prompt` or `text` of the images' metadata.

    Candidates go to `out` as they come, with all that was asked. The same call resumes a run that was
    interrupted; a picture that came back is not paid for again.

    Returns the run, even if it ended early or some images failed: see its `summary`, and `rejected` of its
    candidates. Raises UsageError for invalid parameters and missing packages, and ModelUnusableError if the
    inpainter cannot be used at all.

    `make_async` is the same for programs with an event loop.

    >>> run = uncanny.pairs.make(images, inpainter="demo", out=out, attempts=2)
    >>> [candidate.seed for candidate in run.originals[0].candidates]
    [0, 1]

    Source: SalArt-VQA, appendix B.3. There the inpainter is FLUX.1 Fill, and regions are hands, feet and
    faces; limbs, masks, objects and detail are ours.
    """
    task = await asyncio.to_thread(make_task, parameters, images)
    return MakeRun(task.folder.path, await run_with(task, parameters))


make = blocking(make_async)


@dataclass(frozen=True, slots=True, eq=False)
class _Image:
    """One image on its way: its names, its pixels, and what agents ask through."""

    file: ImageFile
    prepared: PreparedImage
    pixels: RgbPixels
    caption: str
    scope: CallScope
    context: AgentContext[MakeConfig]

    @property
    def name(self) -> str:
        return short_name(self.file.image, self.prepared.source_sha256)

    @property
    def size(self) -> tuple[int, int]:
        return (self.pixels.shape[1], self.pixels.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    """A region that can be painted over, or why not."""

    number: int
    region: Region
    mask: Mask | None = None
    mask_source: MaskSource | None = None
    inputs: Working | None = None
    prompt: str = ""
    rejected: Rejection | None = None


@dataclass(kw_only=True)
class MakeTask(ImageTask[Original]):
    """The task of making candidates. `has_model` says that there is a model besides the inpainter."""

    name = "pairs_make"
    record_file = CANDIDATES
    record_type = Original
    roles = ROLES
    found = "candidates"

    config: MakeConfig = field(default_factory=MakeConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("edits"))
    has_model: bool = False
    _finding: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        _ = (self._masks, self._people, self._sam)  # refused now, and not when the run has begun

    # Found again by each process that works on images.
    @cached_property
    def _masks(self) -> GivenMasks | None:
        return None if self.config.masks is None else GivenMasks(Path(self.config.masks))

    @cached_property
    def _people(self) -> PeopleFinder | None:
        part, file = PEOPLE.get(self.config.regions or ""), self.config.landmarks
        return None if part is None or file is None else PeopleFinder(part, Path(file))

    @cached_property
    def _sam(self) -> Sam2 | None:
        return None if self.config.sam2 is None else Sam2(self.config.sam2, self.config.device)

    @property
    def inputs_at_once(self) -> int:
        return min(_AT_ONCE, self.options.concurrency)

    @property
    def calls_per_input(self) -> int:
        config = self.config
        of_region = config.attempts + (config.prompt_from != "caption")
        return config.regions_per_image * of_region + (config.regions == "objects")

    def config_json(self) -> dict[str, Any]:
        content = super().config_json()
        del content["device"]  # another one may go on
        content["masks"] = None if self.config.masks is None else str(self.config.masks)
        content["inventory"] = prompt_set("packed").id if self.config.regions == "objects" else None
        # A name on the hub is not a folder; given masks do not need SAM 2.
        used = {"landmarks": self._people, "sam2": self._sam if self._masks is None else None}
        for name, model in used.items():
            place = Path(content[name] or "")
            is_here = model is not None and place.exists()
            content[f"{name}_sha256"] = digest(place, anywhere=True) if is_here else None
        return content

    def load_pending(self, records: RecordFile[Original], progress: Progress) -> Sequence[ImageFile]:
        pending = super().load_pending(records, progress)
        if self._masks is not None:
            again = {file.image for file in pending}
            kept = (records.get(name) for name in self.files.names() if name not in again)
            self._masks.check_same(self.folder, kept)
        return pending

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> Original:
        picture = (await asyncio.to_thread(read_rgb, file.source, self.policy))[0]
        with asking(engine, file.image, calls) as scope:
            context = AgentContext(engine.model_client, scope, self.config, self.prompts)
            caption = self._caption(file)
            about = _Image(file, image, np.asarray(picture), caption, scope, context)
            original = f"originals/{about.name}.png"
            target = self.folder.path / original
            await asyncio.to_thread(lambda: write_in_run(target, [png_bytes(picture, COMPRESSION)]))
            errors: list[StepError] = []
            candidates: list[Candidate] = []
            why = masks = None
            try:
                if self._masks is not None:
                    masks = await asyncio.to_thread(self._masks.digest, Path(file.image))
                regions = await self._find(about, picture)
                why = None if regions else "no region was found"
                chosen = range(min(len(regions), self.config.regions_per_image))
                planned = [await self._plan(about, regions, number, errors) for number in chosen]
                made = (
                    self._candidate(about, each, attempt, errors)
                    for each in planned
                    for attempt in attempts(self.config)
                )
                candidates = await scope.side_by_side(made)
            except StepFailedError as failed:
                errors.append(failed.record)
            except ExtensionError:
                raise
            except UsageError as error:  # a mask that cannot be read, or is of another size
                errors.append(StepError(agent="image", step=0, kind="unsupported", message=error.message))
        # With some candidates the image is usable already; the rest are tried again.
        some = any(each.rejected is None for each in candidates)
        return self.record(
            file,
            image,
            "ok" if not errors else "partial" if some else "failed",
            original=original,
            caption=caption,
            masks_sha256=masks,
            candidates=tuple(candidates),
            no_region=why,
            errors=tuple(errors),
            usage=usage(scope.calls),
            **other_models(scope.calls, str(self.models.model)),
        )

    def _caption(self, file: ImageFile) -> str:
        """What the image shows, by its metadata, or by what was given for all images."""
        columns = self.cells(file).get("columns", {})
        texts = (str(columns[name]).strip() for name in CAPTIONS if isinstance(columns.get(name), str))
        return next(filter(None, texts), self.config.caption)

    async def _find(self, about: _Image, picture: Image.Image) -> list[Region]:
        """All subjects, also beyond those that are edited: a mask must not spread to them. Where they are not
        known, as many regions as are edited. Raises StepFailedError where objects were asked for in vain."""
        config, number = self.config, self.config.regions_per_image
        if self._masks is not None:
            return await asyncio.to_thread(self._masks.regions, Path(about.file.image), about.size, number)
        if self._people is not None:
            async with self._finding:
                return await asyncio.to_thread(self._people.regions, about.pixels)
        if config.regions == "objects":
            return object_regions(await self._objects(about), about.size, config.largest_region)
        return await asyncio.to_thread(detail_regions, picture, number)

    async def _objects(self, about: _Image) -> list[SceneObject]:
        """What the ObjectPerceiver names, those with the most that could be wrong first."""
        context = AnnotateContext(
            about.context.model_client,
            about.scope,
            AnnotateConfig(repeats=1, max_objects=max(12, self.config.regions_per_image)),
            prompt_set("packed"),
            sent_image(about.prepared),
            size=about.size,
        )
        return list((await take_inventory({"image": about.file.image}, context))["objects"])

    async def _plan(
        self, about: _Image, regions: Sequence[Region], number: int, errors: list[StepError]
    ) -> _Planned:
        """Mask and prompt of a region; what cannot be had is rejected. A call that failed joins `errors`."""
        region = regions[number]
        others = [each for each in regions if each is not region]
        planned = partial(_Planned, number, region)
        masked = partial(
            region_mask,
            region,
            others,
            about.pixels,
            self._sam,
            dilate=self.config.dilate,
            largest=self.config.largest_region,
        )
        try:
            mask, source = await asyncio.to_thread(masked)
        except MaskError as error:
            return planned(rejected=Rejection(step="mask", why=str(error)))
        file = self.folder.path / _mask_file(about, number)
        picture = Image.fromarray(mask.astype(np.uint8) * 255)
        await asyncio.to_thread(lambda: write_in_run(file, [png_bytes(picture, COMPRESSION)]))
        try:
            prompt = await self._prompt(about, region)
        except StepFailedError as failed:
            _note(failed, errors)
            return planned(mask, source, rejected=Rejection(step="prompt", why=failed.record.message))
        inputs = await asyncio.to_thread(working, about.pixels, mask, self.config.inpaint_side)
        return planned(mask, source, inputs, prompt)

    async def _prompt(self, about: _Image, region: Region) -> str:
        """What the inpainter is told of the picture. Raises StepFailedError."""
        match self.config.prompt_from:
            case "writer":
                written = await prompt_writer.write_first(about.caption, [region.hint.name], about.context)
                return written.prompt or about.caption
            case "perturber":
                return await caption_perturber.perturb(
                    about.caption, "caption", "small", sent_image(about.prepared), about.context
                )
            case _:
                return about.caption

    async def _candidate(
        self, about: _Image, planned: _Planned, attempt: Attempt, errors: list[StepError]
    ) -> Candidate:
        """One candidate, made or rejected; a call that failed joins `errors`."""
        record = partial(self._record_of, about, planned, attempt)
        inputs = planned.inputs
        if planned.rejected is not None or planned.mask is None or inputs is None:
            return record(rejected=planned.rejected)
        name = _candidate_id(about, planned, attempt)
        try:
            kept = await inpainter.inpaint(
                inputs.picture,
                inputs.mask,
                planned.prompt,
                attempt.parameters,
                PaintedFolder(self.folder.path / "painted"),
                about.context,
                subject=name,
                device=self.config.device,
            )
        except StepFailedError as failed:
            _note(failed, errors)
            return record(rejected=Rejection(step="inpaint", why=failed.record.message))
        edited = f"edited/{name}.png"
        digest = await asyncio.to_thread(
            compose, about.pixels, planned.mask, kept.picture, self.folder.path / edited
        )
        outside = None if kept.resampled else await asyncio.to_thread(outside_painted, inputs, kept.picture)
        call = next(
            each
            for each in reversed(about.scope.calls)
            if each.agent == inpainter.AGENT and each.object == name
        )
        return record(
            model=call.model,
            revision=call.served_model,
            sent=dict(kept.sent),
            painted=kept.file.relative_to(self.folder.path).as_posix(),
            edited=edited,
            sha256=digest,
            outside_painted=outside,
        )

    def _record_of(self, about: _Image, planned: _Planned, attempt: Attempt, **more: Any) -> Candidate:
        mask = planned.mask
        source: PromptSource = self.config.prompt_from
        fields = {"model": str(self.models.roles["inpainter"]), **more}
        return Candidate(
            id=_candidate_id(about, planned, attempt),
            region=planned.region.hint,
            mask=None if mask is None else _mask_file(about, planned.number),
            mask_source=planned.mask_source,
            dilation=self.config.dilate,
            mask_share=None if mask is None else float(np.count_nonzero(mask) / mask.size),
            prompt=planned.prompt,
            prompt_source=source,
            seed=int(attempt.parameters["seed"]),
            guidance=attempt.parameters["guidance"],
            strength=attempt.parameters["strength"],
            steps=int(attempt.parameters["steps"]),
            **fields,
        )


def _note(failed: StepFailedError, errors: list[StepError]) -> None:
    """The call is made again next time, unless the model refused."""
    if failure_kind(failed.error) != "refused":
        errors.append(failed.record)


def _mask_file(about: _Image, number: int) -> str:
    return f"masks/{about.name}-{number + 1}.png"


def _candidate_id(about: _Image, planned: _Planned, attempt: Attempt) -> str:
    return f"{about.name}-{planned.number + 1}-{attempt.number + 1}"
