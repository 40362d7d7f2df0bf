"""`uncanny pairs`: make pairs of an image and its edit, screen them, and draft questions about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.asking import asked, asking_options
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import ScoreFiles, check_run_folder
from uncanny.cli.common.options import PATH, force_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.summary import Summary, failure_line, failure_lines
from uncanny.errors import UsageError
from uncanny.eval.pairs.parameters import ItemsParameters, MakeParameters, ScreenParameters
from uncanny.wording import counted, harmless

if TYPE_CHECKING:
    from uncanny.eval.pairs.make.result import MakeRun
    from uncanny.eval.pairs.screen.run import ScreenRun


@click.group("pairs", cls=Group)
def command() -> None:
    """Make images whose fault is known: paint over one region, keep the rest, ask models about both.

    \b
    Out of the box:
      uncanny pairs make scenes -o runs/pairs --inpainter demo
      uncanny pairs screen runs/pairs --model demo
      uncanny review runs/pairs/screened
      uncanny pairs items runs/pairs
    """


@command.command("make", job="pairs_make")
@click.argument("images", nargs=-1, required=True, type=PATH)
@asking_options(MakeParameters, several=False)
@force_option
def make_command(images: tuple[Path, ...], force: bool, **values: Any) -> None:
    """Paint over a region of each image, several times, and keep everything outside the region as it was.

    IMAGES are image files and folders, or `scenes` or `large-scenes` for the bundled images. --inpainter is
    demo (OpenCV, no model), diffusers/NAME (a folder or a name of the hub), or PROVIDER/NAME behind an
    OpenAI-compatible endpoint for edits of images. Candidates go to RUN/candidates.jsonl as they come, their
    pictures to RUN/edited and their masks to RUN/masks; the same command resumes the run.

    \b
    Keys: OPENAI_API_KEY and so on; `uncanny providers` lists them.
    Roles: perceiver, writer, perturber.
    """
    from uncanny.cli.common.session import TerminalStop, show_end, show_forecast
    from uncanny.eval.pairs.forecast import make_forecast
    from uncanny.eval.pairs.make.run import make_async

    given = _asked(MakeParameters, values, [values["inpainter"], values["model"]])
    if values["dry_run"]:
        raise click.exceptions.Exit(show_forecast(make_forecast(images, **given), as_json=values["as_json"]))
    if values["out"] is None:
        raise UsageError("No run folder is given", remedy="Pass -o runs/NAME.")
    check_run_folder(values["out"], inputs=[], report=False, force=force)
    run: MakeRun = asyncio.run(make_async(images, stop=TerminalStop(), **given))
    raise click.exceptions.Exit(show_end(MakeSummary(run), as_json=values["as_json"], quiet=values["quiet"]))


@command.command("screen")
@click.argument("pairs", type=PATH)
@asking_options(ScreenParameters, several=False)
@force_option
def screen_command(pairs: Path, force: bool, **values: Any) -> None:
    """Find the candidates that people should look at.

    PAIRS is the folder of `uncanny pairs make`. A candidate is rejected if a pixel outside its mask differs,
    if its region is black or flat, if too little or too much changed, or if --model sees no fault in it. The
    others go to PAIRS/screened, for `uncanny review PAIRS/screened`; the same command resumes the run.

    Role: screener.
    """
    from uncanny.cli.common.session import TerminalStop, show_end, show_forecast
    from uncanny.eval.pairs.forecast import screen_forecast
    from uncanny.eval.pairs.screen.run import screen_async

    given = _asked(ScreenParameters, values, [values["model"]])
    if values["dry_run"]:
        raise click.exceptions.Exit(show_forecast(screen_forecast(pairs, **given), as_json=values["as_json"]))
    if values["out"] is not None:
        check_run_folder(values["out"], inputs=[], report=False, force=force)
    run: ScreenRun = asyncio.run(screen_async(pairs, stop=TerminalStop(), **given))
    summary = ScreenSummary(run, pairs)
    raise click.exceptions.Exit(show_end(summary, as_json=values["as_json"], quiet=values["quiet"]))


@command.command("items")
@click.argument("pairs", type=PATH)
@parameter_options(ItemsParameters, without={"force"})
@score_options("pairs.html in PAIRS")
def items_command(pairs: Path, **values: Any) -> None:
    """Write the pairs that people kept, with drafts of questions, and a page of all candidates.

    PAIRS is the folder of `uncanny pairs make`. PAIRS/pairs.jsonl gets the kept pairs, for `uncanny edits`,
    and PAIRS/items.jsonl two drafts a pair with the same options, for `uncanny mcq`. The table shows how many
    candidates were rejected at which step, and why.
    """
    from uncanny.eval.pairs.data import SCREENED
    from uncanny.eval.pairs.items import items
    from uncanny.eval.pairs.result import COLUMNS, KEYS, PAGE

    files = ScoreFiles.of(values, (values["out"] or pairs) / PAGE)
    files.check(KEYS, COLUMNS, [pairs])
    result = items(pairs, **given_parameters(ItemsParameters, values))
    drafts = f"{harmless(str(result.items))}, {counted(len(result.drafts), 'draft')}"
    after = f"\n\nPairs    {harmless(str(result.pairs))}\nItems    {drafts}"
    screened = values["screened"] or pairs / SCREENED
    if result.open:
        next_step = f"review {screened}" if screened.is_dir() else f"pairs screen {pairs}"
        after += f"\nNext     {harmless(f'uncanny {next_step}')}"
    files.write_scores(result, after=after)


def _asked(kind: Any, values: Mapping[str, Any], models: list[str | None]) -> dict[str, Any]:
    return asked(kind, values, [name for name in models if name is not None])


@dataclass(frozen=True, slots=True)
class MakeSummary(Summary["MakeRun"]):
    """Counts, images that failed, and what to do next. The page belongs to `items`."""

    label = "Images"

    def failures(self) -> list[str]:
        failed = [
            failure_line(record, record.image) for record in self.run.originals if record.status != "ok"
        ]
        where = f", in {self.run.path / self.run.record_file}"
        return failure_lines("Without a candidate, or without all:", failed, where=where)

    def found(self) -> list[str]:
        rejected = ", ".join(f"{number:,} rejected at {step}" for step, number in self.run.rejected().items())
        lines = [f"Made     {counted(self.run.made(), 'candidate')}" + (f"; {rejected}" if rejected else "")]
        without = sum(record.no_region is not None for record in self.run.originals)
        return [*lines, f"Without  {counted(without, 'image')} with no region to edit"] if without else lines

    def next_steps(self, file: Path) -> list[str]:
        return [f"Records  {file}", f"Screen   uncanny pairs screen {self.run.path}"]


@dataclass(frozen=True, slots=True)
class ScreenSummary(Summary["ScreenRun"]):
    """Counts, candidates that could not be screened, and what to do next."""

    pairs: Path
    label = "Screened"

    def failures(self) -> list[str]:
        failed = [failure_line(record, record.image) for record in self.run.screened if record.status != "ok"]
        where = f", in {self.run.path / self.run.record_file}"
        return failure_lines("Not screened:", failed, where=where)

    def found(self) -> list[str]:
        rejected = ", ".join(f"{number:,} rejected at {step}" for step, number in self.run.rejected().items())
        return [f"Passed   {counted(self.run.passed(), 'candidate')}" + (f"; {rejected}" if rejected else "")]

    def next_steps(self, file: Path) -> list[str]:
        return [
            f"Records  {file}",
            f"Judge    uncanny review {self.run.path}",
            f"Items    uncanny pairs items {self.pairs}",
        ]
