"""Training of detectors: attention that looks at artifacts, and authenticity and pixels in one model."""
