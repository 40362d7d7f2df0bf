"""Tables of results, and the forms they are written in."""
