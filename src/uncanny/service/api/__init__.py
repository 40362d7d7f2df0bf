"""The service over HTTP: REST under `/api/v1`, events, health and metrics."""
