"""What an audit finds, as values that a terminal, a file or a page can use directly.

An audit as the JSON of `audit --json`.

Beside the keys of the format: in a generator `unfinished`, `anomalies`, `flawless`, `prompts`, `severities`,
`names`, `worst` and how its annotations were made; `differences`, the neighbours that are `alike`, `mixed`,
`notices`, how intervals were computed, and, where asked for, `against`, `agreement` and `published`.

An audit as a table for a spreadsheet: a row a generator and assessor."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from uncanny.eval.common.estimates import Estimate
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Anomaly

Figure = Literal["mai", "af", "cap", "u_mean"]
FIGURES: tuple[Figure, ...] = ("mai", "af", "cap", "u_mean")
RANKED: tuple[Figure, ...] = ("mai", "af", "cap")

Aspect = Literal["model", "prompts", "pixels", "settings"]
SourceKind = Literal["file", "run", "images"]

SEVERITIES = 101
MOST_LEFT_OUT = 0.01


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that are in no figure, by status: a failed annotation is not a flawless image.

    `unclear` are those of a detection run that gave no clear verdict, and so were asked for no anomalies.
    """

    failed: int = 0
    partial: int = 0
    unreadable: int = 0
    unclear: int = 0

    @property
    def total(self) -> int:
        return self.failed + self.partial + self.unreadable + self.unclear


@dataclass(frozen=True, slots=True)
class NameCount:
    """An anomaly name as most often written; upper and lower case and spaces make no difference.

    `anomalies` bear it, in `images` images; `u_mean` is their mean implausibility, 0–1.
    """

    name: str
    anomalies: int
    images: int
    u_mean: float


