"""Scores made for the tests of the semantic page, and how they read the page."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tests.eval.common.page_text import Page
from uncanny import semantic
from uncanny.eval.common.anomalies.read import AnomalySet, ScoredAnomaly, ScoredImage
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.similarity.base import Matrix, TextPairs
from uncanny.eval.semantic.report.page import write_semantic_page
from uncanny.eval.semantic.report.rows import amount, ends
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.schema import Status

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
LONG = "a-host-with-a-long-name/" + "a-model-whose-name-goes-on-and-on-" * 3
SCRIPTS = "七本の指/とても長い名前とても長い名前"
ARABIC = "نموذج عربي طويل"
MADE = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class ByKind:
    """Texts that begin with the same word are close, others are not; the rest is drawn from the texts."""

    compares_with_published = True

    def __init__(self, backbone: str = "distilbert-base-uncased") -> None:
        self.described: dict[str, Any] = {
            "measure": "bertscore",
            "backbone": backbone,
            "num_layers": 5,
            "versions": {"bert-score": "0.3.13"},
        }

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        for pairs in texts:
            yield np.array(
                [[_close(predicted, true) for true in pairs.true] for predicted in pairs.predicted]
            )


def _close(predicted: str, true: str) -> float:
    if not predicted.strip() or not true.strip():
        return 0.0
    drawn = int.from_bytes(hashlib.sha256(f"{predicted}|{true}".encode()).digest()[:4], "big") / 2**32
    return (0.85 if predicted.split()[0] == true.split()[0] else 0.66) + 0.12 * (drawn - 0.5)


def made_truth(count: int = 24) -> AnomalySet:
    """Three of four images are generated, with one to four anomalies each; the others have none."""
    dice = random.Random(0)
    return AnomalySet(
        "truth.jsonl",
        tuple(
            ScoredImage(
                f"set/{number:03}.png",
                tuple(
                    ScoredAnomaly(
                        f"Flaw {place}", f"kind{number}.{place} is seen.", f"why{number}.{place}.", 20
                    )
                    for place in range(0 if number % 4 == 3 else dice.randrange(1, 5))
                ),
                "real" if number % 4 == 3 else "generated",
                has_source=True,
            )
            for number in range(count)
        ),
    )


def made_predictions(truth: AnomalySet, skill: float, *, source: bool = True, text: str = "") -> AnomalySet:
    """Finds each anomaly with the chance `skill`, makes some up, misses two images, fails on one."""
    dice = random.Random(skill)
    images = []
    for place, image in enumerate(truth.images[2:]):
        anomalies = [
            ScoredAnomaly(f"Seen {text}", f"{true.phenomenon.split()[0]} so. {text}", true.reasoning, 30)
            for true in image.anomalies
            if dice.random() < skill
        ]
        anomalies += [ScoredAnomaly("Made up", f"nothing{text}", "no reason", None)] * dice.randrange(2)
        answer = dice.choice([image.source, image.source, "real", None]) if source else None
        status: Status = "failed" if place == 4 else "ok"
        images.append(ScoredImage(image.image, tuple(anomalies), answer, has_source=source, status=status))
    images.append(ScoredImage(f"elsewhere{text}.png", (), has_source=source))
    return AnomalySet(f"runs/{text or 'a'}", tuple(images), 3, 1, (f"set/{text}.png",))


def made_score(
    sets: Mapping[str, AnomalySet], truth: AnomalySet | None = None, measure: Any = None, **more: Any
) -> SemanticScore:
    options: dict[str, Any] = {"similarity": measure or ByKind(), "resamples": 40} | more
    return semantic.score(sets, truth=truth or made_truth(), **options)


def twelve_models() -> SemanticScore:
    truth = made_truth()
    names = [*(f"provider/model-{place}" for place in range(8)), HOSTILE, LONG, SCRIPTS, ARABIC]
    texts = {HOSTILE: HOSTILE, LONG: "long words " * 200, SCRIPTS: SCRIPTS, ARABIC: ARABIC}
    return made_score(
        {
            name: made_predictions(truth, 0.2 + 0.06 * place, text=texts.get(name, ""))
            for place, name in enumerate(names)
        },
        truth,
    )


def page_of(folder: Path, score: SemanticScore, *, published: bool = False) -> Page:
    score = replace(score, published=published)
    return Page(write_semantic_page(score, folder / "semantic.html", made=MADE).read_text("utf-8"))


def cells_of(page: Page, label: str) -> list[list[str]]:
    """The rows of the table that is called `label`, as the words of their cells."""
    table = re.search(rf'aria-label="{re.escape(label)}"[^>]*><table.*?</table>', page.html, re.DOTALL)
    assert table is not None, label
    body = table[0].split("</thead>")[1]
    return [
        [Page(cell).text for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    ]


def shown(estimate: Estimate) -> str:
    return " ".join(filter(None, [amount(estimate.value), ends(estimate)]))


def section(page: Page, name: str) -> str:
    return page.html.split(f'id="h-{name}"')[1].split("</section>")[0]
