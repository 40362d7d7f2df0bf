"""One file an agent: what it is asked, what it returns.

`ROLES` maps the names users give (`--role integrator=openai/gpt-4o-mini`) to agents.
"""

from uncanny.agents.annotate_config import AnnotateConfig
from uncanny.agents.context import ROLES, Agent, ImageContext

__all__ = ["ROLES", "Agent", "AnnotateConfig", "ImageContext"]
