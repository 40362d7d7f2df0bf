"""Which candidates are fit for a test: by their pixels, by a model, and then by people."""
