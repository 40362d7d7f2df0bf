"""One file an agent: what it is asked, what it returns.

`ROLES` maps the names users give (`--role integrator=openai/gpt-4o-mini`) to agents.
"""

from uncanny.agents.examination import ROLES, Agent, Examination
from uncanny.agents.plan import AnnotatePlan

__all__ = ["ROLES", "Agent", "AnnotatePlan", "Examination"]
