"""Audits: annotate images that have no annotations yet, load what there is, score it.

Image folders get one annotation run each, with the same model, prompts and pixels for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from uncanny.agents.config import AnnotateConfig
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.annotate.run import AnnotateTask
from uncanny.eval.audit.data.aggregate import MOST_WORST
from uncanny.eval.audit.data.alike import Provenance
from uncanny.eval.audit.data.load import as_texts, load_generators, settings_of, together
from uncanny.eval.audit.data.sources import SCENES, AnnotationSource, Source, read_sources
from uncanny.eval.audit.score.result import AuditResult
from uncanny.eval.audit.score.score import score_audit
from uncanny.eval.metrics.intervals import RESAMPLES
from uncanny.images import PixelPolicy
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.run_folder import RunFolder, copy_into
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.progress import what_is_left
from uncanny.runs.run import prompts_of


def audit(
    sources: Mapping[str, AnnotationSource],
    *,
    against: Mapping[str, AnnotationSource] | None = None,
    pair_by: str | None = None,
    allow_mixed: bool = False,
    published: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    worst: int = MOST_WORST,
    root: str | PathLike[str] | None = None,
) -> AuditResult:
    """How plausible is what generators make? A leaderboard with MAI, AF and CAP; lower is better, 0 flawless.

    `sources` has, by generator, a run folder of `annotate`, a JSON Lines file of annotations, or annotations.
    `against` has the same generators as a second assessor sees them: the result then says how far the ranks
    agree. What this does is what `uncanny audit` does, with the names and defaults of its options.

    `pair_by` says what images of one prompt share, so that they are resampled together: `stem`, their file
    name, or a column of their records; without it images are independent. `resamples` of the bootstrap give
    the 95 % intervals, none with 0; the same `seed` gives the same ones. `worst` images are kept a generator.
    `root` is where image paths of annotation files start; their folder unless given. `published` adds the
    paper's rows.

    Annotations with a status other than `ok` are left out and counted. A generator without one that counts
    has None for every score, and stands last.

    Raises UsageError for a source that is not there, holds nothing or is images without annotations, where
    the annotations were not made alike (unless `allow_mixed`), and where the two assessors have fewer than
    two generators in common; ItemsError with everything that is wrong with the records.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> result = uncanny.audit({"ours": out, "theirs": run.annotations})
    >>> result.leaderboard.generators["ours"].images
    1
    """
    if not sources:
        raise UsageError("There is nothing to audit", remedy="Name at least one generator.")
    base = None if root is None else Path(root)
    second = read_sources(against or {})
    check_against(second)
    generators, others = (
        load_generators(each, root=base, pair_by=pair_by, worst=worst)
        for each in (read_sources(sources), second)
    )
    return score_audit(
        generators,
        others,
        resamples=resamples,
        seed=seed,
        pair_by=pair_by,
        allow_mixed=allow_mixed,
        published=published,
    )


def check_against(sources: Sequence[Source]) -> None:
    """Raises UsageError where the second assessor's annotations are still to be made."""
    for source in sources:
        if source.kind == "images":
            raise UsageError(
                f"--against {source.name} holds images without annotations",
                remedy="Annotate them first, with `uncanny annotate` and the second model.",
            )


@dataclass(frozen=True, slots=True)
class Annotating:
    """How image folders are annotated; `out` gets a run folder for each generator, by its name."""

    out: Path
    models: ModelOptions
    plan: AnnotateConfig
    policy: PixelPolicy
    options: RunOptions

    def task(self, source: Source, others: Sequence[Source], *, dry: bool = False) -> AnnotateTask:
        """The run of one generator; limits hold for the audit as a whole, so `others` count towards them.

        Bundled pictures are copied into the run folder, unless the run stays `dry`.
        """
        folder = self.folder(source)
        paths = [] if source.path is None else [source.path]
        if source.style is not None:
            bundled = _pictures(source.style)
            paths = bundled if dry else [copy_into(folder.path / "images", bundled)]
        options = what_is_left(self.options, [self.folder(other) for other in others if other != source])
        prompts = self._prompts([source, *others])
        return AnnotateTask(
            folder=folder,
            paths=paths,
            models=self.models,
            options=options,
            policy=self.policy,
            config=self.plan,
            prompts=prompts,
        )

    def folder(self, source: Source) -> RunFolder:
        """Raises UsageError for a name that cannot be a folder's."""
        name = source.name
        if name in (".", "..") or any(mark in name for mark in ("/", "\\", "\0")):
            raise UsageError(f"{name!r} cannot name a folder", remedy="Leave out slashes in NAME=FOLDER.")
        return RunFolder(self.out / name)

    def planned(self, source: Source, others: Sequence[Source]) -> Provenance:
        """How the annotations are going to be made, to be compared with others before any is paid for."""
        prompts = prompts_of(self.folder(source), self._prompts([source, *others]))
        roles = {role: str(model) for role, model in self.models.roles.items()}
        return Provenance(
            models=(together(str(self.models.model), roles),),
            prompts=(prompts.id,),
            policy=as_texts(asdict(self.policy)),
            settings=settings_of(self.plan.model_dump(), roles),
        )

    def annotated(self, source: Source) -> Source:
        """The same generator, once it has its run."""
        return Source(source.name, self.folder(source).path, "run")

    def _prompts(self, sources: Sequence[Source]) -> PromptSet:
        """The texts of runs that are yet to begin: as one that has begun, or they could not be compared."""
        own = prompt_set("annotate")
        begun = (prompts_of(self.folder(source), own) for source in sources)
        return next((texts for texts in begun if texts.id != own.id), own)


def _pictures(style: str) -> list[Path]:
    return [scene.image_path for scene in scenes() if style in (SCENES, scene.style)]
