"""Measurements behind every claim about speed and memory; see README.md."""
