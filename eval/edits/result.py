"""What was measured of a set of edits: records as files have them, the set's cut-offs, tables, frames."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, get_args

import numpy as np
from pydantic import BeforeValidator

from uncanny.errors import UsageError
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.published import published
from uncanny.eval.common.tables.table import Cell, Column, Table
from uncanny.eval.edits.columns import (
    BINNED,
    FIGURES,
    PRESERVED,
    SCENE,
    EditsResult,
    counted_reasons,
    failures,
    places_of,
    reason_words,
)
from uncanny.eval.edits.data import EditSet, from_cell
from uncanny.eval.edits.parameters import MeasureConfig
from uncanny.eval.metrics import EDIT_PROTOCOLS, PROTOCOL, EditProtocol, post_edit
from uncanny.eval.metrics import edits as metrics
from uncanny.eval.metrics.edits import BINS, Bin, Cutoffs
from uncanny.eval.metrics.post_edit import SetShape, Shape
from uncanny.files import read_json
from uncanny.parameters import path_of
from uncanny.schema import Record
from uncanny.wording import counted, shown

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

Status = Literal["ok", "partial", "failed"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
PAGE: Final = "edits.html"
# Why a figure was not measured, where nobody wanted it.
NOT_ASKED: Final = "not asked for"


def _as_mapping(value: object) -> object:
    """Parquet gives mappings of any keys as pairs."""
    value = from_cell(value)
    return dict(value) if isinstance(value, list) else value


class EditMeasure(Record):
    """One edit as measured. A figure that was not measured is None, and `unmeasured` says why, by name.

    `status` is `failed` where nothing could be measured, then `problem` says why, and `partial` where
    something that was given or asked for could not. `bins` has the bin of every figure that has one. `notes`
    say what was done to the files to read them, and what is odd about them. `preserved_…` are of the area
    outside the mask. The keys of the pair follow, further ones too.
    """

    id: str
    mask_ratio: float | None = None
    ssim: float | None = None
    mse: float | None = None
    post_edit_ratio: float | None = None
    largest_component_ratio: float | None = None
    largest_centroid_distance: float | None = None
    components: int | None = None
    clusters: int | None = None
    shape: Shape | None = None
    lpips: float | None = None
    dreamsim: float | None = None
    text_similarity: float | None = None
    bins: Annotated[Mapping[str, Bin | None], BeforeValidator(from_cell)] = {}
    status: Status = "ok"
    problem: str | None = None
    unmeasured: Annotated[Mapping[str, str], BeforeValidator(_as_mapping)] = {}
    notes: Annotated[tuple[str, ...], BeforeValidator(from_cell)] = ()
    all_black: bool | None = None
    protocol: EditProtocol = PROTOCOL
    width: int | None = None
    height: int | None = None
    preserved_psnr: float | None = None
    preserved_mse: float | None = None
    preserved_mae: float | None = None
    preserved_ssim: float | None = None
    preserved_lpips: float | None = None
    scene_diversity: float | None = None
    scene_complexity: float | None = None

    def figure(self, name: str) -> float | None:
        """A figure by the name of its column."""
        value: float | None = getattr(self, name)
        return value

    @property
    def counts(self) -> bool:
        """Whether it has a part in what is typical of the set: measured, and not all black."""
        return self.status != "failed" and not self.all_black


@dataclass(frozen=True, slots=True)
class SetCutoffs(JsonFields):
    """What is typical of a set, from which bins and shapes follow: to be taken from one set to another."""

    json_keys: ClassVar = "protocol bins clusters components distance"

    bins: Mapping[str, Cutoffs] = field(default_factory=dict)
    clusters: float | None = None
    distance: float | None = None
    components: float | None = None
    protocol: EditProtocol = PROTOCOL

    @classmethod
    def read(cls, content: object) -> SetCutoffs:
        """From what `to_json` gives, the JSON of a measured set, which has it under `cutoffs`, or its file.

        Raises UsageError.
        """
        if isinstance(content, SetCutoffs):
            return content
        if isinstance(content, str | os.PathLike):
            content = read_json(Path(content), remedy="Pass the JSON of a measured set.")
        if isinstance(content, Mapping) and isinstance(content.get("cutoffs"), Mapping):
            content = content["cutoffs"]
        try:
            assert isinstance(content, Mapping)
            pairs = {str(name): Cutoffs(*map(float, ends)) for name, ends in content["bins"].items()}
            numbers = [content.get(name) for name in ("clusters", "distance", "components")]
            clusters, distance, components = (None if each is None else float(each) for each in numbers)
        except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"Invalid cut-offs: {shown(content)}",
                remedy='Give {"bins": {"ssim": [0.5, 0.9]}, "clusters": 1.5, "distance": 40} or the JSON of '
                "a measured set.",
            ) from error
        unknown = sorted(set(pairs) - {*BINNED, *SCENE})
        if unknown or any(not ends.low <= ends.high for ends in pairs.values()):
            what = f"there is no metric {unknown[0]!r}" if unknown else "a lower end is above its upper end"
            raise UsageError(f"Cut-offs: {what}", remedy=f"Metrics are {', '.join((*BINNED, *SCENE))}.")
        protocol = content.get("protocol", PROTOCOL)
        if protocol not in EDIT_PROTOCOLS:
            raise UsageError(
                f"Cut-offs: protocol is {shown(protocol)}", remedy=f"Give {', '.join(EDIT_PROTOCOLS)}."
            )
        return cls(pairs, clusters, distance, components, protocol)


def of_set(measures: Sequence[EditMeasure], parameters: MeasureConfig, given: SetCutoffs) -> SetCutoffs:
    """The set's own cut-offs, but for those given. Raises UsageError for cut-offs of another protocol."""
    if (given.bins or given.clusters is not None) and given.protocol != parameters.protocol:
        raise UsageError(
            f"The cut-offs are for the protocol {given.protocol}, but these edits used {parameters.protocol}",
            remedy="Measure both sets with one protocol; in cut-offs written by hand, set `protocol`.",
        )
    typical = [each for each in measures if each.counts]
    bins: dict[str, Cutoffs] = {}
    for name in (*BINNED, *SCENE):
        values = [each.figure(name) for each in typical]
        own = (
            metrics.deviation_cutoffs(values, deviations=parameters.deviations)
            if name in SCENE
            else metrics.percentile_cutoffs(
                values, low=parameters.low_percentile, high=parameters.high_percentile
            )
        )
        if (ends := given.bins.get(name, own)) is not None:
            bins[name] = ends
    placed = [each for each in typical if each.clusters is not None]
    own_shape = post_edit.set_shape(
        [each.clusters or 0 for each in placed],
        [each.components or 0 for each in placed],
        [each.largest_centroid_distance or 0.0 for each in placed],
    )
    return SetCutoffs(
        bins,
        own_shape.clusters if given.clusters is None else given.clusters,
        own_shape.distance if given.distance is None else given.distance,
        own_shape.components if given.components is None else given.components,
        parameters.protocol,
    )


