"""`uncanny export` and `uncanny import`: options and printing around the public functions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, Real, Whole, force_option, json_option, quiet_option
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import say, say_json
from uncanny.cli.server.run import on_server
from uncanny.errors import UsageError
from uncanny.exports.formats import FORMATS, READ_NAMES, FormatName, ReadName

if TYPE_CHECKING:
    from uncanny.exports.writer import ChatForm, Pictures


class ExportKeywords(TypedDict):
    """The options that are those of `uncanny.export`."""

    all: bool
    rejected: bool
    source: str | None
    test_fraction: float
    group_by: str | None
    seed: int
    max_tokens: int
    chat: ChatForm
    pictures: Pictures
    image_prefix: str | None
    force: bool


class FormatList(click.ParamType[list[str]]):
    """Names of forms, with commas between them."""

    name = "FORMAT,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        names = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
        for name in names:
            if name not in FORMATS:
                self.fail(f"There is no form {name!r}; there are {', '.join(FORMATS)}.", param, ctx)
        return names


@click.command("export", cls=Command)
@on_server("export")
@click.argument("run", type=PATH)
@click.option(
    "--to",
    "to",
    type=FormatList(),
    multiple=True,
    required=True,
    metavar="FORMAT,…",
    help=f"Forms to write, repeatable: {', '.join(FORMATS)}.",
)
@click.option("-o", "--out", type=PATH, required=True, help="The folder to write to, or the one file.")
@click.option("--all", is_flag=True, help="Also what nobody has reviewed, or reviewers are unsure of.")
@click.option("--rejected", is_flag=True, help="Also what reviewers rejected.")
@click.option(
    "--source",
    type=Place("generated", "real"),
    metavar="generated|real|FILE",
    help="What images are, for sft-detect: one word for all, or a file with `image` and `source`. "
    "[default: what the records say]",
)
@click.option(
    "--test-fraction",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="Share of images on the test side, by a hash of their digests.",
)
@click.option(
    "--group-by",
    metavar="COLUMN|stem|image",
    help="Keep images that share this column, or their file name, on one side; `image` keeps none together. "
    "[default: sides of a pair and edits of an original together, where columns say so]",
)
@click.option(
    "--seed",
    type=Whole(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Same seed, same order of anomalies in chats.",
)
@click.option(
    "--max-tokens",
    type=Whole(1, 10**9),
    default=2048,
    show_default=True,
    help="A list of a chat that is longer becomes several.",
)
@click.option(
    "--chat",
    type=click.Choice(["parts", "tags"]),
    default="parts",
    show_default=True,
    help="Messages as lists of parts (TRL), or as texts with <image> (LLaMA-Factory, ms-swift).",
)
@click.option(
    "--pictures",
    type=click.Choice(["reference", "copy"]),
    default="reference",
    show_default=True,
    help="Refer to pictures where they lie, or copy them into OUT/images.",
)
@click.option(
    "--image-prefix", metavar="URL", help="What comes before the names of pictures, in place of a path."
)
@force_option
@json_option
@quiet_option
def command(
    run: Path,
    to: tuple[list[str], ...],
    out: Path,
    as_json: bool,
    quiet: bool,
    **options: Unpack[ExportKeywords],
) -> None:
    """Write the verified anomalies of RUN as data sets in the forms that other tools read.

    Verified are those that a majority of reviewers accepts. RUN is a run of `annotate` or `detect`, or a file
    of annotations. Exit code: 0 written, 2 wrong use.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny export runs/demo --all --to csv,coco,labelstudio -o data/demo
    """
    from uncanny.exports.run import export

    names = cast("list[FormatName]", [name for names in to for name in names])
    result = export(run, names, out, **options)
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))


@click.command("import", cls=Command)
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE…")
@click.option("--run", type=PATH, help="The run to log verdicts, texts and boxes in, as reviews.")
@click.option("-o", "--out", type=PATH, help="A file of annotations to make, of what belongs to no run.")
@click.option(
    "--from",
    "format",
    type=click.Choice(READ_NAMES),
    help="The form the files have. [default: told by their content]",
)
@click.option("--reviewer", metavar="NAME", help="Whose the changes are. [default: as Label Studio says]")
@force_option
@json_option
@quiet_option
def import_command(
    files: tuple[Path, ...],
    run: Path | None,
    out: Path | None,
    format: ReadName | None,
    reviewer: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Take back what people did with an export in another tool, or the reviews of another copy of a run.

    With --run, verdicts and changed texts and boxes become lines of the run's reviews; the same file again
    changes nothing. With -o, boxes with their texts become a file of annotations. Exit code: 0 done, 2 wrong
    use or a file with problems; nothing is written then.

    \b
      uncanny import project-1.json --run runs/a
      uncanny import anomalies.csv --run runs/a --reviewer ann
    """
    from uncanny.exports.reading import import_annotations, import_reviews

    if (run is None) == (out is None):
        raise UsageError("One of --run and -o is needed", remedy="--run for reviews, -o for annotations.")
    if run is not None:
        result = import_reviews(files, run, format=format, reviewer=reviewer)
    else:
        assert out is not None
        result = import_annotations(files, out, format=format, force=force)
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
