"""Metrics as pure functions over numbers: no files, no models."""
