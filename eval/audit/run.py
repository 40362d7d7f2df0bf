"""Audits: annotate images that have no annotations yet, load what there is, score it.

Image folders get one annotation run each, with the same model, prompts and pixels for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from uncanny.agents.config import AnnotateConfig
from uncanny.annotation.run import AnnotateTask, annotate_config
from uncanny.demo.scenes import scene_files, scene_images
from uncanny.errors import StoppedError, UsageError
from uncanny.eval.audit.data.aggregate import Pairing
from uncanny.eval.audit.data.folder import read_generator_folder, read_releases
from uncanny.eval.audit.data.load import find_pairing, load_generators, provenances
from uncanny.eval.audit.parameters import AuditParameters, Named
from uncanny.eval.audit.score.releases import before_name
from uncanny.eval.audit.score.result import AuditResult
from uncanny.eval.audit.score.score import score_audit
from uncanny.eval.common.alike import Provenance, as_texts, check_alike, settings_of, together
from uncanny.eval.common.groups import IMAGE, STEM, cell_text
from uncanny.eval.common.inputs.sources import Source, read_sources
from uncanny.eval.common.similarity.base import open_measure
from uncanny.images.columns import ImageColumns
from uncanny.models.registry import ModelOptions
from uncanny.parameters import takes
from uncanny.prompts import PromptSet
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder, check_apart, copy_into
from uncanny.runs.parameters import TableParameters
from uncanny.runs.progress import what_is_left
from uncanny.runs.resume import prompts_of
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.wording import counted, option, shown


def score_sources(
    parameters: AuditParameters,
    sources: Sequence[Source],
    against: Sequence[Source] = (),
    before: Sequence[Source] = (),
    notices: tuple[str, ...] = (),
) -> AuditResult:
    """Load and score annotations. Raises UsageError and ItemsError as `audit` does."""
    measure, calibration = open_measure(parameters.group_names_by), parameters.read_calibration()
    root = None if parameters.root is None else Path(parameters.root)
    pairing = find_pairing(parameters.pair_by, (*sources, *against, *before), root)
    generators, second, earlier = (
        load_generators(
            each,
            root=root,
            pairing=pairing,
            worst=parameters.worst,
            min_confidence=parameters.min_confidence,
            judged=judged and not parameters.uncorrected,
            calibration=calibration,
        )
        # Two assessors are compared by what each of them found.
        for each, judged in ((sources, True), (against, False), (before, True))
    )
    return score_audit(
        generators,
        second,
        earlier,
        parameters,
        measure=measure,
        pair_by=pairing.by,
        notices=notices,
        calibration=calibration,
    )


def annotating_of(parameters: AuditParameters, source: Source, *, dry: bool = False) -> Annotating:
    """How the images of `source` and all others are annotated; `dry` for a forecast.

    Raises UsageError, also if no model or, unless `dry`, no folder is named.
    """
    if parameters.model is None or (parameters.out is None and not dry):
        what, how = (
            ("no model is named", f"Pass {option('model')} to annotate them.")
            if parameters.model is None
            else ("no folder is named for them", f"Pass {option('out', 'runs/NAME')}.")
        )
        raise UsageError(
            f"{source.name}: {source.place} contains images without annotations, and {what}", remedy=how
        )
    parameters.read_calibration()  # a bad one is refused before a model is asked
    out = parameters.folder.path
    folder = RunFolder(out / source.name)
    if source.path is not None and not folder.manifest.is_file():
        check_apart(out, (), [source.path])
    config = annotate_config(parameters, folder)
    models = parameters.models_of(parameters.model)
    return Annotating(parameters, out, models, config, read_prompts(config.table.prompts, parameters.prompts))


@takes(AuditParameters)
async def audit_async(sources: Named | str | PathLike[str], parameters: AuditParameters) -> AuditResult:
    """Rank image generators by MAI, AF and CAP. Lower is better; 0 is flawless.

    `sources` has, by generator, a run folder of `annotate`, a JSON Lines file of annotations, annotations in
    memory, or images: a folder, or bundled ones (`scenes:rendered`, `scenes:drawn`). Or it is a folder with a
    folder for each generator. Images are annotated first by `model`, into `out/NAME`; the same call resumes.
    Limits on cost and tokens apply to the whole audit, `limit` to each generator.

    Annotations with a status other than `ok` are left out and counted. A generator without any `ok`
    annotation is listed last, and its scores are None.

    Raises UsageError for a source that does not exist, is empty, or has images while no `model` is named, if
    the annotations were made with different settings (unless `allow_mixed`), and if the two assessors have
    fewer than two generators in common; ItemsError with everything that is wrong with the records. If
    annotating ends early, BudgetError, ModelUnusableError, StorageError or, by `stop`, StoppedError; finished
    records are kept.

    `audit_async` is the same for programs with an event loop.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> result = uncanny.audit({"ours": out, "theirs": run.annotations})
    >>> result.leaderboard.generators["ours"].images
    1
    >>> scenes = {"drawn": "scenes:drawn", "rendered": "scenes:rendered"}
    >>> result = asyncio.run(uncanny.audit_async(scenes, model="demo", out=out / "scenes", repeats=1))
    >>> result.leaderboard.generators["drawn"].images
    20

    Source: AnomReason, section 4.3; see `eval.metrics.audit`.
    """
    if not sources:
        raise UsageError("There is nothing to audit", remedy="Pass at least one generator.")
    notices: tuple[str, ...] = ()
    if isinstance(sources, str | PathLike):
        folder = read_generator_folder(sources)
        sources, notices = dict(folder.generators), (folder.notice,)
    generators, second = read_sources(sources), read_sources(parameters.against or {})
    earlier = read_releases(parameters.before or {}, generators)
    check_annotated(second, earlier)
    check_named(generators, earlier, parameters.own_names)
    images = [source for source in generators if source.kind == "images"]
    if images:
        annotating = annotating_of(parameters, images[0])
        await asyncio.to_thread(annotating.check, generators, second, earlier)
        for source in images:
            task = await asyncio.to_thread(annotating.task, source, images)
            end = await run_with(task, parameters)
            if end.error is not None:
                raise end.error
            if end.reason is not None:
                left = end.progress.total - end.progress.done
                raise StoppedError(
                    f"The audit was stopped, {left:,} images of {source.name} are not annotated",
                    remedy="The same call resumes.",
                )
        generators = annotating.annotated(generators)
    return await asyncio.to_thread(score_sources, parameters, generators, second, earlier, notices)


audit = blocking(audit_async)


def check_annotated(against: Sequence[Source], before: Sequence[Source] = ()) -> None:
    """Raises UsageError where annotations of a second assessor or an earlier release are still to be made."""
    for parameter, sources, how in (
        ("against", against, "with the second model"),
        ("before", before, "as those of now"),
    ):
        for source in sources:
            if source.kind == "images":
                raise UsageError(
                    f"{option(parameter)}: {source.name} contains images without annotations",
                    remedy=f"Annotate them first, {how}.",
                )


def check_named(generators: Sequence[Source], before: Sequence[Source], own: Sequence[str]) -> None:
    """Raises UsageError for an earlier release, or a name to be marked, of what is no generator here."""
    names = [generator.name for generator in generators]
    for parameter, given in (("before", [each.name for each in before]), ("own", own)):
        for name in given:
            if name not in names:
                raise UsageError(
                    f"{option(parameter)} names {name!r}, which is not a generator here",
                    remedy=f"Pass one of {', '.join(names)}.",
                )


@dataclass(frozen=True, slots=True)
class Annotating:
    """How images are annotated; `out` gets a run folder for each generator, by its name."""

    parameters: AuditParameters
    out: Path
    models: ModelOptions
    config: AnnotateConfig
    prompts: PromptSet

    def task(self, source: Source, images: Sequence[Source], *, dry: bool = False) -> AnnotateTask:
        """The run of one of the generators that are `images`; cost and tokens are limited for all together.

        Bundled pictures are copied into the run folder, unless the run stays `dry`.
        """
        folder = self.folder(source)
        paths = [] if source.path is None else [source.path]
        if source.style is not None:
            copied = folder.path / "images"
            paths = [*scene_images(source.style)] if dry else [copy_into(copied, scene_files(source.style))]
        others = [self.folder(other) for other in images if other.name != source.name]
        return AnnotateTask(
            folder=folder,
            paths=paths,
            models=self.models,
            options=what_is_left(self.parameters.options, others),
            policy=self.parameters.policy,
            config=self.config,
            prompts=self._prompts(images),
            table=self.parameters.part(TableParameters),
        )

    def check(
        self, sources: Sequence[Source], against: Sequence[Source], before: Sequence[Source] = ()
    ) -> None:
        """What can be refused is refused before a model is asked: bad records, and what is not made alike.

        Raises UsageError and ItemsError as `audit` does.
        """
        images = [source for source in sources if source.kind == "images"]
        whole = [source for source in sources if source.kind != "images"]
        root, pair_by = self.parameters.root, self.parameters.pair_by
        _, made, earlier = (
            provenances(
                load_generators(
                    each,
                    root=None if root is None else Path(root),
                    pairing=None if pair_by is None else Pairing.named(pair_by),
                    worst=0,
                )
            )
            for each in (against, whole, before)
        )
        for source in images:
            self._check_prompts(source, images, pair_by)
        made |= {before_name(name): each for name, each in earlier.items()}
        planned = {source.name: self._planned(source, images) for source in images}
        check_alike({**made, **planned}, allow_mixed=self.parameters.allow_mixed)

    def folder(self, source: Source) -> RunFolder:
        """Raises UsageError for a name that cannot be a folder's."""
        name = source.name
        if name in (".", "..") or any(mark in name for mark in ("/", "\\", "\0")):
            raise UsageError(f"{name!r} cannot be a folder name", remedy="Choose a name without slashes.")
        return RunFolder(self.out / name)

    def annotated(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        """The same generators, once all have their runs."""
        return tuple(
            Source(source.name, self.folder(source).path, "run") if source.kind == "images" else source
            for source in sources
        )

    def _check_prompts(self, source: Source, images: Sequence[Source], pair_by: str | None) -> None:
        """Raises UsageError where images that are still to be annotated lack what they are paired by."""
        if pair_by in (None, IMAGE, STEM):
            return
        task = self.task(source, images, dry=True)
        columns = ImageColumns(task.paths, task.table.columns)
        cells = {file.image: columns.of(file.path).values for file in task.inputs().files}
        missing = [image for image, values in cells.items() if cell_text(values.get(pair_by)) is None]
        if missing:
            known = sorted(set().union(*cells.values()))
            raise UsageError(
                f"{option('pair_by')}: the column {pair_by!r} is empty for "
                f"{counted(len(missing), 'image')} of {source.name}, such as {shown(missing[0])}",
                remedy=f"The columns are {', '.join(map(repr, known))}."
                if known
                else "Columns come from Parquet and Arrow files, and from metadata.csv beside images.",
            )

    def _planned(self, source: Source, images: Sequence[Source]) -> Provenance:
        """How the annotations are going to be made, to be compared with others before any is paid for."""
        prompts = prompts_of(self.folder(source), self._prompts(images))
        roles = {role: str(model) for role, model in self.models.roles.items()}
        return Provenance(
            models=(together(str(self.models.model), roles),),
            prompts=(prompts.id,),
            policy=as_texts(asdict(self.parameters.policy)),
            settings=settings_of(self.config.model_dump(), roles),
        )

    def _prompts(self, images: Sequence[Source]) -> PromptSet:
        """The texts of runs that are yet to begin: as one that has begun, or they could not be compared."""
        own = self.prompts
        begun = (prompts_of(self.folder(source), own) for source in images)
        return next((texts for texts in begun if texts.id != own.id), own)
