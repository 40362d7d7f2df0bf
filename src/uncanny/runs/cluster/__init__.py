"""Runs whose inputs are worked on by actors of Ray; all else stays in the process that holds the run."""
