"""What the findings of a run are worth, from the images that people judged: figures of all images that hold.

The corrected figures are those of `eval.metrics.corrected`, with its sources, the calibration is that of
`eval.trust.calibration`. Ours: which findings are right, by kind, agent and stated confidence, and what the
model missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.common.parameters import ConfidenceParameters
from uncanny.eval.common.tables.table import Column, RowsResult, Table, data_frame
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha
from uncanny.eval.trust.calibration import (
    BINS,
    FOLDS,
    LEAST_FINDINGS,
    CrossFitted,
    bins_of,
    calibration_error,
    columns_of,
    fit_calibration,
)
from uncanny.eval.trust.data import (
    Floats,
    JudgedFinding,
    JudgedRun,
    judged_findings,
    missed,
    read_judged,
    skipped_words,
)
from uncanny.eval.trust.figures import FIGURES, Trusted, TrustedFigure, verdict_words
from uncanny.parameters import path_of, takes
from uncanny.records.calibration import Calibration
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from pandas import DataFrame

# What is worth knowing: an interval of so many points to each side, and so many findings right of those from
# a confidence on, of at least so many that were judged.
WANTED_HALF: Final = 0.05
WANTED_RIGHT: Final = 0.9
FEWEST_FINDINGS: Final = 20


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """The judged findings of a confidence, or a probability, from `low` to below `high`, 0-1: the mean of it,
    and the share that is right. Both are None where there are none."""

    low: float
    high: float
    mean: float | None
    right: Share


@dataclass(frozen=True, slots=True, repr=False)
class TrustResult(RowsResult):
    """How far the findings of a run can be trusted. Shares are 0–1; what nobody has judged is None.

    `figures` are those of all images, by `visible`, `af`, `mai` and `cap`, `kinds` the share of images with a
    fault of each kind that occurs. `precision` is the share of judged findings that people accepted,
    `by_kind` and `by_agent` that of each, `missed` the share of true anomalies that the model did not find.
    Findings that people are unsure of are not accepted. `bins` have the findings by the model's confidence;
    `calibration_error` is the mean distance of its confidence from the share that is right, by findings, each
    counting as many images as its own stands for. `fitted` is what makes probabilities of confidences, with
    how right it is on images that it was not fitted to: by `calibrated_bins`; None of too few findings.

    It prints as tables; `to_json()` has all of it.
    """

    finding_columns: ClassVar = ("group", "name", "right", "low", "high", "accepted", "judged")
    columns: ClassVar = (
        *("figure", "value", "low", "high", "lambda", "people_only", "people_low", "people_high"),
        *("model_only", "worth", "if_unsure_accepted"),
    )

    trusted: Trusted
    precision: Share
    by_kind: Mapping[str, Share]
    by_agent: Mapping[str, Share]
    missed: Share
    bins: tuple[ConfidenceBin, ...]
    calibration_error: float | None
    agreement: Agreement
    fitted: CrossFitted | None = None
    calibrated_bins: tuple[ConfidenceBin, ...] = ()

    @property
    def calibration(self) -> Calibration | None:
        """The map from confidence to probability, to be applied and written; None of too few findings."""
        return None if self.fitted is None else self.fitted.calibration

    @property
    def too_few_to_calibrate(self) -> str:
        """Why there may be no calibration, without a full stop."""
        judged = list(judged_findings(self.judged, self.judged.sure.least))
        stated = [each for each in judged if each.confidence is not None]
        return (
            f"A calibration needs {LEAST_FINDINGS} judged findings with a confidence in at least {FOLDS} "
            f"images; {self.judged.run} has {len(stated):,} in {len({each.image for each in stated}):,}"
        )

    def write_calibration(self, path: str | PathLike[str]) -> Path:
        """Write the calibration to `path`. Raises UsageError where there is none, OSError."""
        if self.calibration is None:
            raise UsageError(self.too_few_to_calibrate, remedy="Judge more images of its sample.")
        return self.calibration.write(path)

    @property
    def judged(self) -> JudgedRun:
        return self.trusted.judged

    @property
    def figures(self) -> Mapping[str, TrustedFigure]:
        return self.trusted.figures

    @property
    def kinds(self) -> Mapping[str, TrustedFigure]:
        return self.trusted.kinds

    def to_json(self) -> dict[str, Any]:
        judged = self.judged
        return {
            "run": str(judged.run),
            "sample": {
                "design": judged.sample.design,
                "size": judged.sample.size,
                "open": judged.open_images,
                "skipped": judged.skipped,
            },
            "corrected": self.trusted.to_json(),
            "precision": _share_json(self.precision),
            "by_kind": {name: _share_json(each) for name, each in self.by_kind.items()},
            "by_agent": {name: _share_json(each) for name, each in self.by_agent.items()},
            "missed": _share_json(self.missed),
            "calibration": {
                "error": self.calibration_error,
                "bins": [_bin_json(each) for each in self.bins],
                "calibrated": self._calibrated_json(),
            },
            "agreement": {"alpha": self.agreement.alpha, "judged_twice": self.agreement.units},
            **{"gone": list(judged.gone), "left_out": judged.left_out},
            "left_out_below_confidence": judged.sure.left_out,
            "stale_verdicts": judged.stale,
            "next": list(self.next_steps()),
        }

    def _calibrated_json(self) -> dict[str, Any] | None:
        if self.calibration is None:
            return None
        content = self.calibration.model_dump(mode="json")
        return {**content, "bins": [_bin_json(each) for each in self.calibrated_bins]}

    def finding_rows(self) -> Iterator[dict[str, object]]:
        """Which findings are right: a row for all, each kind, agent and bin of confidence, the `group`."""
        for group, name, each in self._findings():
            low, high = each.interval or (None, None)
            yield {
                **{"group": group, "name": name, "right": each.value, "low": low, "high": high},
                **{"accepted": each.counts, "judged": each.out_of},
            }

    def findings_frame(self) -> DataFrame:
        """`finding_rows` as a data frame. Raises UsageError where pandas is not installed."""
        return data_frame(self.finding_columns, self.finding_rows())

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write the page to `path`, one file that needs nothing else. Raises OSError."""
        from uncanny.eval.trust.report import write_trust_page

        return write_trust_page(self, Path(path), title=title)

    def rows(self) -> Iterator[dict[str, object]]:
        for name, each in {**self.figures, **self.kinds}.items():
            row = each.to_json()
            people = row.pop("people_only")
            yield {
                **{key: value for key, value in row.items() if key in self.columns},
                **{"figure": name, "people_only": people["value"]},
                **{"people_low": people["low"], "people_high": people["high"]},
            }

    def tables(self) -> tuple[Table, ...]:
        shares = {"visible fault": self.figures["visible"], **self.kinds}
        means = {name.upper(): self.figures[name] for name in FIGURES if name != "visible"}
        judged = self.judged
        title = (
            f"Figures of all {judged.design.size:,} images, from {counted(judged.design.n, 'judged image')}"
        )
        heads = ("Corrected", "People only", "Model only")
        return (
            Table(
                ("Images with", *(Column(head, "%") for head in heads), Column("Worth images", digits=0)),
                tuple(_figure_row(name, each) for name, each in shares.items()),
                title=title,
                notes=(*self.notes(), *self.next_steps()),
            ),
            Table(
                ("Figure", *(Column(head, digits=2) for head in heads), Column("Worth images", digits=0)),
                tuple(_figure_row(name, each) for name, each in means.items()),
            ),
            Table(
                ("Findings", Column("Right", "%"), Column("Judged", digits=0)),
                tuple(_share_row(group, name, each) for group, name, each in self._findings()),
                title="Findings that people accepted",
                notes=tuple(self._finding_notes()),
            ),
        )

    def _findings(self) -> Iterator[tuple[str, str, Share]]:
        """By group and name."""
        yield "all", "all", self.precision
        for group, shares in (("kind", self.by_kind), ("agent", self.by_agent)):
            for name, share in shares.items():
                yield group, name, share
        for each in self.bins:
            if each.right.out_of:
                yield "confidence", f"{each.low:.1f}–{each.high:.1f}", each.right

    def notes(self) -> Iterator[str]:
        """What to know of the sample before believing, a sentence each."""
        judged = self.judged
        if still_open := judged.open_images - judged.skipped:
            are = "is" if still_open == 1 else "are"
            yield f"{counted(still_open, 'image')} of the sample {are} not judged yet."
        if judged.uncompleted:
            lack = "lacks" if judged.uncompleted == 1 else "lack"
            yield (
                f"{counted(judged.uncompleted, 'image')} with a decision on every finding {lack} somebody "
                "who says that nothing is missing: complete them."
            )
        if judged.skipped:
            yield f"{skipped_words(judged)}."
        yield from verdict_words(self.trusted)
        if judged.gone:
            are = "is" if len(judged.gone) == 1 else "are"
            yield f"{counted(len(judged.gone), 'image')} of the sample {are} not in the run any more."
        yield from judged.sure.notices()

    def _finding_notes(self) -> Iterator[str]:
        if self.missed.value is not None:
            yield f"Missed: {self.missed.counts:,} of {self.missed.out_of:,} true anomalies."
        if self.calibration_error is not None:
            yield f"Expected calibration error: {self.calibration_error:.2f}.{self._calibrated_words()}"
        if self.agreement.alpha is not None:
            alpha = Column("", digits=2).show(self.agreement.alpha).text
            yield f"Agreement of reviewers: Krippendorff's α {alpha}."

    def _calibrated_words(self) -> str:
        if self.calibration is None:
            return f" {self.too_few_to_calibrate}."
        calibration = self.calibration
        helps = calibration.error_after < calibration.error_before
        return (
            f" Calibrated, on held-out images: {calibration.error_after:.2f}."
            f"{'' if helps else ' That is no better: judge more images before you use it.'}"
        )

    def next_steps(self) -> Iterator[str]:
        """What to do next, a sentence each."""
        visible = self.figures["visible"].corrected
        design = self.judged.design
        if missing := design.missing:
            few = "with fewer than 30 there is no interval"
            if design.n + missing > design.size:
                yield f"The run has only {counted(design.size, 'image')}: {few}."
            else:
                yield f"Judge {counted(missing, 'more image')}: {few}."
        elif visible.low is not None and visible.high is not None:
            half = (visible.high - visible.low) / 2
            more = ceil(visible.n * (half / WANTED_HALF) ** 2) - visible.n
            if 0 < more <= visible.frame - visible.n:
                yield (
                    f"About {counted(more, 'more image')} bring the share of images with a visible fault to "
                    f"±{100 * WANTED_HALF:.0f} points."
                )
        for place, each in enumerate(self.bins):
            rest = [other.right for other in self.bins[place:]]
            right, out_of = sum(other.counts for other in rest), sum(other.out_of for other in rest)
            if out_of >= FEWEST_FINDINGS and right >= WANTED_RIGHT * out_of:
                yield f"From confidence {each.low:.1f} on, {right:,} of {out_of:,} judged findings are right."
                break