@dataclass(frozen=True, slots=True)
class WorstImage:
    """One of the images with the highest summed implausibility `u`.

    `image` is the name in the record, `path` where the file ought to be: it may be missing. `sha256` is what
    it must have to be shown: "" where it may not, None where that is not known. `anomalies` has
    the most severe first. `prompt` is the key it is paired by, None where nothing is paired.
    """

    image: str
    path: Path
    sha256: str | None
    width: int | None
    height: int | None
    u: float
    anomalies: tuple[Anomaly, ...]
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a generator's annotations were made, each as the distinct values found, sorted.

    `models` and `prompts` are those of the records that count; a record to which roles or a fallback with
    models of their own contributed names them all. `changes` are the kinds of what was done to pixels beyond
    converting the file's format, None where no record says. `policy` is the run's pixel policy and `settings`
    are its plan and roles, by name; None where no run is known. `served` has, by model, the names under which
    it really answered, such as dated snapshots; `served_known` is false where they are not known of all.
    """

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    changes: tuple[str, ...] | None = None
    policy: Mapping[str, str] | None = None
    settings: Mapping[str, str] | None = None
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    served_known: bool = False


@dataclass(frozen=True, slots=True)
class GeneratorScore:
    """One generator. `images` are those with status `ok`, the `n` of every figure.

    `severities[s]` counts the anomalies of severity `s`, 0–100 (100 = realistic). `flawless` counts the
    images without anomalies. `names` and `worst` are the top ones, highest first. `prompts` counts the
    distinct keys of pairing, None where nothing is paired. `unfinished`: what its run has still to do.
    """

    name: str
    source: Path
    kind: SourceKind
    images: int
    anomalies: int
    flawless: int
    left_out: LeftOut
    mai: Estimate
    af: Estimate
    cap: Estimate
    u_mean: Estimate
    severities: tuple[int, ...]
    names: tuple[NameCount, ...]
    worst: tuple[WorstImage, ...]
    provenance: Provenance
    prompts: int | None = None
    unfinished: Unfinished | None = None

    def figure(self, name: Figure) -> Estimate:
        found: Estimate = getattr(self, name)
        return found

    @property
    def records(self) -> int:
        return self.images + self.left_out.total

    @property
    def left_out_share(self) -> float | None:
        """In 0–1 of all records; None without any."""
        return self.left_out.total / self.records if self.records else None

    @property
    def many_left_out(self) -> bool:
        """Whether over 1 % of the records are in no figure: the others may be the easy ones."""
        share = self.left_out_share
        return share is not None and share > MOST_LEFT_OUT


@dataclass(frozen=True, slots=True)
class Difference:
    """Two generators, `first` ahead of `second` in the order; the figures are `first` minus `second`.

    `paired` counts the prompts that both have and over which the difference is taken; None where all images
    of both are compared, because nothing or too little is paired. `apart` says whether the interval of the
    CAP difference is without 0; None without an interval.
    """

    first: str
    second: str
    paired: int | None
    mai: Estimate
    af: Estimate
    cap: Estimate
    apart: bool | None


@dataclass(frozen=True, slots=True)
class Mixed:
    """One way in which annotations in one audit were not made alike.

    `what` is the aspect in words, with the setting's name where there is one; `values` has the distinct
    values of each generator that has any.
    """

    aspect: Aspect
    what: str
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All generators by one assessor. `order` has the lowest CAP first, generators without a CAP last.

    `differences` has the pairs of generators with a CAP: all of up to 16 generators, the neighbours in the
    order of more. `mixed` is empty unless mixing was
    allowed. `notices` are sentences for people: what could not be checked, what to know before believing.
    """

    generators: Mapping[str, GeneratorScore]
    order: tuple[str, ...]
    differences: tuple[Difference, ...]
    mixed: tuple[Mixed, ...] = ()
    notices: tuple[str, ...] = ()

    def difference(self, first: str, second: str) -> Difference | None:
        """The pair in this order, or None."""
        return next((one for one in self.differences if (one.first, one.second) == (first, second)), None)

    @property
    def alike(self) -> tuple[Difference, ...]:
        """Neighbours in the order that cannot be told apart."""
        found = (self.difference(*neighbours) for neighbours in pairwise(self.order))
        return tuple(one for one in found if one is not None and one.apart is not True)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike two assessors rank the same generators by one figure: Spearman's rho and Kendall's tau-b.

    Both are None where fewer than two generators are compared or an assessor gives all the same value.
    """

    figure: Figure
    generators: int
    spearman: float | None
    kendall: float | None


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A generator as printed in the paper, by one assessor."""

    generator: str
    assessor: str
    mai: float
    af: float
    cap: float


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """The published rows, where they are from, and how the two assessors agree in them."""

    source: str
    rows: tuple[PublishedRow, ...]
    agreement: tuple[Agreement, ...]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """A whole audit.

    `against` is the same generators by a second assessor, and `agreement` compares the two. `pair_by` is
    `stem`, the name of a column, or None. `published` is None unless asked for.
    """

    leaderboard: Leaderboard
    resamples: int
    seed: int
    level: float
    pair_by: str | None = None
    allow_mixed: bool = False
    against: Leaderboard | None = None
    agreement: tuple[Agreement, ...] = ()
    published: PublishedTable | None = None


def audit_json(result: AuditResult) -> dict[str, Any]:
    """Everything but the paths of pictures; what was not measured is None."""
    held = {
        **_board(result.leaderboard),
        "resamples": result.resamples,
        "seed": result.seed,
        "level": result.level,
        "pair_by": result.pair_by,
        "allow_mixed": result.allow_mixed,
    }
    if result.against is not None:
        held["against"] = _board(result.against)
        held["agreement"] = _agreement(result.agreement)
    if result.published is not None:
        held["published"] = _published(result.published)
    return held


def _board(leaderboard: Leaderboard) -> dict[str, Any]:
    return {
        "generators": {name: _generator(score) for name, score in leaderboard.generators.items()},
        "order": list(leaderboard.order),
        "alike": [[one.first, one.second] for one in leaderboard.alike],
        "differences": [_difference(one) for one in leaderboard.differences],
        "mixed": [
            {"aspect": one.aspect, "what": one.what, "values": _lists(dict(one.values))}
            for one in leaderboard.mixed
        ],
        "notices": list(leaderboard.notices),
    }


