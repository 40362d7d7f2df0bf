"""The other side of `mcq_run`: inspect_ai asks the same questions. Runs under a Python that has inspect_ai.

`python inspect_mcq.py QUESTIONS.json BASE_URL CONCURRENCY LOG_FOLDER` prints its wall and CPU seconds and the
number of answers as JSON. Imports and reading the list are not timed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sample_of(question: dict[str, Any]) -> Any:
    from inspect_ai.dataset import Sample  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText  # type: ignore[import-not-found,unused-ignore]

    content = [ContentImage(image=question["image"], detail="high"), ContentText(text=question["text"])]
    turns = [ChatMessageSystem(content=question["system"]), ChatMessageUser(content=content)]
    return Sample(id=question["id"], input=turns, target="E")


def main() -> None:
    from inspect_ai import Task, eval  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.dataset import MemoryDataset  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.model import get_model  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.scorer import includes  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.solver import generate  # type: ignore[import-not-found,unused-ignore]

    file, base_url, at_once, logs = sys.argv[1:]
    samples = [sample_of(each) for each in json.loads(Path(file).read_text())]
    model = get_model("openai-api/fake/gpt-4o", base_url=base_url, api_key="any")
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    began, cpu = time.perf_counter(), cpu_s()
    (log,) = eval(
        task,
        model=model,
        temperature=0,
        max_tokens=2000,
        max_connections=int(at_once),
        max_samples=int(at_once),
        log_dir=logs,
        display="none",
    )
    spent = {"wall_s": time.perf_counter() - began, "cpu_s": cpu_s() - cpu}
    print(json.dumps({**spent, "answers": log.results.completed_samples if log.results else 0}))


if __name__ == "__main__":
    main()