@takes(ConfidenceParameters)
def trust(run: str | PathLike[str], parameters: ConfidenceParameters) -> TrustResult:
    """Say how far the findings of a run can be trusted, from a sample that people judged whole.

    Draw the sample with `sample`, and have people judge its images whole. Figures of all images are corrected
    by what people found, with 95 % intervals that hold whatever the model's mistakes are; fewer than 30
    judged images have none. No model is asked.

    Raises UsageError where it is not a run of a model, no sample was drawn, or the run has more images than
    it was drawn from; RecordError for an invalid record.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> drawn = uncanny.sample(out, size=1)
    >>> print(uncanny.trust(out).judged.open_images)
    1
    """
    judged = read_judged(path_of("run", run), parameters.min_confidence)
    trusted = Trusted(judged)
    if trusted.grown:
        raise UsageError(
            f"{judged.run} has {counted(trusted.grown, 'image')} more than its sample was drawn from",
            remedy=f"Extend the sample with `uncanny sample {judged.run}` and {option('size', 'N')}.",
        )
    return score_judged(judged, parameters.min_confidence)


def score_judged(judged: JudgedRun, min_confidence: float) -> TrustResult:
    """All that a run and its judged images tell."""
    findings = list(judged_findings(judged, min_confidence))
    kinds = sorted({each.kind for each in findings if each.kind is not None})
    agents = sorted({agent for each in findings for agent in each.agents})
    stated = [each for each in findings if each.confidence is not None]
    confidences, accepted, weights = columns_of(stated)
    fitted = fit_calibration(findings, min_confidence, judged.made_with)
    return TrustResult(
        trusted=Trusted(judged),
        precision=_right(findings),
        by_kind={kind: _right(each for each in findings if each.kind == kind) for kind in kinds},
        by_agent={name: _right(each for each in findings if name in each.agents) for name in agents},
        missed=_counted(*missed(judged.judged, min_confidence)),
        bins=_bins(stated, confidences),
        calibration_error=calibration_error(confidences, accepted, weights) if stated else None,
        agreement=krippendorff_alpha(each.votes for each in findings),
        fitted=fitted,
        calibrated_bins=() if fitted is None else _bins(stated, fitted.probabilities),
    )


