"""The audit: how plausible is what a generator makes? MAI, AF and CAP over sets of annotations."""
