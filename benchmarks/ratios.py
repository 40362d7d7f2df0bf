"""Small ratios of our CPU time to that of a peer in the same run, which CI compares with recorded ones.

`python -m benchmarks --ratios` measures them, and fails where one is worse than the recorded one by more than
a third, twice in a row. `--record` writes `ratios.json`. Ours and the peer take turns, and the ratio is the
median over the rounds: other work on the machine slows down both.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from benchmarks.common import fake_server, figure, noise_png, write_folder
from benchmarks.table import machine

RECORDED = Path(__file__).with_name("ratios.json")
ROUNDS = 5
# A ratio may be worse than the recorded one by a third.
WORSE = 4 / 3

Work = Callable[[], object]
Both = tuple[Work, Work]
Sides = Iterator[Both]


@contextmanager
def mcq_run() -> Sides:
    """`mcq run` beside a bare loop on the OpenAI SDK with ready data URLs."""
    from benchmarks.calls import mcq_run as full

    os.environ["OPENAI_API_KEY"] = "any"
    with fake_server("--latency-ms", "20") as url, tempfile.TemporaryDirectory() as tmp:
        items, runs = full.make_items(Path(tmp), 100), count()
        asked = full.questions_of(items)
        urls = full.data_urls(asked)
        yield (
            lambda: full.ours(url, items, Path(tmp) / f"run-{next(runs)}", 64),
            lambda: asyncio.run(full.bare(url, asked, urls, 64)),
        )


@contextmanager
def annotate() -> Sides:
    """An annotation run, `packed`, beside a bare loop with the same mix of calls."""
    from benchmarks.calls import mcq_run, overhead

    os.environ["OPENAI_API_KEY"] = "any"
    options = ("--latency-ms", "20", "--objects", str(overhead.OBJECTS))
    with fake_server(*options) as url, tempfile.TemporaryDirectory() as tmp:
        folder, runs = Path(tmp) / "images", count()
        folder.mkdir()
        paths = [folder / f"{number}.png" for number in range(3)]
        for number, path in enumerate(paths):
            path.write_bytes(noise_png(number, overhead.SIDE))

        def ours() -> tuple[float, list[bool]]:
            return overhead.whole_run(url, folder, Path(tmp) / f"run-{next(runs)}", "packed")

        calls = ours()[1]
        urls = list(mcq_run.data_urls([{"image": str(path)} for path in paths]).values())
        yield ours, lambda: asyncio.run(overhead.bare_loop(url, urls, calls))


@contextmanager
def orchestration() -> Sides:
    """20 images, schedule `paper`, when models cost nothing, beside fixed work in plain Python."""
    from benchmarks.calls import orchestration as full

    with tempfile.TemporaryDirectory() as tmp:
        write_folder(Path(tmp) / "images", 20, None)
        runs = count()

        def ours() -> float:
            run = Path(tmp) / f"run-{next(runs)}"
            return full.run(Path(tmp) / "images", run, "paper", cache=False, images=20)

        yield ours, _plain_python


def _plain_python() -> int:
    """Never change it: recorded ratios are to this work."""
    record = {f"key {number}": {"text": "a word " * 20, "box": [number] * 4} for number in range(50)}
    size = 0
    for _ in range(400):
        read = json.loads(json.dumps(record))
        size += len(sorted(f"{key} {each['text'].upper()} {sum(each['box'])}" for key, each in read.items()))
    return size


@contextmanager
def mcq_scoring() -> Sides:
    """Answers of two models scored, beside accuracies with 1,000 resamples in plain NumPy."""
    import numpy as np

    from benchmarks.scores import mcq_scoring as full
    from uncanny.eval.mcq.score.score import score

    items = full.release_like()
    answers = full.drawn_answers(items, 2)

    def plain() -> Any:
        right_of: dict[tuple[str, str], str] = {
            (item.id, question): getattr(item, question).answer
            for item in items
            for question in item.questions()
        }
        place = {item.id: number for number, item in enumerate(items)}
        sums = np.zeros((2, 4, 2, len(items)))
        for each in answers:
            at = int(str(each.model)[-1]), int(each.question[-1]) - 1
            sums[(*at, 0, place[each.id])] += each.raw == right_of[each.id, each.question]
            sums[(*at, 1, place[each.id])] += 1
        rng = np.random.default_rng(0)
        drawn = rng.multinomial(len(items), np.full(len(items), 1 / len(items)), 1_000).astype(float)
        hits, asked = (drawn @ sums[:, :, side].reshape(8, -1).T for side in (0, 1))
        return np.quantile(hits / asked, [0.025, 0.975], axis=0)

    yield lambda: score(items, answers), plain


@contextmanager
def compare() -> Sides:
    """chrF of all pairs of texts of 5 images, beside sacrebleu pair by pair."""
    from benchmarks.scores import compare as full
    from uncanny.eval.common.similarity.base import mutual, open_measure

    with tempfile.TemporaryDirectory() as tmp:
        files = [Path(tmp) / f"{name}.jsonl" for name in "ab"]
        full.write(files, 5)
        pairs, settings = full.paired(files)
        fields = [full.texts(pair) for pair in pairs]
        yield (
            lambda: list(mutual(open_measure("chrf"), fields, 0.5, settings.similarity)),
            lambda: [full.naive(each) for each in fields],
        )


@contextmanager
def stress() -> Sides:
    """A stress table of 5,000 rows, beside a plain pandas groupby."""
    from benchmarks.scores import stress as full

    with tempfile.TemporaryDirectory() as tmp:
        full.write_tables(Path(tmp), 3_500, 1_500)
        yield lambda: full.ours(Path(tmp)), lambda: full.plain(Path(tmp))


@contextmanager
def edits() -> Sides:
    """An edit of 1,024² measured, beside the same by scikit-image and SciPy."""
    from benchmarks.scores import edits as full
    from uncanny.edits import load

    with tempfile.TemporaryDirectory() as tmp:
        (files,) = load(full.written(Path(tmp) / "pairs", "pasted back", 1))
        yield lambda: full.uncanny_way(files), lambda: full.plain_way(files)


@contextmanager
def masks() -> Sides:
    """Pixel counts of masks of 1,024², beside NumPy's `count_nonzero`."""
    from benchmarks.scores import artifacts as full
    from uncanny.eval.metrics.regions import pixel_counts

    pairs = full.made_pairs(20)
    yield (
        lambda: [pixel_counts(*pair) for pair in pairs * 5],
        lambda: [full.counting_numpy(*pair) for pair in pairs * 5],
    )


