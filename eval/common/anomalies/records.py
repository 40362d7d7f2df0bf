"""What the semantic score knows of an image and its anomalies, whichever file or program they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from uncanny.eval.common.score_json import digest_of
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Box, Kind, Source, Status
from uncanny.wording import counted, harmless


@dataclass(frozen=True, slots=True)
class ScoredAnomaly:
    """One anomaly, predicted or true. A blank text is similar to nothing.

    `severity` runs from 0, completely unreal, to 100, fully realistic; `box` is in pixels of the image file,
    `kind` is what sort of thing is wrong. Each is None where it is not known.
    """

    name: str
    phenomenon: str
    reasoning: str
    severity: int | None = None
    box: Box | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class ScoredImage:
    """One image with its anomalies. Only `status` `ok` is scored: what failed is no empty prediction.

    `source` is None where there is no clear answer; `has_source` says whether the record speaks of it at all.
    `line` counts from 1 and is None where the record has no line of its own. `columns` may say what images
    belong together.
    """

    image: str
    anomalies: tuple[ScoredAnomaly, ...]
    source: Source | None = None
    has_source: bool = False
    sha256: str | None = None
    status: Status = "ok"
    line: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class AnomalySet:
    """Predictions or truth: all images of a file or of records in memory, in order; names are unique.

    `origin` says where they are from: the path, `scenes`, or what they were given as. Counts of what was read
    with allowances: `blank_texts`, phenomena and reasonings without a word; `unread_severities`, words that
    say no severity, which then is unknown; `unread_answers`, plain text that is no list of anomalies and
    stands as one prediction that matches nothing. `unfinished`: what the run they are of has still to do.
    `texts`: ids of the texts that models were asked with, as the records name them, sorted.
    """

    origin: str
    images: tuple[ScoredImage, ...]
    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    texts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<anomalies of {counted(len(self.images), 'image')} of {harmless(self.origin)}>"

    @property
    def has_source(self) -> bool:
        """Whether any image says, or says that it does not know, if it is generated or real."""
        return any(image.has_source for image in self.images)


def digest(images: Iterable[ScoredImage]) -> str:
    """SHA-256, in hexadecimal, of all that scores depend on in a truth; not of the order of its images."""
    return digest_of(
        [
            image.image,
            image.source,
            image.status,
            [[anomaly.phenomenon, anomaly.reasoning] for anomaly in image.anomalies],
        ]
        for image in images
    )
