"""`merge`: several runs over the same images as one run of annotations. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncanny.eval.common.alike import find_mismatches
from uncanny.eval.common.inputs.sources import AnnotationSource
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import open_measure
from uncanny.eval.compare.score.match import match_settings
from uncanny.eval.merge.confidence import DIGITS, Case, Learned, can_learn, learned
from uncanny.eval.merge.data import InputRun, SameImage, image_notices, open_inputs, read_inputs, same_images
from uncanny.eval.merge.findings import MergedFinding, merged_findings
from uncanny.eval.merge.parameters import MergeParameters
from uncanny.eval.merge.records import MergedRecords, check_out, write_run
from uncanny.eval.merge.result import MergeResult, MergeSettings, merged_row, run_row
from uncanny.parameters import takes
from uncanny.schema import Anomaly
from uncanny.wording import counted

# Verdicts on fewer findings say little of how reliable each run is.
FEW_JUDGED: Final = 30


@takes(MergeParameters)
def merge(runs: Mapping[str, AnnotationSource], parameters: MergeParameters) -> MergeResult:
    """Merge runs over the same images into one run folder, with one set of findings per image.

    `runs` are two or more by name: run folders, files of annotations, or lists of `Annotation`. Findings of
    different runs that `compare` would match become one finding, with the text of the surest. It names the
    runs that have it (`voters`) and those that examined the image and do not (`missed_by`). Its confidence is
    the share of voters among the runs that examined the image. If people accepted some findings of the runs
    and rejected others, it is learned from their verdicts instead, by the model of Dawid and Skene, which
    needs the extra `merge`.

    A run has not examined an image whose record failed, in whole or in part. An image that no run examined
    stays failed, with the reasons. The folder is written as a whole or not at all.

    Raises UsageError for fewer than two runs, runs without a common image, names that fit several images, an
    `out` that is one of the runs or not empty, and a missing package; ItemsError, which is one, with
    everything that is wrong with the records; RecordError for an invalid review; OSError where `out` cannot
    be written.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> merged = out.with_name("merged")
    >>> result = uncanny.merge({"first": run, "again": run.annotations}, out=merged)
    >>> result.merged.agreement.value
    1.0
    """
    out = Path(parameters.out)
    sources = open_inputs(runs, parameters.root)
    check_out(out, sources)
    measure = open_measure(parameters.match_by, parameters.part(MeasureParameters))
    settings = MergeSettings(measure.described, match_settings(parameters), parameters.min_confidence)
    inputs = read_inputs(sources, parameters.min_confidence)
    images = same_images(inputs)
    findings = merged_findings(images, [run.name for run in inputs], measure, settings.match)
    votes = _votes(images, findings)
    anomalies = [
        _anomalies(own, confidences) for own, confidences in zip(findings, votes.by_image, strict=True)
    ]
    merged = MergedRecords(inputs, out)
    records = [merged.record(image, own) for image, own in zip(images, anomalies, strict=True)]
    result = MergeResult(
        out=out,
        images=len(images),
        not_examined=sum(record.status != "ok" for record in records),
        basis="votes" if votes.learned is None else "verdicts",
        judged=votes.judged,
        runs={run.name: run_row(run, images, findings, votes.recall(run.name)) for run in inputs},
        merged=merged_row("merged", images, findings),
        sure=merged_row(
            f"merged, from confidence {parameters.min_confidence:g}",
            images,
            [
                [
                    each
                    for each, sure in zip(own, confidences, strict=True)
                    if sure >= parameters.min_confidence
                ]
                for own, confidences in zip(findings, votes.by_image, strict=True)
            ],
        ),
        settings=settings,
        notices=tuple(_notices(inputs, images, findings, votes)),
    )
    plan = {
        "runs": {run.name: run.made_with for run in inputs},
        "basis": result.basis,
        **settings.to_json(),
    }
    write_run(out, records, merged, plan)
    return result


@dataclass(frozen=True, slots=True)
class _Votes:
    """The confidence of each finding, by image; `learned` is None where it is the share of voters.

    `judged` findings were accepted or rejected by people.
    """

    by_image: Sequence[Sequence[float]]
    judged: int
    learned: Learned | None

    def recall(self, run: str) -> float | None:
        """The estimated share of true faults that a run has; None unless it was learned."""
        return None if self.learned is None else self.learned.recalls.get(run)


def _votes(images: Sequence[SameImage], findings: Sequence[Sequence[MergedFinding]]) -> _Votes:
    cases = [_case(number, finding) for number, own in enumerate(findings) for finding in own]
    judged = sum(case.truth is not None for case in cases)
    if not can_learn(cases):
        return _Votes([[round(each.share, DIGITS) for each in own] for own in findings], judged, None)
    examined = {
        number: [name for name, seen in image.items() if seen.examined] for number, image in enumerate(images)
    }
    fitted = learned(cases, examined)
    confidences = iter(fitted.confidences)
    return _Votes([[next(confidences) for _ in own] for own in findings], judged, fitted)


def _case(number: int, finding: MergedFinding) -> Case:
    votes = dict.fromkeys(finding.voters, True) | dict.fromkeys(finding.missed_by, False)
    return Case(number, votes, {"accept": True, "reject": False}.get(finding.verdict or "unsure"))


def _anomalies(findings: Sequence[MergedFinding], confidences: Sequence[float]) -> list[Anomaly]:
    """The surest first, of equal ones the least real."""
    anomalies = [each.anomaly(sure) for each, sure in zip(findings, confidences, strict=True)]
    return sorted(anomalies, key=lambda each: (-(each.confidence or 0.0), each.severity, each.name))


def _notices(
    runs: Sequence[InputRun],
    images: Sequence[SameImage],
    findings: Sequence[Sequence[MergedFinding]],
    votes: _Votes,
) -> Iterator[str]:
    for run in runs:
        yield from run.notices
    yield from image_notices(runs, images)
    for mismatch in find_mismatches({run.name: run.provenance for run in runs}):
        # Of different models, each with settings of its own, nobody expects anything else.
        if mismatch.aspect in ("prompts", "pixels"):
            yield f"The runs were not made alike: {mismatch}."
    every = [finding for own in findings for finding in own]
    if votes.learned is None and votes.judged:
        sort = "accepted" if any(finding.verdict == "accept" for finding in every) else "rejected"
        yield (
            f"All findings that people judged are {sort}, so nothing can be learned from their verdicts. "
            "Review more."
        )
    if votes.learned is None:
        return
    if votes.judged < FEW_JUDGED:
        yield (
            f"Verdicts on {counted(votes.judged, 'finding')} are few, below {FEW_JUDGED}: confidences are "
            "rough. Review more."
        )
    for run in runs:
        alone = [finding for finding in every if finding.voters == (run.name,) and finding.missed_by]
        if alone and all(finding.verdict not in ("accept", "reject") for finding in alone):
            yield f"Nobody judged a finding that only {run.name} has; the confidence of these is a guess."
