"""Models behind one protocol: see `uncanny.providers.base`."""
