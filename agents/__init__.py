"""One file an agent: what it is asked, what it returns. `steps` says how often, `context` asks."""
