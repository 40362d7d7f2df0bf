"""How much edits of images changed, which of them are fit for use, and where detectors of them are blind.

`score` measures edits and `gate` sorts them out; `run` has a model write the words that edits are made after;
`stress` sets what a detector says against all of it.
"""
