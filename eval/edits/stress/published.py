"""Published figures of detectors of edits, as tables to stand below one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uncanny.eval.common.published import EDITS_CAVEAT, published
from uncanny.eval.common.tables.table import Cell, Column, Table

_IOU_ACC = ("iou", "acc")
_FILLS = ("sp", "fr")


def published_tables() -> tuple[Table, ...]:
    """Semi-Truths, tables 3 and 4, then SAGI, supplementary, tables 4, 5, 6 and 9, by SAGI's groupings."""
    return (_semi_truths(), _directional(), *_sagi())


def published_json() -> dict[str, Any]:
    """The tables of Semi-Truths, and under `sagi` those of SAGI."""
    return {**published("edit_scores"), "sagi": published("inpainting_scores")}


def _semi_truths() -> Table:
    rows = tuple(
        (
            each["model"],
            *(
                each[f"{name}_{which}"]
                for name in ("precision", "recall")
                for which in ("all", "real", "fake")
            ),
        )
        for each in published("edit_scores")["detectors"]
    )
    heads = (f"{name}.{which}" for name in ("prec", "rec") for which in ("", " real", " gen."))
    columns: tuple[str | Column, ...] = (
        "published",
        *(Column(head, digits=2, better="higher") for head in heads),
    )
    return Table(columns, rows, None, (EDITS_CAVEAT,))


def _directional() -> Table:
    rows = tuple(
        (f"{each['model']}: {each['label']} → {each['edited_label']}", each["edits"], each["recall"])
        for each in published("edit_scores")["directional"]
    )
    columns: tuple[str | Column, ...] = (
        "published",
        "edits",
        Column("recall", digits=2, better="higher"),
    )
    return Table(columns, rows, "Semi-Truths, table 4: directional edits")


def _sagi() -> Iterator[Table]:
    tables = published("inpainting_scores")
    single = ("single", "double")
    yield _table(
        "SAGI, table 4: one inpainted object or two (single-double)",
        [f"{name} {each}" for name in ("IoU", "accuracy") for each in single],
        [
            (_name(row), *(row[name][each] for name in _IOU_ACC for each in single))
            for row in tables["by_times"]
        ],
    )
    groups = {"pixel_auc": ("id", "ood", "sp", "fr"), "auc": ("id", "ood")}
    yield _table(
        "SAGI, table 5: AUC in and out of domain (id-ood), spliced and regenerated (sp-fr)",
        [
            f"{'pixel ' if name == 'pixel_auc' else ''}AUC {each.upper() if each in _FILLS else each}"
            for name in groups
            for each in groups[name]
        ],
        [
            (_name(row), *(row[name][each] for name in groups for each in groups[name]))
            for row in tables["by_domain_and_fill"]
        ],
    )
    for name in _IOU_ACC:
        yield _table(
            f"SAGI, table 6: {'IoU' if name == 'iou' else 'accuracy'} by inpainting model (model+sp-fr)",
            [
                f"{fill.upper()} {model}"
                for fill in ("fr", "sp")
                for model in tables["by_pipeline_and_fill"][0][fill]
            ],
            [
                (_name(row), *(cell[name] for fill in ("fr", "sp") for cell in row[fill].values()))
                for row in tables["by_pipeline_and_fill"]
            ],
        )
    labels = ("deceiving", "non_deceiving")
    yield _table(
        "SAGI, table 9: by UGDA label (ugda+sp-fr)",
        [
            f"{'IoU' if name == 'iou' else 'acc.'} {label.replace('_', '-')} {fill.upper()}"
            for name in ("acc", "iou")
            for label in labels
            for fill in _FILLS
        ],
        [
            (
                _name(row),
                *(
                    row[name][label][fill]
                    for name in ("acc", "iou")
                    for label in labels
                    for fill in _FILLS
                ),
            )
            for row in tables["by_label_and_fill"]
        ],
    )


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['model']} (retrained)" if row["retrained"] else str(row["model"])


def _table(title: str, heads: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    columns: tuple[str | Column, ...] = (
        "published",
        *(Column(head, digits=1, better="higher") for head in heads),
    )
    return Table(columns, tuple(rows), title)