def with_set(measure: EditMeasure, cutoffs: SetCutoffs, parameters: MeasureConfig) -> EditMeasure:
    """The same record with what depends on the set: bins and shape."""
    bins = {
        name: metrics.bin_of(measure.figure(name), ends)
        for name, ends in cutoffs.bins.items()
        if measure.figure(name) is not None
    }
    shape: Shape | None = None
    unmeasured = dict(measure.unmeasured)
    if measure.clusters is not None:
        rule = post_edit.shape_rule(
            SetShape(cutoffs.clusters, cutoffs.components, cutoffs.distance),
            (measure.width or 0, measure.height or 0),
            protocol=parameters.protocol,
            ratio=parameters.diffused_ratio,
        )
        shape = post_edit.edit_shape(
            measure.largest_component_ratio or 0.0,
            (measure.clusters if parameters.protocol == "uncanny" else measure.components) or 0,
            measure.largest_centroid_distance or 0.0,
            rule,
        )
        if shape is None:
            unmeasured["shape"] = "no part of the image changed enough"
    return measure.model_copy(update={"bins": bins, "shape": shape, "unmeasured": unmeasured})


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredEdits(EditsResult[EditMeasure]):
    """All edits of a set as measured, in the order given, and what is typical of it.

    `described` says which perceptual measures were taken, with their weights. `files` are the edits' files,
    in the same order.
    """

    edits: tuple[EditMeasure, ...]
    files: EditSet
    cutoffs: SetCutoffs
    parameters: MeasureConfig
    described: Mapping[str, Any] = field(default_factory=dict)
    published: bool = False

    @property
    def statuses(self) -> Mapping[Status, int]:
        counts = Counter(each.status for each in self.edits)
        return {status: counts[status] for status in STATUSES}

    def records(self, folder: Path | None = None) -> Iterator[dict[str, Any]]:
        """A record an edit, the contract's keys first; paths from `folder` on, absolute without one."""
        for measure, files in zip(self.edits, self.files, strict=True):
            record = measure.model_dump(mode="json")
            extra = {**files.pair.model_dump(mode="json", exclude_none=True), **places_of(files, folder)}
            yield {**record, **{key: value for key, value in extra.items() if key not in record}}

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits measure --json` writes: the set, without a line an edit."""
        counted_edits = [each for each in self.edits if each.counts]
        return {
            "edits": len(self.edits),
            "statuses": dict(self.statuses),
            "all_black": sum(bool(each.all_black) for each in self.edits),
            "figures": {name: self.spread(name) for name in (*BINNED, *PRESERVED, *SCENE, *_COUNTS)},
            "shapes": Counter(each.shape or "unmeasured" for each in counted_edits),
            "bins": {
                name: {each: sum(edit.bins.get(name) == each for edit in self.edits) for each in BINS}
                for name in self.cutoffs.bins
            },
            "cutoffs": self.cutoffs.to_json(),
            "unmeasured": self.reasons(),
            "parameters": self.parameters.model_dump(),
            "perceptual": dict(self.described),
            **({"published": published("inpainting_scores")} if self.published else {}),
        }

    def spread(self, name: str) -> dict[str, float | int | None]:
        """How many edits a figure was measured of, and how it is spread; all-black edits are left out."""
        values = [value for each in self.edits if each.counts and (value := each.figure(name)) is not None]
        if not values:
            return {"n": 0, "mean": None, **dict.fromkeys(_QUANTILES)}
        quantiles = np.percentile(np.array(values, dtype=np.float64), list(_QUANTILES.values()))
        return {
            "n": len(values),
            "mean": float(np.mean(values)),
            **dict(zip(_QUANTILES, quantiles.tolist(), strict=True)),
        }

    def reasons(self) -> dict[str, dict[str, int]]:
        """Why figures were not measured, by figure, with how often; `pair` where nothing was."""
        return counted_reasons(
            {"pair": each.problem or "unknown"} if each.status == "failed" else each.unmeasured
            for each in self.edits
        )

    @property
    def not_asked(self) -> tuple[str, ...]:
        """The figures that were not asked for of any edit."""
        return tuple(name for name, reasons in self.reasons().items() if list(reasons) == [NOT_ASKED])

    def tables(self) -> tuple[Table, ...]:
        rows: list[tuple[Cell, ...]] = []
        for name in (*BINNED, "largest_centroid_distance", "components", "clusters", *PRESERVED, *SCENE):
            spread = self.spread(name)
            if spread["n"] or name in FIGURES:
                rows.append((name, spread["n"], *(spread[key] for key in ("mean", *_QUANTILES))))
        figures = (Column(head, digits=4, significant=True) for head in HEADS[2:])
        tables = [Table((*HEADS[:2], *figures), tuple(rows))]
        if self.published and any(each.preserved_mse is not None for each in self.edits):
            tables.append(self._fidelity())
        last = tables.pop()
        return (*tables, Table(last.columns, last.rows, last.title, tuple(self._notes())))

    def _fidelity(self) -> Table:
        """The area outside the masks beside the published figures of two sets."""
        papers = published("inpainting_scores")["fidelity_fully_regenerated"]
        rows = []
        for words, name, key, times in _FIDELITY:
            mean = self.spread(name)["mean"]
            ours = None if mean is None else times * mean
            rows.append((words, ours, *(paper[key] for paper in papers)))
        heads = ("these", *(f"{paper['dataset']} (published)" for paper in papers))
        figures = (Column(head, digits=4, significant=True) for head in heads)
        return Table(("outside the mask", *figures), tuple(rows))

    def _notes(self) -> Iterator[str]:
        shapes = Counter(each.shape for each in self.edits if each.counts)
        yield (
            f"{counted(len(self.edits), 'edit')}: "
            + ", ".join(f"{count:,} {status}" for status, count in self.statuses.items() if count)
            + f". Shape: {shapes['localized']:,} localized, {shapes['diffused']:,} diffused."
        )
        black = sum(bool(each.all_black) for each in self.edits)
        if black:
            yield f"{counted(black, 'edit')} all black: measured, but not counted in figures and cut-offs."
        if self.not_asked:
            yield f"Not asked for: {', '.join(self.not_asked)}."
        for name, reasons in self.reasons().items():
            if name == "pair" or name in self.not_asked:
                continue
            yield f"Not measured, {name}: {reason_words(reasons)}."
        failed = [each for each in self.edits if each.status == "failed"]
        yield from failures([f"Failed: {each.id}: {each.problem}" for each in failed])
        if self.published:
            yield FIDELITY_CAVEAT

    def report(
        self,
        out: str | os.PathLike[str],
        *,
        title: str | None = None,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the page to `out` and return its path: figures, bins, and examples with their difference.

        Full-size `pictures` are linked from their files, or embedded. Raises OSError where it cannot be
        written.
        """
        from uncanny.eval.edits.report import write_edits_page

        return write_edits_page(self, path_of("out", out), title=title, pictures=pictures)


HEADS = ("figure", "edits", "mean", "least", "25 %", "median", "75 %", "most")
_COUNTS = ("largest_centroid_distance", "components", "clusters")
_QUANTILES = {"min": 0.0, "p25": 25.0, "median": 50.0, "p75": 75.0, "max": 100.0}
_FIDELITY = (
    ("PSNR, dB", "preserved_psnr", "psnr", 1),
    ("LPIPS × 1000", "preserved_lpips", "lpips_x1000", 1000),
    ("MSE × 1000", "preserved_mse", "mse_x1000", 1000),
    ("MAE × 1000", "preserved_mae", "mae_x1000", 1000),
    ("SSIM", "preserved_ssim", "ssim", 1),
)
FIDELITY_CAVEAT = (
    "Published figures are of fully regenerated images of the authors' own sets, and their SSIM does not say "
    "its window: for orientation only."
)
