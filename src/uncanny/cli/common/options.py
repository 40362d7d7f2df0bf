"""Options that several commands have, and their types. A group of options is a decorator."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from uncanny.cli.common.places import PathOnDisk, complete_folder
from uncanny.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
LONGEST_SHOWN = 40
# Parameters without a bound of their own count no further; numbers beyond it fit into no file.
MOST = 10**15


class Whole(click.ParamType[int]):
    """A whole number from `least` to `most`, both included."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise _wrong(param, value, "a whole number") from None
        if not self.least <= number <= self.most:
            raise _wrong(param, value, f"from {self.least:,} to {self.most:,}")
        return number


class Real(click.ParamType[float]):
    """A finite number up to `most`, from `least`, or above it with `above`."""

    name = "float"

    def __init__(self, least: float, most: float, *, above: bool = False) -> None:
        self.least, self.most, self.above = least, most, above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise _wrong(param, value, "a number")
        low = number > self.least if self.above else number >= self.least
        if not (low and number <= self.most):
            start = f"above {self.least:g} and at most" if self.above else f"from {self.least:g} to"
            raise _wrong(param, value, f"{start} {self.most:,.0f}")
        return number


class Several(click.ParamType[list[Any]]):
    """Values of the type `item`, with commas between them."""

    def __init__(self, item: click.ParamType[Any]) -> None:
        self.item = item
        self.name = f"{item.name},…"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"{self.item.get_metavar(param, ctx) or self.item.name.upper()},…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        values = [each.strip() for each in value.split(",")] if isinstance(value, str) else [value]
        return [self.item.convert(each, param, ctx) for each in values]


def type_of(param: click.Parameter) -> click.ParamType[Any]:
    return param.type.item if isinstance(param.type, Several) else param.type


def _wrong(param: click.Parameter | None, value: object, right: str) -> UsageError:
    name = "A number" if param is None else param.opts[0]
    text = str(value)
    given = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    return UsageError(f"{name} must be {right}, not {given}")


PATH = PathOnDisk(path_type=Path)
FOLDER = PathOnDisk(path_type=Path, exists=True, file_okay=False)
OUTPUT_TOKENS = Whole(1, 1_000_000)
SECONDS = Real(0, 7 * 24 * 3600.0, above=True)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator of several options, which `--help` lists in their order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


run_option = click.option(
    "-o",
    "--run",
    "run",
    type=PATH,
    shell_complete=complete_folder,
    help="The run folder. Needed to run.",
)
run_page_option = click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html at the end. [default: report]"
)
pictures_option = click.option(
    "--pictures",
    type=click.Choice(["link", "embed"]),
    default="link",
    show_default=True,
    help="Link full-size pictures on the page to their files, or embed them so that you can send the page.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Hide progress and summary.")
port_option = click.option(
    "--port",
    type=Whole(0, 65_535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
force_option = click.option("--force", is_flag=True, help="Replace files that this command did not write.")
images_root_option = click.option(
    "--root", type=FOLDER, help="Name images in records relative to this. [default: the run folder]"
)

# Of the commands that score.
json_file_option = click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write all figures as JSON; - for standard output."
)
gate_options = together(
    click.option(
        "--fail-if",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        help="End with exit code 4 if this holds or is not measured: `worse`, `af>1.5`; repeatable.",
    ),
    click.option("--junit", type=PATH, metavar="FILE", help="Write a JUnit test case for each --fail-if."),
)
table_options = together(
    click.option(
        "--csv",
        "csv_file",
        type=PATH,
        metavar="FILE",
        help="Write the figures as CSV; - for standard output.",
    ),
    click.option(
        "--markdown",
        "markdown_file",
        type=PATH,
        metavar="FILE",
        help="Write the tables as Markdown; - for standard output.",
    ),
    click.option(
        "--latex",
        "latex_file",
        type=PATH,
        metavar="FILE",
        help="Write the tables as LaTeX, for booktabs; - for standard output.",
    ),
)
no_page_option = click.option("--no-report", is_flag=True, help="Write no page.")


def page_option(default: str) -> Callable[[F], F]:
    return click.option("--report", type=PATH, metavar="FILE", help=f"Path of the page. [default: {default}]")


def score_options(page: str | None = None, *, quiet: bool = True) -> Callable[[F], F]:
    """The files that scores are written to, as `ScoreFiles.of` reads them; `page` says where a page goes."""
    pages = [] if page is None else [page_option(page), no_page_option, pictures_option]
    return together(json_file_option, table_options, *pages, force_option, *([quiet_option] if quiet else []))
