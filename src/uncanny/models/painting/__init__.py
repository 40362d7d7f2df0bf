"""Models that paint over a part of a picture: a request with a `Painting` in, a picture out."""
