"""How often intervals of corrected figures hold the truth: nominal 95 %, with people, the model, and both.

A generator's images come from a large population whose figures are known. A model annotates a frame of them,
and people judge a sample of the frame, drawn at random or by the model's doubt. Seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np

from benchmarks.common import figure, sized
from uncanny.eval.metrics.corrected import Design, Fit, corrected, fit_mean, fit_product, fit_share
from uncanny.eval.metrics.corrected_difference import difference
from uncanny.eval.metrics.intervals import Bools, Codes, Floats, wilson_interval

REPETITIONS = sized(2_000, 3)
FRAME, POPULATION = 5_000, 400_000
SIZES = (50, 100, 200, 400)
Drawing = Literal["random", "active"]
DRAWINGS: tuple[Drawing, ...] = ("random", "active")
SHARES = (0.05, 0.2, 0.6)
LEVELS = (0.3, 0.6, 0.9)
# Anomalies an image: counts are negative binomial, so heavy in the tail that 5, 20 and 60 % have any.
RATES = (0.054, 0.28, 2.62)
SHAPE = 0.5
# Precision and recall on anomalies.
MODELS = ((0.3, 0.3), (0.6, 0.6), (0.9, 0.3), (0.9, 0.9))
# The implausibility of an anomaly, as in the published audit.
BETA = (4.2, 1.8)
FIGURES = ("af", "mai", "cap")
RESAMPLES = sized(1_000, 50)
PROMPTS, A_PROMPT = 1_250, 4

Rng = np.random.Generator


@dataclass(frozen=True)
class Population:
    """Of each image: figures by the model and by people, an entry a figure, and how much the model doubts."""

    model: Mapping[str, Floats]
    people: Mapping[str, Floats]
    doubt: Floats

    @property
    def truth(self) -> dict[str, float]:
        """The figures of the generator; CAP is a product of means."""
        means = {name: float(values.mean()) for name, values in self.people.items()}
        return means | ({"cap": means["mai"] * means["af"]} if "af" in means else {})


@dataclass
class Tally:
    """How often each interval held the truth, and the sum of their widths."""

    held: dict[str, int] = field(default_factory=dict)
    widths: dict[str, float] = field(default_factory=dict)
    repetitions: int = 0

    def add(self, name: str, ends: tuple[float | None, float | None], truth: float) -> None:
        low, high = ends
        assert low is not None
        assert high is not None
        self.held[name] = self.held.get(name, 0) + (low <= truth <= high)
        self.widths[name] = self.widths.get(name, 0.0) + high - low

    def coverage(self, name: str) -> float:
        """In percent."""
        return 100 * self.held[name] / self.repetitions

    def width(self, name: str) -> float:
        return self.widths[name] / self.repetitions


def shares(rng: Rng, share: float, precision: float, recall: float) -> Population | None:
    """Images with or without a fault; None where no model has this precision and recall."""
    alarms = share * recall * (1 - precision) / (precision * (1 - share))
    if alarms > 1:
        return None
    true = rng.random(POPULATION) < share
    said = rng.random(POPULATION) < np.where(true, recall, alarms)
    return Population(
        {"share": said.astype(np.float64)},
        {"share": true.astype(np.float64)},
        doubts(rng, true != said),
    )


def counts(rng: Rng, rate: float, precision: float, recall: float) -> Population:
    """Anomalies of an image, and their implausibility; the model misses some and adds others."""
    true = rng.poisson(rate * rng.gamma(SHAPE, 1 / SHAPE, POPULATION))
    found = rng.binomial(true, recall)
    alarms = rate * recall * (1 - precision) / precision
    added = rng.poisson(alarms * rng.gamma(SHAPE, 1 / SHAPE, POPULATION))
    right, missed, wrong = (unreal(rng, each) for each in (found, true - found, added))
    noise = 0.1 * rng.standard_normal(POPULATION) * np.sqrt(found)
    return Population(
        {"af": (found + added).astype(np.float64), "mai": np.clip(right + noise, 0, found) + wrong},
        {"af": true.astype(np.float64), "mai": right + missed},
        doubts(rng, true != found + added),
    )


def unreal(rng: Rng, number: Codes) -> Floats:
    """The summed implausibility of `number` anomalies of each image."""
    each = np.round(rng.beta(*BETA, number.sum()), 2)
    images = np.repeat(np.arange(len(number)), number)
    return np.bincount(images, weights=each, minlength=len(number)).astype(np.float64)


def doubts(rng: Rng, wrong: Bools) -> Floats:
    """0–1, more where the model is wrong."""
    return np.where(wrong, rng.beta(3, 2, len(wrong)), rng.beta(1.5, 4, len(wrong)))


def drawn(rng: Rng, drawing: Drawing, doubt: Floats, n: int) -> Design:
    """A sample of `n` images: simple random, or systematic, half uniform and half by doubt."""
    size = len(doubt)
    if drawing == "random":
        return Design(size, rng.choice(size, n, replace=False), np.full(n, n / size))
    chances = n * (0.5 / size + 0.5 * doubt / doubt.sum())
    while (over := chances > 1).any():  # drawn for certain; the others share what is left
        chances[over] = 1
        rest = chances < 1
        chances[rest] *= (n - (~rest).sum()) / chances[rest].sum()
    ends = np.cumsum(chances) * (n / chances.sum())
    judged = np.searchsorted(ends, rng.random() + np.arange(n)).clip(max=size - 1)
    return Design(size, judged, chances[judged])


def frames(rng: Rng) -> Iterator[slice]:
    """The images of a generator, again and again."""
    for _ in range(REPETITIONS):
        start = int(rng.integers(0, POPULATION - FRAME))
        yield slice(start, start + FRAME)


def measured(population: Population, drawing: Drawing, n: int, seed: int) -> dict[str, Tally]:
    """How the intervals of one cell did, by figure."""
    rng = np.random.default_rng([seed, n])
    truth, tallies = population.truth, {name: Tally() for name in population.truth}
    resampled = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n
    for images in frames(rng):
        design = drawn(rng, drawing, population.doubt[images], n)
        fits: dict[str, Fit] = {}
        for name, values in population.model.items():
            make = fit_share if name == "share" else fit_mean
            fits[name] = make(design, values[images], population.people[name][images][design.judged])
        if "af" in fits:
            fits["cap"] = fit_product(fits["mai"], fits["af"])
        for name, fit in fits.items():
            tally, result = tallies[name], corrected(fit)
            tally.repetitions += 1
            tally.add("corrected", (result.low, result.high), truth[name])
            tally.add("people", result.people_only.interval or (None, None), truth[name])
            if name == "cap":
                continue
            values = population.model[name][images]
            tally.add("model", model_only(values, is_share=name == "share"), truth[name])
            if name == "af" and fit.spreads and fit.value is not None:
                residuals = fit.spreads[0].residuals * design.weights * n
                tally.add("bootstrap", percentiles(fit.value + resampled @ residuals), truth[name])
    return tallies


def model_only(values: Floats, *, is_share: bool) -> tuple[float, float]:
    """What the model's figure has without people: the interval of that many images."""
    if is_share:
        return wilson_interval(float(values.sum()), len(values)) or (0.0, 0.0)
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return float(values.mean()) - half, float(values.mean()) + half


