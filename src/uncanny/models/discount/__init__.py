"""The wire of requests that are answered later, for less."""
