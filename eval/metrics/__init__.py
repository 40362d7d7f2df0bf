"""Metrics as pure functions over numbers: no files, no models."""

# Bootstrap resamples for an interval, unless the user says otherwise.
RESAMPLES = 10_000
