"""Commands that serve pages and an API, and the tokens for it."""
