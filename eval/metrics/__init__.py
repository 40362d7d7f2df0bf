"""Metrics as pure functions over numbers: no files, no models."""

# Bootstrap resamples for an interval, unless the user says otherwise.
RESAMPLES = 10_000
# Of the published tables of AnomReason: from which similarity on a match counts, and λ.
THRESHOLDS = (0.7, 0.8, 0.9)
BALANCE = 0.5
