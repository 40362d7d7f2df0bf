"""What scoring takes, and whether intervals hold what they promise."""
