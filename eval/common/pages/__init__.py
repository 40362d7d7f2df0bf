"""Pages: what they share, their pictures and plots."""
