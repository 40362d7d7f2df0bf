"""Training models, and what that takes."""
