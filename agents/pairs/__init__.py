"""Agents that make pairs of an image and its edit, and look at them first."""
