"""Pages on which people answer what models are asked: `mcq people`, `mcq author`, `edits people`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncanny.cli.command import Command
from uncanny.cli.options import FOLDER, PATH
from uncanny.cli.pages import check_name, needs_extra, page_server_options, serve_page

if TYPE_CHECKING:
    from uncanny.eval.mcq.data.items import Question

_PERSON = click.option(
    "--person", metavar="NAME", help="Who answers.  [default: the page asks, and remembers]"
)
_RUN = click.option(
    "-o", "--out", "run", type=PATH, required=True, metavar="RUN", help="Folder of the answers."
)


@click.command("people", cls=Command)
@click.argument("items")
@_RUN
@_PERSON
@click.option(
    "--question",
    "questions",
    type=click.Choice(["q1", "q2", "q3", "q4"]),
    multiple=True,
    help="Ask this question. Repeatable.  [default: all of them]",
)
@click.option(
    "--shuffle", is_flag=True, help="Another order of pictures for each person, those of a pair apart."
)
@click.option("--root", type=FOLDER, help="Where image paths start. [default: the item file's folder]")
@page_server_options
def mcq_people_command(
    items: str,
    run: Path,
    person: str | None,
    questions: tuple[Question, ...],
    shuffle: bool,
    root: Path | None,
    port: int,
    opens: bool,
) -> None:
    """Ask people the questions of ITEMS on a local page, as a model is asked, one key an answer.

    Answers go to RUN/answers.jsonl as those of the model human/NAME, with the seconds they took; `uncanny mcq
    score ITEMS RUN` scores them, beside those of models where their runs are named, too. Several people may
    answer one set, also at the same time; each goes on where they stopped. The first line printed is
    `listening on http://127.0.0.1:PORT`; Ctrl-C ends it. Needs the extra: pip install 'uncanny[review]'.

    \b
    Keys: y yes, n no, a to e an option, z undo, f full size, i instructions, ? all keys.
    """
    check_name(person, "--person")
    with needs_extra("review"):
        from uncanny.service.people.answers import PeopleAnswers
        from uncanny.service.people.mcq_pages import mcq_people_app
    from uncanny.eval.mcq.data.load import load

    answers = PeopleAnswers(load(items, root=root, folder=run), run, questions=questions, shuffle=shuffle)
    app = mcq_people_app(answers, person=None if person is None else person.strip())
    serve_page(app, port, opens=opens)
