"""What is served over HTTP: the service with its jobs, its interface and pages, and pages for one run.

Needs the extra `service`, pages for one run only `review`, and `client` neither.
"""

from typing import Final, Literal, get_args

Role = Literal["reader", "reviewer", "operator"]
"""What the holder of a token may do: each role what those before it may."""
ROLES: Final[tuple[Role, ...]] = get_args(Role)
