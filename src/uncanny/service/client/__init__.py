"""A service on another machine, used from Python: `Client` and the jobs it hands out.

Nothing here needs the extra `service`, which is for the machine that serves.
"""

from uncanny.service.client.client import Client
from uncanny.service.client.job import ClientJob

__all__ = ["Client", "ClientJob"]
