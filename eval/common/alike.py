"""Whether annotations were made alike: generators compare only where the same was asked in the same way.

What counts is how each generator's annotations came about (`Provenance`): models and the versions that really
answered, prompts, what was done to pixels, settings. It comes from the records (`Origin`) and the run. Each
difference is a `Mismatch`; what is not known of a generator is not compared, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from uncanny.errors import NotAlikeError
from uncanny.eval.common.inputs.runs import ReadRun
from uncanny.eval.common.json_fields import JsonFields
from uncanny.records.calibration import MadeWith
from uncanny.schema import Annotation
from uncanny.wording import option

Aspect = Literal["model", "prompts", "pixels", "settings"]

_MOST_SHOWN = 3
# Changes beyond what a file's format or colours ask for: these a policy decides.
_CHOSEN_CHANGES = frozenset({"downscale", "jpeg-quality"})


@dataclass(frozen=True, slots=True)
class Provenance(JsonFields):
    """How a generator's annotations were made, each as the distinct values in its records, sorted.

    `models` and `prompts` are those of the records that count; a record to which roles or a fallback with
    models of their own contributed names them all. `changes` are the kinds of what was done to pixels beyond
    converting the file's format, None where no record says. `policy` is the run's pixel policy and `settings`
    are its plan and roles, by name; None where no run is known. `served` has, by model, the names under which
    it really answered, such as dated snapshots; `served_known` is false where they are not known of all.
    """

    json_keys: ClassVar = "models served_as=served prompts changes policy settings"

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    changes: tuple[str, ...] | None = None
    policy: Mapping[str, str] | None = None
    settings: Mapping[str, str] | None = None
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    served_known: bool = False

    def as_made_with(self) -> MadeWith:
        """What the confidence of findings depends on."""
        schedule = (self.settings or {}).get("schedule")
        return MadeWith(models=self.models, prompts=self.prompts, schedule=schedule)


@dataclass(slots=True)
class Origin:
    """What records say of how they were made, added one by one; `changes` is None where none says."""

    models: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)
    changes: set[str] | None = None

    def add(self, record: Annotation) -> None:
        models = (record.model_extra or {}).get("models")
        self.models.update(models if isinstance(models, dict) and models else [record.model])
        self.prompts.add(record.prompts)
        if record.pixels is not None:
            kinds = {change.partition(":")[0] for change in record.pixels.changes}
            self.changes = (self.changes or set()) | (kinds & _CHOSEN_CHANGES)

    def provenance(self, run: ReadRun | None) -> Provenance:
        """Of the records of `run`; None for those that are of no run."""
        models, prompts = tuple(sorted(self.models)), tuple(sorted(self.prompts))
        changes = None if self.changes is None else tuple(sorted(self.changes))
        if run is None or not run.written:
            return Provenance(models, prompts, changes)
        info = run.info
        served = {
            model: tuple(sorted(info.served_as[model])) for model in models if info.served_as.get(model)
        }
        served_known = self.models <= served.keys() - set(info.served_unnamed)
        if info.model and info.roles and self.models <= {info.model, *info.roles.values()}:
            models = (together(info.model, info.roles),)
        return Provenance(
            models,
            prompts,
            changes,
            as_texts(info.pixels.policy) or None,
            settings_of(info.plan, info.roles) or None,
            served,
            served_known,
        )


def together(model: str, roles: Mapping[str, str]) -> str:
    """Where roles have models of their own, all of them are one way of annotating."""
    return " + ".join(sorted({model, *roles.values()}))


def settings_of(plan: Mapping[str, object], roles: Mapping[str, str]) -> dict[str, str]:
    """What a run's records depend on beside model, prompts and pixels.

    Each node or agent of the user's own is a setting, and the hash of its prompt stands for the prompt. A
    calibration is none: it says more of the same findings.
    """
    graph = plan.get("graph")
    nodes = {f"node {name}": _node(made) for name, made in graph.items()} if isinstance(graph, dict) else {}
    others = {name: value for name, value in plan.items() if name not in ("graph", "calibration")}
    return as_texts(others) | nodes | {f"role {role}": model for role, model in roles.items()}


def _node(made: object) -> str:
    if not isinstance(made, dict):
        return str(made)
    return ", ".join(str(value) for name, value in made.items() if name != "text")


def as_texts(table: Mapping[str, object]) -> dict[str, str]:
    """A table of settings with values that can be compared and shown."""
    return {name: "none" if value is None else str(value) for name, value in table.items()}


@dataclass(frozen=True, slots=True)
class Mismatch(JsonFields):
    """One way in which annotations in one audit were not made alike.

    `what` is the aspect in words, with the setting's name where there is one; `values` has the distinct
    values of each generator that has any.
    """

    json_keys: ClassVar = "aspect what values"

    aspect: Aspect
    what: str
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        """One line: the aspect, then each value with the generators that have it."""
        generators: dict[tuple[str, ...], list[str]] = {}
        for name, values in self.values.items():
            generators.setdefault(values, []).append(name)
        parts = []
        for values, names in generators.items():
            more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
            parts.append(f"{', '.join(names[:_MOST_SHOWN])}{more}: {' and '.join(values) or 'none'}")
        return f"{self.what}: {'; '.join(parts)}"


def check_alike(provenances: Mapping[str, Provenance], *, allow_mixed: bool) -> tuple[Mismatch, ...]:
    """What differs between the generators, or within one; empty where all were made alike.

    Raises NotAlikeError that says what differs between which, unless `allow_mixed`.
    """
    mismatches = tuple(find_mismatches(provenances))
    if mismatches and not allow_mixed:
        raise NotAlikeError(
            "The annotations are not made alike, so the figures cannot be compared",
            [str(mismatch) for mismatch in mismatches],
            remedy=f"Annotate all alike, or say {option('allow_mixed', True)}.",
        )
    return mismatches


def find_mismatches(provenances: Mapping[str, Provenance]) -> Iterator[Mismatch]:
    """Aspect by aspect; what is not known of a generator is not compared."""
    items = provenances.items()
    yield from _differing("model", "models", {name: origin.models for name, origin in items})
    yield from _differing("prompts", "prompts", {name: origin.prompts for name, origin in items})
    for model in sorted({model for origin in provenances.values() for model in origin.served}):
        served = {name: origin.served[model] for name, origin in items if model in origin.served}
        yield from _differing("model", f"version of {model}", served)
    policies = {name: origin.policy for name, origin in items}
    yield from _by_setting("pixels", "pixel policy", policies)
    if None in policies.values():
        changes = {name: origin.changes for name, origin in items if origin.changes is not None}
        yield from _differing("pixels", "changes to pixels", changes, several=True)
    yield from _by_setting("settings", "setting", {name: origin.settings for name, origin in items})


def unchecked(provenances: Mapping[str, Provenance]) -> tuple[str, ...]:
    """What could not be compared between the generators, as sentences."""
    if len(provenances) < 2:
        return ()
    notices: list[str] = []
    without_run = [name for name, origin in provenances.items() if origin.policy is None]
    if without_run:
        notices.append(
            f"The pixel policy and settings of {_listed(without_run)} are not known: "
            "there is no run.json to compare."
        )
    unnamed = [
        name for name, origin in provenances.items() if not origin.served_known and name not in without_run
    ]
    if unnamed or without_run:
        notices.append(
            f"The version of the model is not known for {_listed([*without_run, *unnamed])}: "
            "providers may have served another one."
        )
    return tuple(notices)


def _by_setting(
    aspect: Aspect, what: str, tables: Mapping[str, Mapping[str, str] | None]
) -> Iterator[Mismatch]:
    known = {name: table for name, table in tables.items() if table is not None}
    for setting in sorted({setting for table in known.values() for setting in table}):
        values = {name: (table.get(setting, "not set"),) for name, table in known.items()}
        yield from _differing(aspect, f"{what} {setting}", values)


def _differing(
    aspect: Aspect, what: str, values: Mapping[str, tuple[str, ...]], *, several: bool = False
) -> Iterator[Mismatch]:
    """With `several`, more than one value in a generator is as it should be, if all have the same ones."""
    if len(set(values.values())) > 1 or (not several and any(len(own) > 1 for own in values.values())):
        yield Mismatch(aspect, what, dict(values))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (" and others" if len(names) > _MOST_SHOWN else "")