def _generator(score: GeneratorScore) -> dict[str, Any]:
    return {
        "images": score.images,
        "left_out": asdict(score.left_out),
        "unfinished": None if score.unfinished is None else asdict(score.unfinished),
        **{name: score.figure(name).value for name in FIGURES},
        "ci": {name: _ends(score.figure(name).interval) for name in FIGURES},
        "anomalies": score.anomalies,
        "flawless": score.flawless,
        "prompts": score.prompts,
        "severities": list(score.severities),
        "names": [asdict(name) for name in score.names],
        "worst": [_worst(image) for image in score.worst],
        "source": str(score.source),
        "made_with": _made_with(score.provenance),
    }


def _worst(image: WorstImage) -> dict[str, Any]:
    return {
        "image": image.image,
        "u": image.u,
        "anomalies": [anomaly.model_dump() for anomaly in image.anomalies],
    }


def _made_with(made: Provenance) -> dict[str, Any]:
    return {
        "models": list(made.models),
        "served_as": {model: list(names) for model, names in made.served.items()},
        "prompts": list(made.prompts),
        "changes": None if made.changes is None else list(made.changes),
        "policy": None if made.policy is None else dict(made.policy),
        "settings": None if made.settings is None else dict(made.settings),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "paired": one.paired,
        **{name: getattr(one, name).value for name in RANKED},
        "ci": {name: _ends(getattr(one, name).interval) for name in RANKED},
        "apart": one.apart,
    }


def _agreement(found: tuple[Agreement, ...]) -> dict[str, Any]:
    return {
        one.figure: {"generators": one.generators, "spearman": one.spearman, "kendall": one.kendall}
        for one in found
    }


def _published(table: PublishedTable) -> dict[str, Any]:
    return {
        "source": table.source,
        "rows": [asdict(row) for row in table.rows],
        "agreement": _agreement(table.agreement),
    }


def _ends(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _lists(values: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {name: list(held) for name, held in values.items()}


COLUMNS = (
    *("source", "assessor", "rank", "generator", "images"),
    *("failed", "partial", "unreadable", "unclear", "anomalies"),
    *(f"{figure}{end}" for figure in FIGURES for end in ("", "_low", "_high")),
    "like_the_one_before",
)


def audit_csv(result: AuditResult) -> str:
    """With a head line, lowest CAP first, full precision; a cell without a measured value is empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(_rows(result.leaderboard))
    if result.against is not None:
        table.writerows(_rows(result.against))
    if result.published is not None:
        table.writerows(_published_rows(result.published))
    return text.getvalue()


def _rows(leaderboard: Leaderboard) -> Iterator[dict[str, object]]:
    alike = {one.second for one in leaderboard.alike}
    for rank, name in enumerate(leaderboard.order, 1):
        score = leaderboard.generators[name]
        row: dict[str, object] = {
            "source": "own",
            "assessor": " + ".join(score.provenance.models),
            "rank": rank,
            "generator": name,
            "images": score.images,
            "failed": score.left_out.failed,
            "partial": score.left_out.partial,
            "unreadable": score.left_out.unreadable,
            "unclear": score.left_out.unclear,
            "anomalies": score.anomalies,
            "like_the_one_before": "yes" if name in alike else "no" if rank > 1 else "",
        }
        for figure in FIGURES:
            estimate = score.figure(figure)
            low, high = estimate.interval or ("", "")
            value = "" if estimate.value is None else estimate.value
            row |= {figure: value, f"{figure}_low": low, f"{figure}_high": high}
        yield row


def _published_rows(table: PublishedTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        figures: dict[str, object] = {figure: getattr(row, figure) for figure in RANKED}
        yield {"source": "published", "assessor": row.assessor, "generator": row.generator, **figures}
