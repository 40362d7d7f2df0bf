"""An audit as the JSON of `audit --json`.

Beside the keys of the format: in a generator `unfinished`, `anomalies`, `flawless`, `prompts`, `severities`,
`names`, `worst` and how its annotations were made; `differences`, the neighbours that are `alike`, `mixed`,
`notices`, how intervals were computed, and, where asked for, `against`, `agreement` and `published`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from uncanny.eval.audit.result import (
    FIGURES,
    RANKED,
    Agreement,
    AuditResult,
    Board,
    Difference,
    GeneratorScore,
    Provenance,
    PublishedTable,
    WorstImage,
)


def audit_json(result: AuditResult) -> dict[str, Any]:
    """Everything but the paths of pictures; what was not measured is None."""
    held = {
        **_board(result.board),
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


def _board(board: Board) -> dict[str, Any]:
    return {
        "generators": {name: _generator(score) for name, score in board.generators.items()},
        "order": list(board.order),
        "alike": [[one.first, one.second] for one in board.alike],
        "differences": [_difference(one) for one in board.differences],
        "mixed": [
            {"aspect": one.aspect, "what": one.what, "values": _lists(dict(one.values))}
            for one in board.mixed
        ],
        "notices": list(board.notices),
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
