"""JSON that other tools wrote or will read: whole numbers of any size stay as they are.

`orjson` makes a float of a whole number of more than 64 bits, and refuses to write one.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import orjson
from pydantic_core import from_json, to_json

# Of whole numbers with fewer digits none has more than 64 bits.
_LONG_NUMBER = re.compile(rb"\d{19}")


def dump_json(value: object, *, indent: bool = False) -> bytes:
    """Any JSON, on one line or with `indent`; figures that are no numbers become null.

    What files of other tools have under keys of their own is written as it was read, also whole numbers of
    more than 64 bits, which `orjson` refuses. Raises TypeError for what is no JSON.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:
        with contextlib.suppress(ValueError):
            return to_json(value, indent=2 if indent else None, inf_nan_mode="null")
        raise


def load_json(data: bytes) -> Any:
    """What stands in JSON, whole numbers of any size as they are. Raises ValueError.

    For what is written again: `orjson` makes a float of a number of more than 64 bits.
    """
    content = orjson.loads(data)
    return from_json(data, allow_inf_nan=False) if _LONG_NUMBER.search(data) else content
