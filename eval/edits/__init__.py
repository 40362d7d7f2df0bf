"""How much edits of images changed, which of them are fit for use, and where detectors of them are blind."""
