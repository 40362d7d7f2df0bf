"""Real photographs beside generated images: matched by the caption that both have, or by CLIP.

Source: SalArt-VQA, section 3: for each generated image a photograph with the same source caption, or one that
is most alike in CLIP's embedding space. The authors then choose by subject, pose and layout, which is left to
people. Here each photograph serves one image unless `once` is off; as many images as can be are matched by
caption, and the sum of similarities is the highest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ImageError, UsageError
from uncanny.eval.common.described import DescribedImage, TextSet, TextSource, load_texts
from uncanny.eval.common.tables.table import Column, Table
from uncanny.eval.curate.parameters import ReferencesParameters
from uncanny.eval.curate.result import CuratedResult, check_suffix, named_from
from uncanny.images.prepared import read_rgb
from uncanny.parameters import takes
from uncanny.runs.display import counting_to
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from uncanny.eval.common.similarity.clip import Clip

By = Literal["caption", "clip"]
# Less than any cosine: what cannot be matched.
_APART: Final = -4.0


class Reference(NamedTuple):
    """An image and its photograph; without one, `reference` is None and `problem` says why.

    `by` is what matched them. `similarity` is the cosine of both images, None if CLIP did not compare them.
    """

    id: str
    original: Path | None
    reference_id: str | None
    reference: Path | None
    by: By | None
    similarity: float | None
    problem: str | None


@dataclass(frozen=True, slots=True, repr=False)
class References(CuratedResult):
    """A record for each image, in its order. `unused` are ids of photographs that serve none."""

    columns: ClassVar = Reference._fields

    references: tuple[Reference, ...]
    unused: tuple[str, ...]
    described: Mapping[str, Any] = field(default_factory=dict)

    def records(self, folder: Path | None = None) -> Sequence[Mapping[str, Any]]:
        return [
            {
                name: named_from(value, folder) if isinstance(value, Path) else value
                for name, value in each._asdict().items()
            }
            for each in self.references
        ]

    def to_json(self) -> dict[str, Any]:
        ways = Counter(each.by for each in self.references)
        return {
            "images": len(self.references),
            "by_caption": ways["caption"],
            "by_clip": ways["clip"],
            "unmatched": [each.id for each in self.references if each.by is None],
            "unused": len(self.unused),
            "model": dict(self.described),
        }

    def tables(self) -> tuple[Table, ...]:
        rows = []
        for by, words in (("caption", "same caption"), ("clip", "most alike"), (None, "no match")):
            own = [each for each in self.references if each.by == by]
            known = [each.similarity for each in own if each.similarity is not None]
            rows.append((words, len(own), sum(known) / len(known) if known else None))
        notes = [f"{counted(len(self.unused), 'photograph')} left over."]
        notes += [f"{each.id}: {each.problem}." for each in self.references if each.problem][:10]
        return (
            Table(("matched by", "images", Column("mean cosine", digits=3)), tuple(rows), notes=tuple(notes)),
        )


@takes(ReferencesParameters)
def references(images: TextSource, parameters: ReferencesParameters) -> References:
    """Find a real photograph for each generated image, as `uncanny curate references` does.

    `images` and `pool` are folders, or files as for `filter`, with `id`, `original` and, if known, the
    `caption` that the image was made from or that describes the photograph. Captions are compared without
    case and extra spaces. With `clip`, images are compared by the model in that folder: among photographs of
    the same caption, and where there is none.

    Raises ItemsError and UsageError for what cannot be read, and a missing model.

    >>> made = [uncanny.curate.DescribedImage(id="1", original="made.png", caption="A dog on a lawn")]
    >>> real = [uncanny.curate.DescribedImage(id="9", original="real.jpg", caption="A dog on a lawn.")]
    >>> uncanny.curate.references(made, pool=real).references[0].reference_id
    '9'

    Source: SalArt-VQA, section 3.
    """
    if parameters.out is not None:
        check_suffix(Path(parameters.out))
    wanted = load_texts(images, root=parameters.root)
    pool = load_texts(parameters.pool, root=parameters.root)
    model: Clip | None = None
    if parameters.clip is not None:
        from uncanny.eval.common.similarity.clip import Clip as Model

        model = Model(Path(parameters.clip), parameters.device)
    elif not any(each.caption for each in wanted.images):
        raise UsageError(
            "None of the images has a caption to match by",
            remedy=f"Name a CLIP model with {option('clip')}, or pass a file with captions.",
        )
    problems: dict[str, str] = {}
    cosines = np.full((len(wanted.images), len(pool.images)), np.nan)
    if model is not None:
        total = len(wanted.images) + len(pool.images)
        with counting_to(total, "images", enabled=parameters.progress) as count:
            ours, problems = _embedded(wanted, model, count)
            theirs, _ = _embedded(pool, model, count)
        if ours.shape[1] == theirs.shape[1] > 0:  # 0 where no picture of a side can be read
            cosines = ours @ theirs.T
    same = _same_captions(wanted.images, pool.images)
    chosen = matches(same, cosines, least=parameters.least, once=parameters.once)
    found = []
    apart = "no photograph has its caption" + ("" if model is None else ", and none left is alike enough")
    for place, image in enumerate(wanted.images):
        at = chosen[place]
        original = _file(wanted, image)
        if at is None:
            why = problems.get(image.id, apart)
            found.append(Reference(image.id, original, None, None, None, None, why))
            continue
        photograph, cosine = pool.images[at], float(cosines[place, at])
        by: By = "caption" if same[place, at] else "clip"
        known = None if np.isnan(cosine) else cosine
        found.append(Reference(image.id, original, photograph.id, _file(pool, photograph), by, known, None))
    used = {each.reference_id for each in found}
    result = References(
        tuple(found),
        tuple(each.id for each in pool.images if each.id not in used),
        {} if model is None else dict(model.described),
    )
    if parameters.out is not None:
        result.write(parameters.out)
    return result


def matches(
    same: NDArray[np.bool_], cosines: NDArray[np.float64], *, least: float, once: bool
) -> list[int | None]:
    """For each row the column that it is matched with: of the `same` caption, else of a cosine from `least`.

    Both have shape (images, photographs); a cosine that is NaN was not measured. With `once` no column is
    chosen twice: as many as can be are matched by caption, then as many as can be of the rest by likeness,
    and the sum of cosines is the highest.
    """
    # What an image can gain elsewhere is less than 5; one caption more outweighs what all of them can.
    caption = 5.0 * (len(cosines) + 1)
    worth = np.where(np.isnan(cosines), 0.0, cosines) + caption * same
    worth = np.where(same | (cosines >= least), worth, _APART)
    rows: NDArray[np.int64] = np.arange(len(worth))
    if not worth.size:
        return [None] * len(worth)
    if once:
        from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # slow to import

        rows, columns = linear_sum_assignment(worth, maximize=True)
    else:
        columns = worth.argmax(axis=1)
    chosen: list[int | None] = [None] * len(worth)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if worth[row, column] > _APART:
            chosen[row] = column
    return chosen


def _same_captions(images: Sequence[DescribedImage], pool: Sequence[DescribedImage]) -> NDArray[np.bool_]:
    ours, theirs = (np.array([_plain(each) for each in some], dtype=object) for some in (images, pool))
    same: NDArray[np.bool_] = (ours[:, None] == theirs[None, :]) & (ours[:, None] != "")
    return same


def _plain(image: DescribedImage) -> str:
    return " ".join((image.caption or "").casefold().split()).rstrip(".")


def _file(texts: TextSet, image: DescribedImage) -> Path | None:
    return None if image.original is None else texts.folder / image.original


def _embedded(texts: TextSet, model: Clip, count: Any) -> tuple[NDArray[np.float64], dict[str, str]]:
    """A row an image, NaN where it cannot be read, and why."""
    rows: list[NDArray[np.float64] | None] = []
    problems: dict[str, str] = {}
    for image in texts.images:
        count(image.id)
        file = _file(texts, image)
        try:
            if file is None:
                raise ImageError("it has no image", kind="unsupported")
            rows.append(model.image(np.asarray(read_rgb(file)[0])))
        except ImageError as error:
            problems[image.id] = error.message
            rows.append(None)
    width = next((len(row) for row in rows if row is not None), 0)
    return np.array([np.full(width, np.nan) if row is None else row for row in rows]), problems
