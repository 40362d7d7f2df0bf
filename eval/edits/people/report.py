"""The HTML pages of people's scores: tables, and images that people get wrong, or disagree on, most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uncanny.errors import UsageError
from uncanny.eval.common.pages.page import Card, score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, Mark, PageViews, PicturesMode, Shot, View
from uncanny.eval.common.pixels.difference import grey_picture
from uncanny.eval.edits.data import EditFiles, read_masks
from uncanny.eval.edits.people.data import CHANGES, Change, Judgement
from uncanny.eval.edits.people.ratings_result import RatingScores
from uncanny.eval.edits.people.result import PeopleScores
from uncanny.wording import counted

MOST_SHOWN: Final = 24


def write_people_page(
    result: PeopleScores, path: Path, *, title: str | None = None, pictures: PicturesMode = "link"
) -> Path:
    """Write the page to `path` and return it; what `PeopleScores.report` does."""
    views = PageViews(path, pictures)
    pairs = {each.id: each for each in result.pairs}
    by_image: dict[tuple[str, str], list[Judgement]] = defaultdict(list)
    for each in result.judgements:
        by_image[each.id, each.shown].append(each)
    wrong = {image: sum(map(_is_wrong, judged)) for image, judged in by_image.items()}
    worst = sorted(
        by_image.items(), key=lambda item: (-wrong[item[0]] / len(item[1]), -len(item[1]), item[0])
    )[:MOST_SHOWN]
    shown = views.add([_view(pairs[pair], judged) for (pair, _), judged in worst])
    cards = [
        Card(
            f"{pair}, {side}",
            Shot(pairs[pair].edited if side == "edited" else pairs[pair].original),
            f"{wrong[pair, side]} of {len(judged)} wrong",
            {},
        )
        for (pair, side), judged in worst
    ]
    together = result.together
    people = counted(len(result.people), "person").replace("persons", "people")
    found = f"found {together.recall.counts:,} of {together.recall.out_of:,} edits shown"
    taken = together.specificity.out_of - together.specificity.counts
    facts = {
        "People": f"{len(result.people):,}",
        "Images": f"{together.images:,}",
        "Judgements": f"{together.judged:,}",
    }
    return write_rendered(
        score_page("uncanny.eval.common", (), {}),
        "result.html.j2",
        path,
        title=title or "Can people tell?",
        heading="Images that people get wrong, most wrong first",
        lead=f"{people} {found}, and took {taken:,} of {together.specificity.out_of:,} originals for edited.",
        facts=facts,
        tables=result.tables(),
        cards=list(zip(cards, shown, strict=True)),
        n_inputs=together.images,
        page_views=views,
    )


def write_ratings_page(
    result: RatingScores, path: Path, *, title: str | None = None, pictures: PicturesMode = "link"
) -> Path:
    """Write the page to `path` and return it; what `RatingScores.report` does."""
    views = PageViews(path, pictures)
    pairs = {each.id: each for each in result.pairs}
    disagreed = sorted(
        result.ratings.items(), key=lambda item: (-_spread(item[1].values()), -len(item[1]), item[0])
    )[:MOST_SHOWN]
    cards, shots = [], []
    for pair, ratings in disagreed:
        files = pairs[pair]
        layers = (Layer("edited", Shot(files.edited)), Layer("original", Shot(files.original)))
        shots.append(View(pair, layers))
        often = Counter(ratings.values())
        badge = ", ".join(f"{change} {often[change]}" for change in CHANGES if often[change])
        cards.append(Card(pair, Shot(files.edited), badge, {}))
    shown = views.add(shots)
    n_ratings, most = sum(map(len, result.ratings.values())), Counter(result.changes.values())
    people = len(result.raters) - len(result.inattentive)
    said = [f"“{change}” of {most[change]:,}" for change in CHANGES]
    if result.ties:
        said.append(f"no single answer for {result.ties:,}")
    icc = result.icc.average.value
    agreement = "" if icc is None else f" ICC(2,{result.icc.k}) is {icc:.2f}."
    return write_rendered(
        score_page("uncanny.eval.common", (), {}),
        "result.html.j2",
        path,
        title=title or "How much has changed?",
        heading="Pairs, most disagreement first",
        lead=f"{counted(people, 'person').replace('persons', 'people')} rated "
        f"{counted(len(result.ratings), 'pair')}: {', '.join(said)}.{agreement}",
        facts={"People": f"{people:,}", "Pairs": f"{len(result.ratings):,}", "Ratings": f"{n_ratings:,}"},
        tables=result.tables(),
        cards=list(zip(cards, shown, strict=True)),
        n_inputs=len(result.ratings),
        page_views=views,
    )


def _spread(ratings: Iterable[Change]) -> int:
    """How far apart people are: 2 if one says "not much" and another "a lot"."""
    places = [CHANGES.index(each) for each in ratings]
    return max(places) - min(places)


def _is_wrong(judgement: Judgement) -> bool:
    return (judgement.judged == "edited") != (judgement.shown == "edited")


def _view(files: EditFiles, judged: list[Judgement]) -> View:
    """The image as it was shown, then the other one of its pair and the mask; a group of boxes a person."""
    sides = {
        "edited": Layer("edited", Shot(files.edited)),
        "original": Layer("original", Shot(files.original)),
    }
    first = sides.pop(judged[0].shown)
    layers = [first, *sides.values()]
    if judged[0].shown == "edited" and files.masks:
        try:
            mask = grey_picture(read_masks(files.masks))
        except UsageError:
            mask = None
        if mask is not None:
            layers.append(Layer("mask", data=mask))
    marks = tuple(
        Mark(f"{each.person}, {number}", (float(x0), float(y0), float(x1), float(y1)), group=each.person)
        for each in judged
        for number, (x0, y0, x1, y1) in enumerate(each.boxes or (), start=1)
    )
    size = next(((j.width, j.height) for j in judged if j.width and j.height), None)
    return View(f"{files.id}, {judged[0].shown}", tuple(layers), marks, size)
