"""A stand-in for the package vllm, as far as `models/vllm/in_process.py` uses it.

The model's name decides: `broken` does not load, `dies` dies at its first step, `hangs` never finishes. An
answer has the text of the question, and in how large a batch it was made.
"""

from __future__ import annotations

import itertools
import threading
import time
from types import SimpleNamespace
from typing import Any, ClassVar

STEPS = 3


class SamplingParams:
    @staticmethod
    def from_optional(**fields: Any) -> SimpleNamespace:
        return SimpleNamespace(**fields)


class Engine:
    def __init__(self, model: str) -> None:
        self.model = model
        self.left: dict[str, list[Any]] = {}
        self.aborted: list[str] = []
        self.largest = 0
        self.shut = False
        self.engine_core = SimpleNamespace(shutdown=lambda: setattr(self, "shut", True))
        self.thread = threading.current_thread()

    def step(self) -> list[Any]:
        assert threading.current_thread() is self.thread
        time.sleep(0.005)
        if self.model == "dies":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.largest = max(self.largest, len(self.left))
        finished = []
        for number, state in list(self.left.items()):
            state[0] -= 1
            done = state[0] <= 0 and self.model != "hangs"
            finished.append(output(number, *state[1:], finished=done))
            if done:
                del self.left[number]
        return finished

    def abort_request(self, numbers: list[str]) -> None:
        self.aborted += numbers
        for number in numbers:
            self.left.pop(number, None)


def output(number: str, text: str, parameters: Any, *, finished: bool) -> Any:
    cut = parameters.max_tokens < 10
    answer = SimpleNamespace(text=text, token_ids=[1, 2, 3], finish_reason="length" if cut else "stop")
    return SimpleNamespace(
        request_id=number,
        finished=finished,
        outputs=[answer if finished else None],
        prompt_token_ids=list(range(7)),
        num_cached_tokens=4,
    )


class LLM:
    made: ClassVar[list[LLM]] = []

    def __init__(self, model: str, **options: Any) -> None:
        time.sleep(0.2)  # as long as it takes until all requests of a test are there
        if model == "broken":
            raise ValueError("No available memory for the cache blocks.")
        self.options = options
        self.llm_engine = Engine(model)
        self.model_config = SimpleNamespace(get_diff_sampling_param=lambda: {"temperature": 0.7, "top_k": 20})
        self.asked: list[tuple[Any, Any]] = []
        self._numbers = itertools.count()
        LLM.made.append(self)

    def enqueue_chat(self, messages: list[Any], parameters: Any, *, use_tqdm: bool) -> list[str]:
        assert not use_tqdm
        content = messages[-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        if text == "too long":
            raise ValueError("The prompt is longer than the maximum model length of 16")
        self.asked.append((messages, parameters))
        number = str(next(self._numbers))
        self.llm_engine.left[number] = [STEPS, text, parameters]
        return [f"{number}-b882738d"]
