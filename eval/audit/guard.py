"""Figures compare generators only where the annotations were made alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from uncanny.errors import UsageError
from uncanny.eval.audit.data import Loaded
from uncanny.eval.audit.result import Aspect, Mixed, Provenance

_MOST_SHOWN = 3


def provenances(generators: Sequence[Loaded]) -> dict[str, Provenance]:
    """How each was made; one without images that count has nothing to compare."""
    return {one.source.name: one.provenance for one in generators if len(one.tally.counts)}


def check_alike(made: Mapping[str, Provenance], *, allow_mixed: bool) -> tuple[Mixed, ...]:
    """What differs between the generators, or within one.

    Raises UsageError that says what differs between which, unless `allow_mixed`.
    """
    found = tuple(differences(made))
    if found and not allow_mixed:
        lines = ["The annotations are not made alike, so the figures cannot be compared:"]
        lines += [f"  {told(mixed)}" for mixed in found]
        raise _NotAlikeError("\n".join(lines), remedy="Annotate all alike, or say --allow-mixed.")
    return found


class _NotAlikeError(UsageError):
    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}"


def unchecked(generators: Sequence[Loaded]) -> tuple[str, ...]:
    """What could not be compared between the generators, as sentences."""
    if len(generators) < 2:
        return ()
    notices: list[str] = []
    made = {one.source.name: one.provenance for one in generators}
    bare = [name for name, each in made.items() if each.policy is None]
    if bare:
        notices.append(
            f"Pixel policy and settings are not known of {_named(bare)}: there is no run.json to compare."
        )
    unnamed = [name for name, each in made.items() if not each.served_known and name not in bare]
    if unnamed or bare:
        notices.append(
            f"Which version of the model answered is not known of {_named([*bare, *unnamed])}: "
            "providers may have served another one."
        )
    return tuple(notices)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (" and others" if len(names) > _MOST_SHOWN else "")


def differences(made: Mapping[str, Provenance]) -> Iterator[Mixed]:
    """Aspect by aspect; what is not known of a generator is not compared."""
    yield from _differing("model", "models", {name: one.models for name, one in made.items()})
    yield from _differing("prompts", "prompts", {name: one.prompts for name, one in made.items()})
    for model in sorted({model for one in made.values() for model in one.served}):
        served = {name: one.served[model] for name, one in made.items() if model in one.served}
        yield from _differing("model", f"version of {model}", served)
    policies = {name: one.policy for name, one in made.items()}
    yield from _by_setting("pixels", "pixel policy", policies)
    if None in policies.values():
        changes = {name: one.changes for name, one in made.items() if one.changes is not None}
        yield from _differing("pixels", "changes to pixels", changes, sets=True)
    yield from _by_setting("settings", "setting", {name: one.settings for name, one in made.items()})


def _by_setting(aspect: Aspect, what: str, tables: Mapping[str, Mapping[str, str] | None]) -> Iterator[Mixed]:
    known = {name: table for name, table in tables.items() if table is not None}
    for setting in sorted({setting for table in known.values() for setting in table}):
        values = {name: (table.get(setting, "not set"),) for name, table in known.items()}
        yield from _differing(aspect, f"{what} {setting}", values)


def _differing(
    aspect: Aspect, what: str, values: Mapping[str, tuple[str, ...]], *, sets: bool = False
) -> Iterator[Mixed]:
    """`sets`: several values in one generator are as it should be, if all have the same ones."""
    if len(set(values.values())) > 1 or (not sets and any(len(held) > 1 for held in values.values())):
        yield Mixed(aspect, what, dict(values))


def told(mixed: Mixed) -> str:
    """One line: the aspect, then each value with the generators that have it."""
    holders: dict[tuple[str, ...], list[str]] = {}
    for name, held in mixed.values.items():
        holders.setdefault(held, []).append(name)
    parts = [f"{_short(names)}: {' and '.join(held) or 'none'}" for held, names in holders.items()]
    return f"{mixed.what}: {'; '.join(parts)}"


def _short(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN])
    return shown if len(names) <= _MOST_SHOWN else f"{shown} and {len(names) - _MOST_SHOWN} more"
