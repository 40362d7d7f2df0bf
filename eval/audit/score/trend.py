"""A series of releases of one generator: its figures over time, and the release at which one changed.

The test is that of `eval.audit.score.change_point`, corrected by Holm for the four figures. Not from a paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.eval.audit.score.change_point import ChangePoint, change_point
from uncanny.eval.audit.score.result import GeneratorScore
from uncanny.eval.audit.score.tables import FIGURE_FORMS
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.headline import proven
from uncanny.eval.common.json_fields import as_json
from uncanny.eval.metrics.association import holm
from uncanny.eval.trust.figures import FIGURES, FigureName


@dataclass(frozen=True, slots=True)
class Trend:
    """The releases of a generator by their labels, the oldest first; the last is that of now.

    `changes` has the strongest change of each figure, with its p-value corrected for their number; None
    where fewer than two releases have an interval. `is_corrected` says that people corrected the figures of
    all of them. `notices` say what to know before believing.
    """

    name: str
    releases: Mapping[str, GeneratorScore]
    changes: Mapping[FigureName, tuple[ChangePoint, float] | None]
    is_corrected: bool
    notices: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        releases: Mapping[str, GeneratorScore],
        *,
        is_corrected: bool,
        independent: bool = True,
        notices: tuple[str, ...] = (),
    ) -> Trend:
        """`independent` says that no two releases have an image in common."""
        found = [
            change_point(
                [_figure(each, what) for each in releases.values()], form.kind, independent=independent
            )
            for what, form in FIGURE_FORMS.items()
        ]
        adjusted = holm([None if each is None else each.p_value for each in found])
        changes = {
            what: None if each is None or p is None else (each, p)
            for what, each, p in zip(FIGURES, found, adjusted, strict=True)
        }
        return cls(name, releases, changes, is_corrected, notices)

    @property
    def labels(self) -> list[str]:
        return list(self.releases)

    def proven(self) -> dict[FigureName, ChangePoint]:
        """The changes that are significant."""
        return {what: each[0] for what, each in self.changes.items() if each and proven(each[1], None)}

    def p_value(self, what: FigureName) -> float | None:
        """That of the change of a figure, corrected; None where it is not tested."""
        each = self.changes[what]
        return None if each is None else each[1]

    def figure(self, release: str, what: FigureName) -> Estimate:
        return _figure(self.releases[release], what)

    def to_json(self) -> dict[str, Any]:
        return {
            **{"corrected": self.is_corrected, "notices": list(self.notices)},
            "releases": [
                {
                    "release": label,
                    "images": score.images,
                    "judged": score.trusted.design.n if score.trusted else None,
                    **{what: _figure(score, what).value for what in FIGURES},
                    "ci": {what: as_json(_figure(score, what).interval) for what in FIGURES},
                }
                for label, score in self.releases.items()
            ],
            "changes": {
                what: each
                and {
                    "release": self.labels[each[0].place],
                    **{"before": each[0].before, "after": each[0].after, "adjusted_p": each[1]},
                    "significant": proven(each[1], None),
                }
                for what, each in self.changes.items()
            },
        }


def _figure(score: GeneratorScore, what: FigureName) -> Estimate:
    if what == "visible":
        share = score.faults.visible
        return Estimate(share.value, share.interval)
    return score.metrics[what]


def labels_of(places: Sequence[str]) -> list[str]:
    """What releases are called by: the parts of their places in which they differ, else their numbers."""
    parts = [place.replace("\\", "/").strip("/").split("/") for place in places]
    while len({tuple(each[:1]) for each in parts}) == 1 and all(len(each) > 1 for each in parts):
        parts = [each[1:] for each in parts]
    while len({tuple(each[-1:]) for each in parts}) == 1 and all(len(each) > 1 for each in parts):
        parts = [each[:-1] for each in parts]
    labels = ["/".join(each) for each in parts]
    return labels if len({*labels}) == len(labels) else [str(number) for number in range(1, len(labels) + 1)]
