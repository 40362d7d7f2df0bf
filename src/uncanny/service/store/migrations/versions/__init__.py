"""One file a step, in order of their names."""
