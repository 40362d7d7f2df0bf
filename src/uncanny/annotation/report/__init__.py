"""The page of a run of annotations: what it counts, the calls it shows, the page itself."""
