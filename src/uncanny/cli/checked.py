"""Options on their way into a pydantic model."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from uncanny.errors import UsageError

T = TypeVar("T", bound=BaseModel)


def checked(model: type[T], values: dict[str, Any]) -> T:
    """Build `model`. Raises UsageError that names the option."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{option} {first['input']!r}: {first['msg']}") from error
