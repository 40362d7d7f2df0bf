"""Pairs: an image, and the same image with one region painted over, made, screened and asked about."""
