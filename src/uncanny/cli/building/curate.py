"""`uncanny curate`: filter, match and split the images and prompts of a benchmark."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import at_rest, check_run_folder
from uncanny.cli.common.options import force_option, json_option, quiet_option
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import say, say_json
from uncanny.cli.edits import WritingSummary
from uncanny.demo.sets import BUNDLED
from uncanny.eval.curate.parameters import (
    ClusterParameters,
    FilterParameters,
    ReferencesParameters,
    SplitParameters,
)
from uncanny.wording import harmless


@click.group("curate", cls=Group)
def command() -> None:
    """Filter, match and split the images and prompts of a benchmark.

    All read a JSON Lines file with `id` and, as far as there are any, `original` (an image) and `caption` per
    line, a folder of images, or `scenes` or `large-scenes` for the bundled set.

    \b
    Out of the box:
      uncanny curate filter scenes -m demo -o runs/f
      uncanny curate split scenes --generator A --generator B --shared 2 --own 2
    """


@command.command("filter")
@click.argument("images", type=Place(*BUNDLED))
@asking_options(FilterParameters)
@force_option
def filter_command(images: str, force: bool, **values: Any) -> None:
    """Ask a model which images are photographs, or which prompts call for one.

    Each of IMAGES is shown with its caption, or each caption is asked about as a prompt. `passed` in
    RUN/filtered.jsonl says whether it is fit; the same command resumes the run. With several models, each
    gets its own run folder in RUN.

    Role: filter.
    """
    from uncanny.cli.common.several import Asking, Scores, ask_models
    from uncanny.eval.curate.filter import filter_async, filter_forecast

    check = partial(check_run_folder, inputs=[Path(images)], report=False, force=force)
    asking = Asking(
        *(FilterParameters, images, filter_async, filter_forecast, check, FilterSummary),
        lambda _: Scores((), None),
    )
    raise click.exceptions.Exit(ask_models(asking, values))


class FilterSummary(WritingSummary):
    """Counts, how many passed, and what was not judged. There is no page."""

    missing = "Not judged:"

    def found(self) -> list[str]:
        return [f"Passed   {len(self.run.passed()):,} of {len(self.run.records):,}"]


@command.command("cluster")
@click.argument("prompts", type=Place(*BUNDLED))
@parameter_options(ClusterParameters)
@json_option
@quiet_option
def cluster_command(prompts: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Group prompts that say the same by CLIP, and choose one of each group.

    FILE has `cluster`, `kept` and `similarity`, the cosine with the kept prompt, for each caption of PROMPTS.
    """
    from uncanny.curate import cluster

    given = given_parameters(ClusterParameters, values)
    _tell(
        cluster(_source(prompts), **given, progress=not quiet and not as_json), values["out"], as_json, quiet
    )


@command.command("references")
@click.argument("images", type=Place(*BUNDLED))
@parameter_options(ReferencesParameters)
@json_option
@quiet_option
def references_command(images: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Find a real photograph for each generated image of IMAGES, by its caption or by CLIP.

    FILE has `reference`, `by` and `similarity` for each image. Look at the matches before you use them:
    images that are alike may still show another subject or pose.
    """
    from uncanny.curate import references

    given = given_parameters(ReferencesParameters, values)
    given["pool"] = _source(str(given["pool"]))
    found = references(_source(images), **given, progress=not quiet and not as_json)
    _tell(found, values["out"], as_json, quiet)


@command.command("split")
@click.argument("identities", type=Place(*BUNDLED))
@parameter_options(SplitParameters)
@json_option
@quiet_option
def split_command(identities: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Split identities into a training and a test set, and choose whose images are annotated.

    An identity is a prompt with its real image and all images generated from it, a line of IDENTITIES. FILE
    has `split`, `annotated` (generators) and `shared` for each.
    """
    from uncanny.curate import split

    _tell(
        split(_source(identities), **given_parameters(SplitParameters, values)), values["out"], as_json, quiet
    )


def _source(source: str) -> str | Path:
    """A first argument as `load_texts` takes it; a pipe is read once and kept."""
    path = Path(source)
    return source if path.is_dir() or not path.exists() else at_rest(path)


def _tell(result: Any, out: Path | None, as_json: bool, quiet: bool) -> None:
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        where = "" if out is None else f"\n\nRecords  {harmless(str(out))}"
        say(f"{result}{where}")
