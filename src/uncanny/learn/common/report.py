"""The page of a training run: what changed, curves, examples before and after, settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, View
from uncanny.eval.common.pages.plots import NARROW, WIDE, bare_axes, colour, pixel_axes, plot_twice
from uncanny.eval.common.parameters import ReportParameters
from uncanny.learn.common.result import LearnRun
from uncanny.learn.common.steps import StepRecord
from uncanny.protocol import protocols

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What every step has and what is not worth a curve.
_NO_CURVE: Final = frozenset({"step", "epoch", "memory_bytes", "num_tokens"})
_MOST_CURVES: Final = 9
_PANEL: Final = 150.0


def page_of(run: Path, parameters: ReportParameters) -> Path:
    """Write the page of a run, as `uncanny.report` does."""
    out = None if parameters.out is None else Path(parameters.out)
    return LearnRun(run).report(out, pictures=parameters.pictures)


def write_page(run: LearnRun, path: Path, *, pictures: PicturesMode) -> Path:
    """Write the page of `run` to `path` and return it. Raises OSError; it appears whole or not at all."""
    views = PageViews(path, pictures)
    examples = list(run.examples)
    shown = views.add(
        [
            View(
                Path(each["image"]).name,
                (Layer("image", Shot(run.path / each["image"], each.get("sha256"))),),
            )
            for each in examples
        ]
    )
    task = protocols()[str(run.manifest.task)]
    return write_rendered(
        score_page("uncanny.learn.common", ("learn.css",), {}),
        "learn.html.j2",
        path,
        title=task.title,
        run=run,
        lead=lead(run),
        tables=run.tables(),
        curves=plot_curves(run.steps),
        cards=list(zip(examples, shown, strict=True)),
        settings=settings_rows(run),
        page_views=views,
    )


def lead(run: LearnRun) -> str:
    """What came of the run in a sentence."""
    figures: Mapping[str, Mapping[str, Any]] = run.results.get("figures", {})
    first = next(((name, each) for name, each in figures.items() if each.get("after") is not None), None)
    if run.state != "finished":
        return f"Training is {run.state} after {len(run.steps):,} steps. The same command resumes it."
    if first is not None and first[1].get("before") is not None:
        before, after = first[1]["before"], first[1]["after"]
        if f"{before:.3g}" == f"{after:.3g}":
            return f"On held-out images, {first[0]} is {after:.3g}, as before training."
        return f"On held-out images, training changed {first[0]} from {before:.3g} to {after:.3g}."
    losses = [each.loss for each in run.steps if each.loss is not None]
    if not losses:
        return f"Trained for {len(run.steps):,} steps."
    return f"Training changed the loss from {losses[0]:.3g} to {losses[-1]:.3g} in {len(run.steps):,} steps."


def settings_rows(run: LearnRun) -> Sequence[tuple[str, str]]:
    """Parameters, digests and versions, by name, as the page lists them."""
    rows = [(name, str(value)) for name, value in run.manifest.plan.items() if name != "data"]
    rows += [(f"data: {name}", str(value)) for name, value in run.manifest.plan.get("data", {}).items()]
    return [*rows, *((name, str(value)) for name, value in run.manifest.libraries.items())]


def curves_of(steps: Sequence[StepRecord]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """The figures that steps have, by name: pairs of step and value, the usual ones first."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for each in steps:
        for name, value in each.model_dump().items():
            if name not in _NO_CURVE and isinstance(value, int | float) and not isinstance(value, bool):
                curves.setdefault(name, []).append((each.step, float(value)))
    first = list(StepRecord.model_fields)
    order = sorted(curves, key=lambda name: first.index(name) if name in first else len(first))
    return {name: curves[name] for name in order[:_MOST_CURVES]}


def plot_curves(steps: Sequence[StepRecord]) -> Markup:
    """A small plot per figure over the steps; nothing without two steps."""
    curves = curves_of(steps)
    if len(steps) < 2 or not curves:
        return Markup("")
    words = "; ".join(f"{name}: from {line[0][1]:.4g} to {line[-1][1]:.4g}" for name, line in curves.items())
    rows = -(-len(curves) // 3)
    return plot_twice(
        partial(_draw_curves, curves),
        (WIDE, rows * _PANEL),
        (NARROW, len(curves) * _PANEL),
        key="curves",
        title="Figures of each step",
        words=words,
    )


def _draw_curves(curves: Mapping[str, Sequence[tuple[int, float]]], figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    columns = 1 if width < 600 else 3
    rows = -(-len(curves) // columns)
    panel, tall = width / columns, height / rows
    for number, (name, line) in enumerate(curves.items()):
        row, column = divmod(number, columns)
        axes = bare_axes(
            pixel_axes(figure, column * panel + 56, row * tall + 26, panel - 72, tall - 54), grid="y"
        )
        axes.set_title(name.replace("_", " "), loc="left")
        axes.plot(*zip(*line, strict=True), color=colour("accent"), linewidth=1.6)
        axes.locator_params(axis="both", nbins=4)
        if _is_plain(line):
            axes.ticklabel_format(axis="y", style="plain", useOffset=False)
        else:
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    return {}


def _is_plain(line: Sequence[tuple[int, float]]) -> bool:
    most = max(abs(value) for _, value in line)
    return most == 0 or 0.01 <= most < 10_000


def relative(path: str | os.PathLike[str], run: Path) -> str:
    """How a file is named from the folder of a run."""
    return os.path.relpath(path, run)
