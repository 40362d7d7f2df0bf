"""From predicted and true artifacts to a result with intervals: counting, result, tables."""
