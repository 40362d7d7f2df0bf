"""The result of an audit: leaderboards of generators, as values, JSON, CSV, a data frame and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from uncanny.eval.audit.data.aggregate import AuditedImage, NameCount
from uncanny.eval.audit.score import tables
from uncanny.eval.audit.score.faults import NO_KIND, Faults, ImageFaults, share_json
from uncanny.eval.audit.score.releases import Release
from uncanny.eval.audit.score.resample import FEWEST_SHARED
from uncanny.eval.common.alike import Mismatch, Provenance
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.estimates import Estimate, p_words
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.headline import proven
from uncanny.eval.common.inputs.sources import LeftOut, SourceKind
from uncanny.eval.common.json_fields import JsonFields, json_of, with_ends
from uncanny.eval.common.published import texts_notes
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.table import RowsResult, Table
from uncanny.eval.metrics.audit import METRICS, RANKED, Metric
from uncanny.eval.trust.figures import FIGURES
from uncanny.parameters import path_of
from uncanny.records.run_folder import Unfinished

if TYPE_CHECKING:
    from uncanny.eval.audit.data.prompts import PromptRows
    from uncanny.eval.audit.score.trend import Trend
    from uncanny.eval.common.gates import GateResult
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.trust.figures import Trusted
    from uncanny.records.calibration import Calibration

# Of more generators only the neighbours in the order are compared.
ALL_PAIRS_UP_TO = 16
MOST_LEFT_OUT = 0.01
# Of the CSV and the data frame.
COLUMNS = (
    *("source", "assessor", "rank", "generator", "images"),
    *("failed", "partial", "unreadable", "unclear", "anomalies"),
    *(f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")),
    "like_the_one_before",
    *("visible", "visible_low", "visible_high"),
    "judged",
    *(f"corrected_{figure}{end}" for figure in FIGURES for end in ("", "_low", "_high")),
)


@dataclass(frozen=True, slots=True)
class GeneratorScore:
    """One generator. `images` are those with status `ok`, the `n` of every score.

    `mai`, `af`, `cap` are from 0, lower is better; `u_mean` is 0–1 (see `eval.metrics.audit`).
    `severities[s]` counts the anomalies of severity `s`, 0–100 (100 = realistic). `flawless` counts the
    images without anomalies. `names` and `worst` are the top ones, highest first. `prompts` counts the
    distinct keys of pairing, None where nothing is paired. `unfinished`: what its run has still to do.
    `source` is None for annotations in memory. `faults` says how many images show what. `digest` is that of
    the images. `sure` counts the findings that the model was not sure enough of, which are in nothing
    else. `trusted` is what people judged of its sample, if any. `mai`, `af`, `cap` and `faults` are what is
    shown: the corrected figures where they stand in the place of those of the score `shown_for`, and `u_mean`
    is then that of corrected MAI and AF.
    """

    name: str
    source: Path | None
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
    worst: tuple[AuditedImage, ...]
    provenance: Provenance
    prompts: int | None = None
    unfinished: Unfinished | None = None
    faults: ImageFaults = field(default_factory=ImageFaults)
    digest: str = ""
    sure: Sure = field(default_factory=Sure)
    trusted: Trusted | None = field(default=None, repr=False)
    shown_for: GeneratorScore | None = field(default=None, repr=False)

    def metric(self, name: Metric) -> Estimate:
        return self.metrics[name]

    @property
    def metrics(self) -> dict[Metric, Estimate]:
        return {name: getattr(self, name) for name in METRICS}

    @property
    def records(self) -> int:
        return self.images + self.left_out.total

    @property
    def drawn_from(self) -> int:
        """What resamples are drawn from: prompts, or images where nothing is paired."""
        return self.images if self.prompts is None else self.prompts

    @property
    def too_few(self) -> bool:
        """Whether there are fewer than ten images, or prompts: no interval, and a place behind the others."""
        return self.drawn_from < FEWEST_SHARED

    @property
    def left_out_share(self) -> float | None:
        """In 0–1 of all records; None without any."""
        return self.left_out.total / self.records if self.records else None

    @property
    def many_left_out(self) -> bool:
        """Whether over 1 % of the records are in no score: the others may be the easy ones."""
        share = self.left_out_share
        return share is not None and share > MOST_LEFT_OUT

    @property
    def model(self) -> GeneratorScore:
        """The score with the figures of the model."""
        return self.shown_for or self

    @property
    def corrected(self) -> Trusted | None:
        """The figures as people correct them, shown or not; None without enough judged images."""
        return self.trusted if self.trusted is not None and self.trusted.is_enough else None

    def to_json(self) -> dict[str, Any]:
        """The figures of the model, and beside them the corrected ones."""
        if self.shown_for is not None:
            return self.model.to_json()
        return {
            **json_of(self, "images left_out unfinished **metrics ci=metrics anomalies flawless"),
            **json_of(self, "left_out_below_confidence=sure.left_out expected_right=sure.expected_right"),
            "visible": share_json(self.faults.visible),
            "kinds": {kind or NO_KIND: each.to_json() for kind, each in self.faults.kinds.items()},
            "corrected": self.corrected and self.corrected.to_json(),
            **json_of(self, "prompts severities names"),
            "worst": [json_of(image, "image u anomalies") for image in self.worst],
            **json_of(self, "source made_with=provenance"),
        }


@dataclass(frozen=True, slots=True)
class Difference(JsonFields):
    """Two generators, `first` ahead of `second` in the order; the scores are `first` minus `second`.

    `paired` counts the prompts that both have and over which the difference is taken; None where all images
    of both are compared, because nothing or too little is paired. `apart` says whether the interval of the
    CAP difference is without 0 and a test finds it, too, whose p-value, `adjusted_p`, is corrected by Holm
    for all pairs of the leaderboard; both are None with too few images. What is alike in all images
    of both has no interval, and the test alone decides.
    """

    json_keys: ClassVar = "first second paired **figures ci=figures adjusted_p apart"

    first: str
    second: str
    paired: int | None
    mai: Estimate
    af: Estimate
    cap: Estimate
    adjusted_p: float | None = None

    @property
    def apart(self) -> bool | None:
        return proven(self.adjusted_p, self.cap.excludes_zero)

    def __str__(self) -> str:
        """The difference in CAP as a sentence."""
        if self.apart is None:
            return f"{self.first} and {self.second}: not compared, because there is no interval"
        verdict = "differ" if self.apart else "do not differ significantly"
        over = f", over {self.paired:,} shared prompts" if self.paired is not None else ""
        value, interval = tables.signed(self.cap.value), tables.signed_ends(self.cap) or "alike in all images"
        # Where the interval alone would say so, why they are not apart all the same.
        test = ""
        if self.cap.excludes_zero and self.adjusted_p is not None and not self.apart:
            test = f", corrected {p_words(self.adjusted_p)}"
        return f"{self.first} and {self.second} {verdict}: CAP {value} ({interval}){test}{over}"

    def reversed(self) -> Difference:
        """`second` minus `first`."""
        return Difference(
            self.second, self.first, self.paired, -self.mai, -self.af, -self.cap, self.adjusted_p
        )

    @property
    def figures(self) -> dict[Metric, Estimate]:
        return {name: getattr(self, name) for name in RANKED}


@dataclass(frozen=True, slots=True)
class Leaderboard(JsonFields):
    """All generators by one assessor. `order` has the lowest CAP first, generators without a CAP last.

    `differences` has the pairs of generators with a CAP: all of up to 16 generators, the neighbours in the
    order of more. `mixed` is empty unless mixing was allowed. `notices` are sentences for people: what could
    not be checked, what to know before believing. `faults` are what is wrong, by kind and similar names, as
    the model found it. `is_corrected` says that generators are compared by what people corrected.
    """

    json_keys: ClassVar = (
        "generators order alike=alike_names differences faults mixed notices ranked_corrected=is_corrected"
    )

    generators: Mapping[str, GeneratorScore]
    order: tuple[str, ...]
    differences: tuple[Difference, ...]
    mixed: tuple[Mismatch, ...] = ()
    notices: tuple[str, ...] = ()
    faults: Faults = field(default_factory=Faults)
    is_corrected: bool = False

    def difference(self, first: str, second: str) -> Difference | None:
        """The pair in this order, or None."""
        return next((each for each in self.differences if (each.first, each.second) == (first, second)), None)

    @property
    def ranked(self) -> tuple[str, ...]:
        """As they are shown: the order, in which those of too few images stand behind the others, and those
        without a CAP last."""

        def place(name: str) -> tuple[bool, bool]:
            score = self.generators[name]
            return (score.cap.value is None, score.too_few)

        return tuple(sorted(self.order, key=place))

    @property
    def measured(self) -> list[str]:
        """The generators with a CAP, as they are ranked."""
        return [name for name in self.ranked if self.generators[name].cap.value is not None]

    @property
    def alike(self) -> tuple[Difference, ...]:
        """Neighbours as they are ranked that cannot be told apart."""
        neighbours = (self.difference(*pair) for pair in pairwise(self.ranked))
        return tuple(each for each in neighbours if each is not None and each.apart is not True)

    @property
    def alike_names(self) -> tuple[tuple[str, str], ...]:
        return tuple((each.first, each.second) for each in self.alike)

    @property
    def models(self) -> list[str]:
        """Who annotated: distinct over all generators, sorted."""
        return sorted({model for score in self.generators.values() for model in score.provenance.models})

    @property
    def prompt_sets(self) -> list[str]:
        """Ids of the prompts annotated with: distinct over all generators, sorted."""
        return sorted({prompts for score in self.generators.values() for prompts in score.provenance.prompts})

    def texts_notes(self) -> Iterator[str]:
        """Where not all images were annotated with uncanny's texts, and the same ones."""
        return texts_notes(self.texts)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """By generator the ids of the prompts that its records name."""
        return {name: score.provenance.prompts for name, score in self.generators.items()}

    def rows(self) -> Iterator[dict[str, object]]:
        """A row a generator, by `COLUMNS`, as they are ranked; what was not measured is None."""
        alike = {each.second for each in self.alike}
        for rank, name in enumerate(self.ranked, 1):
            score = self.generators[name]
            row: dict[str, object] = {
                "source": "own",
                "assessor": " + ".join(score.provenance.models),
                "rank": rank,
                "generator": name,
                "images": score.images,
                **asdict(score.left_out),
                "anomalies": score.anomalies,
                "like_the_one_before": "yes" if name in alike else "no" if rank > 1 else None,
            }
            row |= with_ends(score.model.metrics) | with_ends({"visible": score.model.faults.visible})
            if (own := score.corrected) is not None:
                corrected = {f"corrected_{each}": figure.estimate for each, figure in own.figures.items()}
                row |= {"judged": own.design.n, **with_ends(corrected)}
            yield row


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike two assessors rank the same generators by one metric: Spearman's rho and Kendall's tau-b.

    Both are None where fewer than two generators are compared or an assessor gives all the same value.
    """

    metric: Metric
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
    """The published rows, where they are from, and how the two assessors agree in them.

    `as_printed` has what the table prints by the name that stands here, where letters of the two differ.
    """

    source: str
    rows: tuple[PublishedRow, ...]
    agreement: tuple[Agreement, ...]
    as_printed: Mapping[str, str] = field(default_factory=dict)

    @property
    def assessors(self) -> list[str]:
        return list(dict.fromkeys(row.assessor for row in self.rows))

    @property
    def names_note(self) -> str:
        """Which names stand here as the generators' own papers write them; empty where none does."""
        printed = "; ".join(f"{name} is printed {text!r}" for name, text in self.as_printed.items())
        return f"Names as the generators' own papers write them: {printed}." if printed else ""

    def to_json(self) -> dict[str, Any]:
        return {**json_of(self, "source as_printed rows"), "agreement": _agreement_json(self.agreement)}


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(RowsResult):
    """A whole audit. Lower is better, 0 is flawless.

    `against` is the same generators by a second assessor, and `agreement` compares the two. `pair_by` is
    `stem`, the name of a column, or None. `published` is None unless asked for.
    `side_by_side` are the prompts where generators differ most, for the page; None where none is shared.
    `own` are the generators to be marked as one's own, and `releases` those that were compared with an
    earlier release, by name; `trends` are those with several. `groups` are the images of all generators that
    are resampled together. Findings below `least_confidence`, 0-1, are left out; the others
    have a probability by the `calibration`, if there is one.

    It prints as a table, and shows as one in a notebook; `result[name]` is a generator's score.
    """

    columns: ClassVar = COLUMNS

    leaderboard: Leaderboard
    resamples: int
    seed: int
    level: float
    pair_by: str | None = None
    allow_mixed: bool = False
    against: Leaderboard | None = None
    agreement: tuple[Agreement, ...] = ()
    published: PublishedTable | None = None
    side_by_side: PromptRows | None = None
    own: tuple[str, ...] = ()
    releases: Mapping[str, Release] = field(default_factory=dict)
    trends: Mapping[str, Trend] = field(default_factory=dict)
    groups: ImageGroups | None = None
    least_confidence: float = 0.0
    calibration: Calibration | None = None

    def __getitem__(self, name: str) -> GeneratorScore:
        return self.leaderboard.generators[name]

    @property
    def leaderboards(self) -> tuple[Leaderboard, ...]:
        """One an assessor."""
        return (self.leaderboard,) if self.against is None else (self.leaderboard, self.against)

    def to_json(self) -> dict[str, Any]:
        """What `uncanny audit --json` prints: all but the paths of images; what was not measured is None.

        Beside the keys of the format: in a generator `unfinished`, `anomalies`, `flawless`, `visible`,
        `kinds`, `prompts`, `severities`, `names`, `worst` and how its annotations were made; also
        `differences`, the neighbours that are `alike`, `faults`, `mixed`, `notices`, `headline`, how
        intervals were made, and, where asked for, `before`, `trends`, `against`, `agreement` and `published`.
        """
        content = {
            **self.leaderboard.to_json(),
            **json_of(self, "resamples seed level pair_by allow_mixed own min_confidence=least_confidence"),
            "headline": tables.headline(self),
            "about": about(
                {"images": {name: score.digest for name, score in self.leaderboard.generators.items()}},
                {name: score.provenance.prompts for name, score in self.leaderboard.generators.items()},
                resamples=self.resamples,
                seed=self.seed,
                method="percentile bootstrap over images or prompts, Wilson for shares of images",
                groups=self.groups,
            ),
        }
        if self.releases:
            content["before"] = {name: release.to_json() for name, release in self.releases.items()}
        if self.trends:
            content["trends"] = {name: trend.to_json() for name, trend in self.trends.items()}
        if self.against is not None:
            content["against"] = self.against.to_json()
            content["agreement"] = _agreement_json(self.agreement)
        if self.published is not None:
            content["published"] = self.published.to_json()
        return content

    def rows(self) -> Iterator[dict[str, object]]:
        """A row a generator and assessor, lowest CAP first, then the published ones in the paper's order."""
        for leaderboard in self.leaderboards:
            yield from leaderboard.rows()
        for row in () if self.published is None else self.published.rows:
            yield {"source": "published", **asdict(row)}

    def tables(self) -> tuple[Table, ...]:
        return tables.audit_tables(self)

    def gate(self, conditions: Sequence[str]) -> GateResult:
        """Judge conditions that must not hold, as `--fail-if` does: `worse`, `af>1.5`, `lower:af>1.2`.

        They are about the own generators, or of the only one. `GateResult.passed` is False where one holds
        and where one could not be measured. Raises UsageError for a condition that cannot be read.
        """
        from uncanny.eval.audit.score.gate import gate_audit

        return gate_audit(self, conditions)

    def report(
        self,
        out: Path | str,
        *,
        title: str | None = None,
        pictures: PicturesMode = "link",
        reports: bool = False,
    ) -> Path:
        """Write the page to `out`, one file, and return its path.

        Full-size `pictures` are linked from their files, or embedded in the page. Each generator's name leads
        to the page of its run, where there is one; with `reports` those that have none, and all where a
        calibration is applied, get one in the folder `reports` beside `out`.

        Raises OSError where it cannot be written.
        """
        from uncanny.eval.audit.report.page import write_audit_page

        return write_audit_page(self, path_of("out", out), title=title, pictures=pictures, reports=reports)


def _agreement_json(agreements: tuple[Agreement, ...]) -> dict[str, Any]:
    return {each.metric: json_of(each, "generators spearman kendall") for each in agreements}
