"""Image folders in an audit: one annotation run each, with the same model, prompts and pixels for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from uncanny.agents.annotate_config import AnnotateConfig
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.annotate.run import AnnotateJob
from uncanny.eval.audit.data import SCENES, Source, as_texts, settings_of, together
from uncanny.eval.audit.result import Provenance
from uncanny.images import PixelPolicy
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.run_folder import RunFolder, copy_into
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.progress import what_is_left
from uncanny.runs.run import prompts_of


@dataclass(frozen=True, slots=True)
class Annotating:
    """How image folders are annotated; `out` gets a run folder for each generator, by its name."""

    out: Path
    models: ModelOptions
    plan: AnnotateConfig
    policy: PixelPolicy
    options: RunOptions

    def job(self, source: Source, others: Sequence[Source], *, dry: bool = False) -> AnnotateJob:
        """The run of one generator; limits hold for the audit as a whole, so `others` count towards them.

        Bundled pictures are copied into the run folder, unless the run stays `dry`.
        """
        folder = self.folder(source)
        paths = [source.path]
        if source.style is not None:
            bundled = _pictures(source.style)
            paths = bundled if dry else [copy_into(folder.path / "images", bundled)]
        options = what_is_left(self.options, [self.folder(other) for other in others if other != source])
        prompts = self._prompts([source, *others])
        return AnnotateJob(folder, paths, self.models, self.plan, self.policy, options, prompts=prompts)

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
