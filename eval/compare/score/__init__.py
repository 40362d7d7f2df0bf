"""From two runs to what they have in common, what changed, and figures with paired intervals."""
