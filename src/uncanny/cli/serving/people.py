"""Pages on this machine, for reviewing, answering, writing, judging and rating; and scores of people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, in_folder_of, paths_of
from uncanny.cli.common.options import (
    FOLDER,
    PATH,
    Whole,
    port_option,
    score_options,
)
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import complain
from uncanny.demo.sets import BUNDLED
from uncanny.errors import UsageError, writable
from uncanny.eval.common.parameters import AgreeParameters, ConfidenceParameters
from uncanny.eval.edits.parameters import PeopleParameters, RateParameters
from uncanny.eval.mcq.parameters import ItemsParameters, Question
from uncanny.records.reviews import MAJORITY

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from uncanny.service.review.queue import Order


F = TypeVar("F", bound=Callable[..., Any])


def page_server_options(function: F) -> F:
    """`--port` and `--open`, as `port` and `opens`."""
    opens = click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
    return port_option(opens(function))


def checked_name(name: str | None, option: str) -> str | None:
    """The name without blanks around it. Raises UsageError for none, one too long, or not to be written."""
    if name is not None and (not 1 <= len(name.strip()) <= 200 or writable(name) != name):
        raise UsageError(f"{option} must be a name of 1 to 200 characters")
    return None if name is None else name.strip()


def serve_page(app: ASGIApp, port: int, *, opens: bool) -> None:
    """Serve an application on the loopback address until Ctrl-C or SIGTERM. Raises UsageError."""
    from uncanny.service.listen import serve
    from uncanny.service.safety import Guard

    serve(Guard(app), port, ready=_open if opens else lambda _: None)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


@click.command("review", cls=Command, extra="review")
@click.argument("run", type=PATH)
@click.option(
    "--reviewer", metavar="NAME", help="Name of the reviewer.  [default: the page asks, and remembers]"
)
@click.option(
    "--order",
    type=click.Choice(["uncertain", "file"]),
    default="uncertain",
    show_default=True,
    help="Order of findings: most doubtful first (uncertain), or image by image as in the file (file).",
)
@click.option(
    "--per-finding",
    type=Whole(1, 1000),
    default=None,
    help="Verdicts after which a finding leaves the queue, unless they tie.  [default: everybody judges all]",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Judge the images of RUN/sample.json whole: every finding, and what was missed.",
)
@click.option(
    "--images-of",
    type=PATH,
    metavar="OTHER",
    help="Start RUN with the images of this run and none of its findings, for people to annotate unaided.",
)
@parameter_options(ConfidenceParameters)
@parameter_options(AgreeParameters)
@page_server_options
def review_command(
    run: Path,
    reviewer: str | None,
    order: Order,
    per_finding: int | None,
    sample: bool,
    images_of: Path | None,
    port: int,
    opens: bool,
    **values: Any,
) -> None:
    """Judge the findings of RUN on a local page, one key per verdict: accept, reject, unsure.

    Verdicts, edited texts, boxes and added findings go to RUN/reviews.jsonl, an append-only log; nothing else
    in the run changes. Several people may review one run at the same time. The first line printed is
    `listening on http://127.0.0.1:PORT`; Ctrl-C ends it.

    \b
    Keys: a accept, r reject, u unsure, z undo, j/k next and previous finding, n/p image,
    e edit, b box, m add what was missed, d show doubtful findings, ? all keys. With --sample:
    c mark the image complete.
    """
    reviewer = checked_name(reviewer, "--reviewer")
    from uncanny.service.review.pages import ReviewSite, review_app
    from uncanny.service.review.queue import Filters
    from uncanny.service.review.run import ReviewRun

    if images_of is not None:
        from uncanny.service.review.unaided import start_unaided

        start_unaided(run, images_of)
        sample = True
    least = ConfidenceParameters(**given_parameters(ConfidenceParameters, values)).min_confidence
    rule = AgreeParameters(**given_parameters(AgreeParameters, values)).rule
    if sample and rule != MAJORITY:
        raise UsageError(
            "--agree and --least-verdicts do not go with images that are judged whole",
            remedy="Remove them: `uncanny trust` decides by the majority.",
        )
    if per_finding is not None and rule.least_verdicts > per_finding:
        raise UsageError(
            f"--least-verdicts {rule.least_verdicts} needs as many verdicts per finding, not {per_finding}",
            remedy=f"Pass --per-finding {rule.least_verdicts} or more.",
        )
    opened = ReviewRun.open(run, per_finding=per_finding, min_confidence=least, rule=rule)
    if sample:
        for each in opened.sample_progress(Filters(sample=True), reviewer).passed_over:
            complain(f"Passed over: {each}.")
    site = ReviewSite(opened, reviewer=reviewer, order=order, sample=sample)
    serve_page(review_app(site), port, opens=opens)


_PERSON = click.option(
    "--person", metavar="NAME", help="Who answers.  [default: the page asks, and remembers]"
)
_RUN = click.option(
    "-o", "--out", "run", type=PATH, required=True, metavar="RUN", help="Folder of the answers."
)


@click.command("people", cls=Command, extra="review")
@click.argument("items", type=Place("scenes"))
@_RUN
@_PERSON
@click.option(
    "--question",
    "questions",
    type=click.Choice(get_args(Question)),
    multiple=True,
    help="Ask this question. Repeatable.  [default: all of them]",
)
@click.option(
    "--shuffle", is_flag=True, help="Another order of pictures for each person, those of a pair apart."
)
@parameter_options(ItemsParameters)
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
    """Ask people the questions of ITEMS on a local page, with the words and images that a model gets.

    Answers go to RUN/answers.jsonl under the model name human/NAME, with the seconds they took. `uncanny mcq
    score ITEMS RUN` scores them; name runs of models too, to see both side by side. Several people may answer
    one set at the same time, and each resumes where they stopped. The first line printed is `listening on
    http://127.0.0.1:PORT`; Ctrl-C ends it.

    \b
    Keys: y yes, n no, a to e an option, z undo, f full size, i instructions, ? all keys.
    """
    person = checked_name(person, "--person")
    from uncanny.eval.mcq.data.load import load
    from uncanny.service.people.answers import PeopleAnswers
    from uncanny.service.people.mcq_pages import mcq_people_app

    answers = PeopleAnswers(load(items, root=root, folder=run), run, questions=questions, shuffle=shuffle)
    serve_page(mcq_people_app(answers, person=person), port, opens=opens)


@click.command("review", cls=Command, extra="review")
@click.argument("items", type=Place("scenes"))
@_RUN
@_PERSON
@parameter_options(ItemsParameters)
@page_server_options
def mcq_review_command(
    items: str, run: Path, person: str | None, root: Path | None, port: int, opens: bool
) -> None:
    """Ask reviewers on a local page whether ITEMS are correct: questions, options, right answers and boxes.

    Verdicts and notes go to RUN/item_reviews.jsonl; `uncanny mcq check ITEMS --reviews RUN` keeps the items
    that reviewers agree on. Several reviewers may check the items at the same time, each on their own, and
    each resumes where they stopped. The first line printed is `listening on http://127.0.0.1:PORT`; Ctrl-C
    ends it.

    \b
    Keys: c correct, w wrong, u unsure, n note, b boxes, z undo, f full size, ? all keys.
    """
    person = checked_name(person, "--person")
    from uncanny.eval.mcq.data.load import load
    from uncanny.service.people.checking import PeopleChecks
    from uncanny.service.people.mcq_pages import mcq_check_app

    checks = PeopleChecks(load(items, root=root, folder=run), run)
    serve_page(mcq_check_app(checks, person=person), port, opens=opens)


@click.command("author", cls=Command, extra="review")
@click.argument("items", type=PATH)
@click.option("--images", type=FOLDER, metavar="DIR", help="Folder of images for new items.  [default: none]")
@parameter_options(ItemsParameters)
@click.option("--force", is_flag=True, help="Add items to a file that contains something else.")
@page_server_options
def mcq_author_command(
    items: Path, images: Path | None, root: Path | None, force: bool, port: int, opens: bool
) -> None:
    """Write ITEMS on a local page: options, right answers and boxes, checked as you type.

    ITEMS may be a new file if --images names some images. Saving replaces the file in one step; unknown keys
    and lines you did not change stay byte for byte. If two people change the same item, the second is told,
    and nothing is overwritten. The first line printed is `listening on http://127.0.0.1:PORT`; Ctrl-C ends
    it.

    \b
    Keys: Ctrl-S save, Alt-up and Alt-down another item, Alt-A to Alt-D draw a box, F1 all keys.
    """
    from uncanny.service.people.authoring import ItemsFile
    from uncanny.service.people.mcq_pages import mcq_author_app

    serve_page(mcq_author_app(ItemsFile(items, images=images, root=root, force=force)), port, opens=opens)


_BREAKS = click.option(
    "--break-every",
    type=Whole(0, 100_000),
    default=50,
    show_default=True,
    help="Pictures between two breaks; 0 for none.",
)
_ROOT = click.option(
    "--root", type=FOLDER, help="Folder that paths are relative to. [default: the folder of PAIRS]"
)


@click.command("people", cls=Command, extra="review")
@click.argument("pairs", type=Place(*BUNDLED))
@_RUN
@_PERSON
@click.option(
    "--questionnaire",
    metavar="FILE",
    help="Questions to ask of each person first: a JSON file, or the word `default`.  [default: none]",
)
@_BREAKS
@_ROOT
@page_server_options
def edits_people_command(
    pairs: str,
    run: Path,
    person: str | None,
    questionnaire: str | None,
    break_every: int,
    root: Path | None,
    port: int,
    opens: bool,
) -> None:
    """Ask people on a local page whether images are real or edited, and where the edit is.

    Each person sees every image of PAIRS once, in their own order, an edit never next to its original.
    Judgments go to RUN/judgements.jsonl, answers to the questionnaire to RUN/profiles.jsonl; `uncanny edits
    people-score PAIRS RUN` scores them. Several people may judge at the same time, and each resumes where
    they stopped. The first line printed is `listening on http://127.0.0.1:PORT`; Ctrl-C ends it.

    \b
    Keys: r real, e edited, then boxes by mouse or arrow keys, Enter done, n cannot say where,
    z undo, f full size, ? all keys.
    """
    person = checked_name(person, "--person")
    from uncanny.eval.edits.data import load
    from uncanny.eval.edits.people.data import read_form
    from uncanny.service.people.judging import PeopleJudging
    from uncanny.service.people.page import edits_people_app

    form = None if questionnaire is None else read_form(questionnaire)
    judging = PeopleJudging(load(pairs, root=root), run, form=form, break_every=break_every)
    serve_page(edits_people_app(judging, person=person), port, opens=opens)


@click.command("people-score", cls=Command)
@click.argument("pairs", type=Place(*BUNDLED))
@click.argument("people", nargs=-1, required=True, type=PATH, metavar="RUN…")
@parameter_options(PeopleParameters)
@score_options("people.html in the first RUN")
def people_score_command(pairs: str, people: tuple[Path, ...], **values: Any) -> None:
    """Score people who judged edited images: accuracy, precision, recall, F1, and IoU of boxes and masks.

    Scores are given for each person, for all together and for the majority; by method, model and dataset, and
    by size if PAIRS is a file of `uncanny edits measure`. Agreement is Krippendorff's alpha. Answers to the
    questionnaire are tested for association with right judgments by chi-square or an exact test, with
    Cramer's V. PREDICTIONS are those that `uncanny edits stress` reads.
    """
    from uncanny.eval.edits.people.result import COLUMNS, KEYS, PAGE
    from uncanny.eval.edits.people.score import score_people

    given = given_parameters(PeopleParameters, values)
    files = ScoreFiles.of(values, in_folder_of(people[0], PAGE))
    own = [path for run in people for path in (run.glob("*.jsonl") if run.is_dir() else [run])]
    files.check(KEYS, COLUMNS, [*own, *paths_of(given.get("predictions")), pairs])
    files.write_scores(score_people(pairs, [at_rest(path) for path in people], **given))


@click.command("rate", cls=Command, extra="review")
@click.argument("pairs", type=Place(*BUNDLED))
@_RUN
@_PERSON
@click.option(
    "--check-every",
    type=Whole(0, 100_000),
    default=10,
    show_default=True,
    help="Pairs for each attention check; 0 for none.",
)
@click.option(
    "--checks",
    type=Place(),
    metavar="FILE",
    help="Pairs with their right answer in the column `change`, as attention checks.  [default: originals "
    "beside themselves or each other]",
)
@click.option(
    "--per-pair",
    type=Whole(1, 1000),
    default=None,
    help="Ratings after which a pair leaves the queue.  [default: everybody rates all]",
)
@_BREAKS
@_ROOT
@page_server_options
def edits_rate_command(
    pairs: str,
    run: Path,
    person: str | None,
    check_every: int,
    checks: str | None,
    per_pair: int | None,
    break_every: int,
    root: Path | None,
    port: int,
    opens: bool,
) -> None:
    """Ask people on a local page how much has changed between an original and its edit, side by side.

    They answer "not much", "some" or "a lot". Each person rates the pairs in their own order, with attention
    checks among them. Ratings go to RUN/ratings.jsonl; `uncanny edits rate-score PAIRS RUN` scores them.
    Several people may rate at the same time, and each resumes where they stopped. The first line printed is
    `listening on http://127.0.0.1:PORT`; Ctrl-C ends it.

    \b
    Keys: 1 not much, 2 some, 3 a lot, z undo, f full size, ? all keys.
    """
    person = checked_name(person, "--person")
    from uncanny.eval.edits.data import load
    from uncanny.eval.edits.people.data import read_checks
    from uncanny.service.people.page import edits_rate_app
    from uncanny.service.people.rating import PeopleRating

    if checks is not None and not check_every:
        raise UsageError("--checks cannot be used with --check-every 0", remedy="Remove one of them.")
    rating = PeopleRating(
        load(pairs, root=root),
        run,
        checks=None if checks is None else read_checks(checks),
        check_every=check_every,
        per_pair=per_pair,
        break_every=break_every,
    )
    serve_page(edits_rate_app(rating, person=person), port, opens=opens)


@click.command("rate-score", cls=Command)
@click.argument("pairs", type=Place(*BUNDLED))
@click.argument("people", nargs=-1, required=True, type=PATH, metavar="RUN…")
@parameter_options(RateParameters)
@score_options("ratings.html in the first RUN")
def rate_score_command(pairs: str, people: tuple[Path, ...], **values: Any) -> None:
    """Score people who rated how much edits changed: agreement, and correlation with metrics of change.

    The rating of a pair is the mode of its ratings. Agreement is ICC(2,1) and ICC(2,k); Pearson's, Kendall's
    and Spearman's coefficients are given with each metric that PAIRS has, if it is a file of `uncanny edits
    measure`. People who fail attention checks are left out.
    """
    from uncanny.eval.edits.people.ratings import score_ratings
    from uncanny.eval.edits.people.ratings_result import COLUMNS, KEYS, PAGE

    given = given_parameters(RateParameters, values)
    files = ScoreFiles.of(values, in_folder_of(people[0], PAGE))
    own = [path for run in people for path in (run.glob("*.jsonl") if run.is_dir() else [run])]
    files.check(KEYS, COLUMNS, [*own, pairs])
    files.write_scores(score_ratings(pairs, [at_rest(path) for path in people], **given))
