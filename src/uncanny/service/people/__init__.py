"""Pages for people as a benchmark: MCQ items answered and written, and edited images told from originals."""
