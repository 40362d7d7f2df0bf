"""Long-running servers: the fake model server, the review page and the annotation service."""