def percentiles(figures: Floats) -> tuple[float, float]:
    low, high = np.quantile(figures, [0.025, 0.975])
    return float(low), float(high)


def print_shares(lowest: dict[tuple[str, str], float]) -> None:
    print("\n| drawn | share | precision, recall | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("| --- | --- | --- |" + " --- |" * len(SIZES))
    rows = product(DRAWINGS, SHARES, LEVELS, LEVELS)
    for seed, (drawing, share, precision, recall) in enumerate(rows):
        population = shares(np.random.default_rng(seed), share, precision, recall)
        if population is None:
            continue
        cells = []
        for n in SIZES:
            tally = measured(population, drawing, n, seed)["share"]
            cells.append(
                f"{tally.coverage('corrected'):.1f}, {100 * tally.width('corrected'):.1f} "
                f"({tally.coverage('people'):.1f}, {100 * tally.width('people'):.1f}; "
                f"{tally.coverage('model'):.0f})"
            )
            keep_lowest(lowest, drawing, "share", tally)
        print(
            f"| {drawing} | {100 * share:.0f} % | {precision}, {recall} | {' | '.join(cells)} |", flush=True
        )


def print_counts(lowest: dict[tuple[str, str], float]) -> None:
    print("\n| drawn | AF | precision, recall | figure | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("| --- | --- | --- | --- |" + " --- |" * len(SIZES))
    for seed, (drawing, rate, model) in enumerate(product(DRAWINGS, RATES, MODELS)):
        population = counts(np.random.default_rng(seed), rate, *model)
        by_size = [measured(population, drawing, n, seed) for n in SIZES]
        truth = population.truth
        for name in FIGURES:
            cells = []
            for tallies in by_size:
                tally, unit = tallies[name], truth[name]
                extra = f"; {tally.coverage('bootstrap'):.1f}" if "bootstrap" in tally.held else ""
                cells.append(
                    f"{tally.coverage('corrected'):.1f}, {tally.width('corrected') / unit:.2f} "
                    f"({tally.coverage('people'):.1f}, {tally.width('people') / unit:.2f}{extra})"
                )
                keep_lowest(lowest, drawing, name, tally)
            print(
                f"| {drawing} | {rate} | {model[0]}, {model[1]} | {name} | {' | '.join(cells)} |", flush=True
            )


def keep_lowest(lowest: dict[tuple[str, str], float], drawing: str, name: str, tally: Tally) -> None:
    for kind in tally.held:
        if kind != "model":
            at = (f"{drawing}, {name}", kind)
            lowest[at] = min(lowest.get(at, 100.0), tally.coverage(kind))


def prompts(rng: Rng, share: float, likeness: float) -> tuple[Floats, Codes]:
    """Of each prompt the chance of a fault, and of each image its prompt.

    `likeness`, 0–1, is the correlation of two images of a prompt.
    """
    odds = (1 - likeness) / likeness
    chances = rng.beta(share * odds, (1 - share) * odds, PROMPTS)
    return chances, np.repeat(np.arange(PROMPTS), A_PROMPT)


def one_set(
    rng: Rng, chances: Floats, codes: Codes, judged: Codes, accuracy: float, *, first_prompt: int = 0
) -> Fit:
    """A generator given these prompts, several images each, of which people judged some."""
    true = rng.random(len(codes)) < chances[codes]
    said = np.where(rng.random(len(codes)) < accuracy, true, ~true)
    design = Design(len(codes), judged, np.full(len(judged), len(judged) / len(codes)), codes + first_prompt)
    return fit_share(design, said, true[judged])


def of_groups(share: float, n: int, *, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Coverage and width of a figure of whole prompts, and of differences of two generators that are alike.

    An interval of such a difference that leaves 0 out is one with p < 0.05.
    """
    rng = np.random.default_rng([seed, n])
    tallies = {name: Tally() for name in ("prompts", "unpaired", "paired")}
    for _ in range(REPETITIONS):
        chances, codes = prompts(rng, share, 0.3)
        clustered = np.flatnonzero(np.isin(codes, rng.choice(PROMPTS, n // A_PROMPT, replace=False)))
        fit = one_set(rng, chances, codes, clustered, 0.9)
        result = corrected(fit)
        tallies["prompts"].repetitions += 1
        tallies["prompts"].add("corrected", (result.low, result.high), share)
        judged = rng.choice(len(codes), n, replace=False)
        first, second = (one_set(rng, chances, codes, judged, 0.9) for _ in range(2))
        others, names = prompts(rng, share, 0.3)
        elsewhere = rng.choice(len(codes), n, replace=False)
        third = one_set(rng, others, names, elsewhere, 0.9, first_prompt=PROMPTS)
        for name, other in (("paired", second), ("unpaired", third)):
            apart = difference(first, other)
            tallies[name].repetitions += 1
            tallies[name].add("corrected", apart.interval or (None, None), 0.0)
    return {
        name: (tally.coverage("corrected"), 100 * tally.width("corrected")) for name, tally in tallies.items()
    }


def print_groups(lowest: dict[tuple[str, str], float]) -> None:
    print("\n| share | n | whole prompts judged | unpaired difference | paired difference |")
    print("| --- | --- | --- | --- | --- |")
    for share, n in product(SHARES, (100, 400)):
        figures = of_groups(share, n)
        cells = [f"{coverage:.1f}, {width:.1f}" for coverage, width in figures.values()]
        print(f"| {100 * share:.0f} % | {n} | {' | '.join(cells)} |", flush=True)
        for name, (coverage, _) in figures.items():
            lowest[name, "corrected"] = min(lowest.get((name, "corrected"), 100.0), coverage)


PARTS: dict[str, Callable[[dict[tuple[str, str], float]], None]] = {
    "shares": print_shares,
    "counts": print_counts,
    "groups": print_groups,
}


def main() -> None:
    lowest: dict[tuple[str, str], float] = {}
    print("coverage in percent, width (people only: coverage, width; of shares the model alone, of AF a")
    print(
        "percentile bootstrap of the corrected figure). Widths of shares in points, of others in the truth."
    )
    for part in PARTS.values():
        part(lowest)
    print()
    for (name, kind), coverage in lowest.items():
        figure(f"lowest coverage, {name}, {kind}", coverage, "%", 95, "nominal", wanted=None, higher=True)


if __name__ == "__main__":
    main()