@contextmanager
def records() -> Sides:
    """1,500 records read and validated, beside `orjson.loads` of the same lines."""
    from benchmarks.scale.review import make_annotations
    from uncanny.eval.common.inputs.runs import stream_annotations

    with tempfile.TemporaryDirectory() as tmp:
        make_annotations(Path(tmp), 1_500)
        file = Path(tmp) / "annotations.jsonl"

        def plain() -> None:
            for _ in range(5):
                for line in file.read_bytes().splitlines():
                    orjson.loads(line)

        yield lambda: sum(1 for _ in stream_annotations(file)), plain


@contextmanager
def _beside_python(*arguments: str) -> Sides:
    """Commands whose modules are compiled once, also where none may be kept beside their sources."""
    with tempfile.TemporaryDirectory() as kept:
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": kept}

        def python(*these: str) -> Work:
            command = [sys.executable, *these]
            return lambda: subprocess.run(command, check=True, capture_output=True, env=env)

        yield python(*arguments), python("-c", "pass")


def importing() -> AbstractContextManager[Both]:
    """`import uncanny`, beside `python -c pass`."""
    return _beside_python("-c", "import uncanny")


def help_text() -> AbstractContextManager[Both]:
    """`uncanny annotate --help`, beside `python -c pass`."""
    return _beside_python("-m", "uncanny", "annotate", "--help")


RATIOS: dict[str, Callable[[], AbstractContextManager[Both]]] = {
    each.__name__: each
    for each in (
        importing,
        help_text,
        orchestration,
        mcq_run,
        annotate,
        mcq_scoring,
        records,
        compare,
        stress,
        edits,
        masks,
    )
}


def main(name: str, *, record: bool = False, recorded: Path = RECORDED) -> None:
    """Measure one ratio, and record it or state it beside the recorded one."""
    measure = RATIOS[name]
    what = (measure.__doc__ or "").splitlines()[0].removesuffix(".")
    known: dict[str, float] = json.loads(recorded.read_bytes())["ratios"] if recorded.exists() else {}
    with measure() as (ours, peer):
        if record:
            ratio = measured(ours, peer)
            known[name] = round(ratio, 3)
            content = {"machine": machine(), "ratios": known}
            recorded.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        else:
            ratio = compared(lambda: measured(ours, peer), known[name])
    figure(what, ratio, "", known[name], "recorded", wanted=WORSE)


def compared(measure: Callable[[], float], recorded: float) -> float:
    """A measured ratio; one that is too much worse than the recorded one is measured again."""
    ratio = measure()
    return measure() if ratio > WORSE * recorded else ratio


def measured(ours: Work, peer: Work, rounds: int = ROUNDS) -> float:
    """The median ratio of our CPU time to the peer's, over rounds in which both take turns."""
    ours(), peer()
    return statistics.median(_spent(ours) / _spent(peer) for _ in range(rounds))


def _spent(work: Work) -> float:
    gc.collect()
    before = _cpu()
    work()
    return _cpu() - before


def _cpu() -> float:
    """CPU seconds of this process and of those it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
