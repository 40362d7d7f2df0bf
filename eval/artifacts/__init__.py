"""Where artifacts are, and of which kind: the protocol of X-AIGD."""
