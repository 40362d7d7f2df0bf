"""Agents that write for image models, asked about every text of a set."""
