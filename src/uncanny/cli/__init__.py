"""The `uncanny` command. Each command is in a module of this package, imported only when it is used."""

from __future__ import annotations

import errno
import io
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NoReturn

import click

from uncanny import __version__
from uncanny.cli.common.command import Group
from uncanny.cli.common.exporting import exporting
from uncanny.cli.common.terminal import as_shown, close_output, complain, open_streams, running
from uncanny.errors import UncannyError
from uncanny.protocol import jobs, named
from uncanny.wording import layout

# name: (module and name in it, one line of help). Those of protocols come from their table.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:command", "Try it on the bundled images: no key, no GPU, no network."),
    **{
        each.command[0]: (f"{each.command[0]}:command", f"{each.summary.partition('. ')[0].rstrip('.')}.")
        for each in jobs().values()
    },
    "pairs": ("building.pairs:command", "Make pairs of an image and an edit whose fault is known."),
    "curate": ("building.curate:command", "Filter, match and split the images and prompts of a benchmark."),
    "learn": ("building.learn:command", "Train models on verified annotations and artifacts."),
    "providers": ("providers:command", "List the providers, and which keys are set."),
    "init": ("init:command", "Write a file of options for --config, also from a run."),
    "prompts": ("prompts:command", "Show the prompts, or write them to a folder."),
    "sample": ("audit:sample_command", "Draw images of a run for people to judge whole."),
    "trust": ("audit:trust_command", "Say how far the findings of a run can be trusted."),
    "review": ("serving.people:review_command", "Judge the findings of a run on a local page."),
    "import": ("export:import_command", "Import verdicts, texts and boxes from other tools."),
    "report": ("annotate:report_command", "Write the HTML report of a run."),
    "serve": ("serving.serve:command", "Start the service: web pages and an HTTP API."),
    "vllm": ("serving.vllm:command", "Start vLLM servers and keep them running."),
    "token": ("serving.serve:token_command", "Create, list and revoke tokens for the service."),
    "fake-server": (
        "demo:fake_server_command",
        "Serve made-up answers over the OpenAI and Anthropic APIs.",
    ),
}

INTERRUPTED = 130
USAGE = 2
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# A name that no file can have, or one that nobody may use, is the user's mistake.
_SLIPS = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS})
_REMEDIES = {
    **dict.fromkeys(_FULL, ". Free some disk space, or write it elsewhere."),
    errno.EACCES: ". Pass one that you may use, or change its permissions.",
}


class LazyGroup(Group):
    """Knows all commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place = f"uncanny.cli.{COMMANDS[cmd_name][0]}"
        if find_spec(place.partition(":")[0]) is None:
            from uncanny.cli.common.asking import run_command

            return run_command(next(each for each in jobs().values() if each.command[0] == cmd_name))
        command: click.Command = named(place)
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt as error:
            raise click.Abort from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            # click would print an empty line for it.
            raise click.Abort from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="uncanny")
def uncanny() -> None:
    """Find what is wrong with AI-generated images, across a whole dataset.

    \b
    First steps:
      uncanny demo                                                 see a finished run
      export OPENAI_API_KEY=…                                      set the key of your provider
      uncanny annotate photos/ --model openai/gpt-4o --dry-run     estimate the cost
      uncanny annotate photos/ --model openai/gpt-4o -o runs/a     run; the same command resumes

    `uncanny providers` lists providers of models (openai, vllm, ollama and others) and their keys.
    """


_LONG_WORD: Final = re.compile(r"\S{401,}")
_WORD_END: Final = 100


def main(arguments: Sequence[str] | None = None, values: Mapping[str, Any] | None = None) -> NoReturn:
    """Run the command line and exit. Users see one line for their mistakes, never a traceback.

    With `values` the arguments are the words of a command, and those are its parameters by name: a service
    runs it, and its messages are in the service's words.
    """
    open_streams()
    with running("terminal" if values is None else "service"):
        sys.exit(_run(arguments, values))


def _run(arguments: Sequence[str] | None, values: Mapping[str, Any] | None) -> int:
    """Returns the exit code."""
    try:
        with exporting():
            code = uncanny.main(args=arguments, prog_name="uncanny", standalone_mode=False, obj=values)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        complain(_without_long_words(message.getvalue().rstrip()))
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        complain("Interrupted.")
        code = INTERRUPTED
    except UncannyError as error:
        first, *more = (_without_long_words(as_shown(line)) for line in error.lines())
        complain(layout([f"Error: {first}", *more]))
        code = USAGE
    except BrokenPipeError:
        # The reader of our output has gone; keep Python from complaining about it once more at exit.
        close_output()
        code = 1
    except OSError as error:
        if error.filename is None and error.errno == errno.ENOENT:
            complain(layout([f"Error: {_no_folder(error)}"]))
            return 1
        if error.filename is None and error.errno not in (*_FULL, errno.EIO):
            raise
        what = "the output" if error.filename is None else str(error.filename)
        remedy = _REMEDIES.get(error.errno or 0, "")
        complain(layout([_without_long_words(f"Error: {what}: {error.strerror or error}{remedy}")]))
        if error.filename is None:
            close_output()
        code = USAGE if error.errno in _SLIPS else 1
    return code if isinstance(code, int) else 0


def _no_folder(error: OSError) -> str:
    """What an error means that says of no file in particular that it is not there."""
    if "temporary" in (error.strerror or ""):  # as `tempfile` says it on a full disk
        return f"{error.strerror}. Free some disk space, or set TMPDIR to another folder."
    return "the current folder is not there any more. Go to another."


def _without_long_words(text: str) -> str:
    """`text` with the middle left out of words longer than any path that people write."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:_WORD_END]}…{word[0][-_WORD_END:]}", text)
