"""uncanny: what is wrong with an AI-generated image, at the scale of a data set, proved with numbers."""

__version__ = "0.1.0"
