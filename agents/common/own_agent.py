"""An agent of a user's own, asked beside those of the packed schedule.

What it takes is a name and a prompt. The integrator gets its findings with all others, checks them against
the picture and merges what is the same; they stand in records under the agent's name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from uncanny.agents.common.annotate_context import BatchState, Context, ScanState, Sighting
from uncanny.agents.common.batches import look_at_parts
from uncanny.agents.scene_scanner import look_at_image
from uncanny.agents.steps import LOOKS, ROLES, ListStep, Per
from uncanny.answers.packed import FAULTS, PART_FAULTS, Fault
from uncanny.errors import UsageError
from uncanny.prompts import Prompt, make_prompt
from uncanny.wording import option, shown

LookAtImage = Callable[[ScanState, Context], Awaitable[Sighting]]
LookAtBatch = Callable[[BatchState, Context], Awaitable[Sighting]]
OwnPer = Literal["image", "batch"]

# As uncanny's own; keys of the state and nodes of the graph are in lower case.
_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")
_FILE_NAME: Final = re.compile(r"\S+\.(?:md|txt)")
# What is filled into the prompt of an agent that has no `look` of its own.
_VARIABLES: Final[dict[OwnPer, tuple[str, ...]]] = {
    "image": ("box_key", "box_rule", "limit"),
    "batch": ("listed", "parts", "count", "doubts", "box_key", "part_rule"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAgent:
    """An agent of your own, for `annotate(…, agents=[…])` and `packed_graph(agents=[…])`.

    Args:
        name: what records, errors and `roles` call it: letters and digits, a capital first, as in
            `"ShadowReader"`.
        prompt: its prompt, as a text or as the path of a Markdown file. `$box_key` and `$box_rule` are filled
            in as the model knows boxes, `$limit` is the number of objects examined. With `per="batch"` there
            are `$listed`, which lists the parts that the model is shown, and `$part_rule` instead of
            `$box_rule`, for boxes within a part. Write `$$` for a dollar sign. Without a `look` it has to ask
            for the JSON that `docs/extend.md` shows.
        per: `"image"` asks once about each image, beside the open look; `"batch"` once about each batch of
            enlarged parts, when they are known.
        look: an async function from the state, a `ScanState` or `BatchState`, and the `AnnotateContext` of
            the image to a `Sighting`, in place of asking the prompt. `step` is what it can ask by.

    Raises:
        UsageError: for a name that is taken or cannot be one, a prompt that cannot be read, is missing, or
            has variables that nobody fills in.

    Example:
        >>> shadows = uncanny.extend.OwnAgent(name="ShadowReader", prompt="Which shadows are wrong? …")
        >>> shadows.step.agent
        'ShadowReader'
    """

    name: str
    prompt: str | Path | None = None
    per: OwnPer = "image"
    look: LookAtImage | LookAtBatch | None = None
    step: ListStep[Fault] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise UsageError(
                f"{shown(self.name)} is not a valid agent name",
                remedy="Use letters and digits, and start with a capital letter, as in ShadowReader.",
            )
        if self.name in ROLES.values():
            raise UsageError(f"The agent {self.name} is built in", remedy="Choose another name.")
        if self.per not in get_args(OwnPer):
            raise UsageError(f"The agent {self.name} has per={self.per!r}", remedy='Give "image" or "batch".')
        if self.look is not None and not is_coroutine_function(self.look):
            raise UsageError(
                f"`look` of the agent {self.name} is not an async function: {self.look!r}",
                remedy="Write it as `async def look(state, image)`.",
            )
        step = ListStep(
            self.name,
            1,
            self.name,
            self.per,
            output_tokens=LOOKS[0].output_tokens,
            sees_image=self.per == "image",
            form=FAULTS if self.per == "image" else PART_FAULTS,
            text=None if self.prompt is None else _read(self.name, self.prompt),
        )
        object.__setattr__(self, "step", step)
        if step.text is None:
            if self.look is None:
                raise UsageError(f"The agent {self.name} has no prompt", remedy="Give it a prompt.")
        else:
            self._check_prompt(make_prompt(self.name, step.text))

    @property
    def calls(self) -> int:
        """Calls a time, as far as can be told: one where it has a prompt."""
        return 0 if self.step.text is None else 1

    def node(self) -> LookAtImage | LookAtBatch:
        """What the graph calls."""
        if self.look is not None:
            return self.look
        return partial(look_at_image if self.per == "image" else look_at_parts, self.step)

    def as_planned(self, named: Callable[[object], str]) -> dict[str, str]:
        """What must stay the same for a run to go on, as `run.json` has it; `named` names a function."""
        planned: dict[str, str] = {"per": self.per}
        if self.step.text is not None:
            planned["prompt"] = make_prompt(self.name, self.step.text).id
            planned["text"] = self.step.text
        return planned | ({} if self.look is None else {"look": named(self.look)})

    def _check_prompt(self, prompt: Prompt) -> None:
        if not prompt.template.is_valid():
            raise UsageError(
                f"The prompt of the agent {self.name} has a $ that does not start a variable",
                remedy="Write $$ for a dollar sign.",
            )
        if self.look is not None:
            return  # which may fill in more
        known = _VARIABLES[self.per]
        unknown = [f"${name}" for name in prompt.variables if name not in known]
        if unknown:
            raise UsageError(
                f"The prompt of the agent {self.name} has variables that the schedule `packed` does not fill "
                f"in: {', '.join(unknown)}",
                remedy=f"With per={self.per!r} the variables are {', '.join(f'${name}' for name in known)}.",
            )
        if self.per == "batch" and not {"listed", "parts"} & {*prompt.variables}:
            raise UsageError(
                f"The prompt of the agent {self.name} does not have $listed",
                remedy="Without it the model is not told which parts of the image it is shown.",
            )


def check_agents(agents: Sequence[OwnAgent]) -> tuple[OwnAgent, ...]:
    """Raises UsageError for what is no agent, and for two of one name."""
    if not isinstance(agents, Sequence) or isinstance(agents, str):
        raise UsageError(f"{option('agents')} must be a list of OwnAgent, not {shown(agents)}")
    for each in agents:
        if not isinstance(each, OwnAgent):
            raise UsageError(f"{option('agents')} must be a list of OwnAgent; {shown(each)} is not one")
    names = [each.name for each in agents]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"Two agents are called {name}", remedy="Give each a different name.")
    return tuple(agents)


def own_calls(agents: Iterable[OwnAgent], times: Mapping[Per, int]) -> int:
    """Calls that these agents make about one image; `times` as `AnnotateConfig.times` has it."""
    return sum(each.calls * times[each.per] for each in agents)


def is_coroutine_function(function: object) -> bool:
    """Whether calling it gives something to await; an object may have an async `__call__`."""
    while isinstance(function, partial):
        function = function.func
    return iscoroutinefunction(function) or (
        callable(function) and iscoroutinefunction(cast("Any", type(function)).__call__)
    )


def _read(name: str, prompt: str | Path) -> str:
    if isinstance(prompt, Path):
        try:
            text = prompt.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"The prompt of the agent {name} cannot be read: {prompt}: {why}") from error
    elif isinstance(prompt, str):
        if _FILE_NAME.fullmatch(prompt):
            raise UsageError(
                f"The prompt of the agent {name} is {shown(prompt)}, which looks like a file name",
                remedy=f"Give Path({prompt!r}) to read that file.",
            )
        text = prompt
    else:
        raise UsageError(f"The prompt of the agent {name} must be a text or a Path, not {prompt!r}")
    if not text.strip():
        raise UsageError(f"The prompt of the agent {name} is empty", remedy="Say what it is to look for.")
    return text.strip()
