"""The machinery every run stands on: models, queue, records, progress, resuming."""
