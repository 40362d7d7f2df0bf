"""Commands that build test sets and models."""