def _right(findings: Iterable[JudgedFinding]) -> Share:
    every = list(findings)
    return _counted(sum(each.accepted is True for each in every), len(every))


def _counted(count: int, out_of: int) -> Share:
    return Share(count / out_of if out_of else None, count, out_of, wilson_interval(count, out_of))


def _bins(findings: Sequence[JudgedFinding], probabilities: Floats) -> tuple[ConfidenceBin, ...]:
    at = bins_of(probabilities)

    def bin_of(place: int) -> ConfidenceBin:
        own = np.flatnonzero(at == place)
        mean = float(probabilities[own].mean()) if len(own) else None
        return ConfidenceBin(
            place / BINS, (place + 1) / BINS, mean, _right(findings[int(number)] for number in own)
        )

    return tuple(map(bin_of, range(BINS)))


def _bin_json(each: ConfidenceBin) -> dict[str, Any]:
    return {"low": each.low, "high": each.high, "mean": each.mean, **_share_json(each.right)}


def _figure_row(name: str, figure: TrustedFigure) -> tuple[Any, ...]:
    each = figure.corrected
    return name, figure.estimate, each.people_only, each.model_only, each.effective


def _share_row(group: str, name: str, share: Share) -> tuple[Any, ...]:
    return f"{group} {name}" if group == "confidence" else name, share, share.out_of


def _share_json(share: Share) -> dict[str, Any]:
    low, high = share.interval or (None, None)
    return {"value": share.value, "low": low, "high": high, "count": share.counts, "out_of": share.out_of}
