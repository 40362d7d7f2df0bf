"""Training of detectors: attention that looks where artifacts are, and authenticity and pixels in one model."""
