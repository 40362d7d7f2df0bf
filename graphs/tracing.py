"""Keeps what our graphs do from LangSmith, whatever the environment or the program around them says.

LangGraph sends the state of every step, images included, to LangSmith as soon as one of its variables is set,
such as `LANGSMITH_TRACING`. Who sets it means programs of their own. `UNCANNY_LANGSMITH=1` asks us for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from uncanny.settings import settings

# Of LangChain's first tracing. Where one is set and no tracing is on, every graph raises RuntimeError.
_FIRST_TRACING: Final = ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER")


@contextmanager
def untraced() -> Iterator[None]:
    """Around a graph: it runs as if nobody watched, and what was on around it is on again afterwards.

    A graph that calls us, in a program built with LangGraph, hands its callbacks down to ours; they are left
    out, too. The environment stays as it is.
    """
    if settings().langsmith:
        yield
        return
    around, tracer, tracing_context = _langchain()
    before = around.get(), tracer.get()
    with tracing_context(enabled=False, parent=False):
        around.set(None)
        tracer.set(_nobody() if any(map(os.environ.get, _FIRST_TRACING)) else None)
        try:
            yield
        finally:
            # Not by tokens: a run that is given up may be closed from another context.
            around.set(before[0])
            tracer.set(before[1])


@cache
def _langchain() -> tuple[ContextVar[Any], ContextVar[Any], Callable[..., AbstractContextManager[None]]]:
    """What holds the callbacks of a graph around, a tracer, and whether tracing is on."""
    # Here: they take long to import, and the graph imports them anyway.
    from langchain_core.runnables.config import var_child_runnable_config
    from langchain_core.tracers.context import tracing_v2_callback_var
    from langsmith.run_helpers import tracing_context

    return var_child_runnable_config, tracing_v2_callback_var, tracing_context


@cache
def _nobody() -> object:
    """A tracer that hears nothing: with one, the variables of the first tracing raise nothing."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Nobody(BaseCallbackHandler):
        ignore_llm = ignore_retriever = ignore_chain = ignore_agent = True
        ignore_chat_model = ignore_retry = ignore_custom_event = True

    return Nobody()
