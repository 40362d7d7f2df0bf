"""Compare: what changed between two runs over the same images, and whether it could be chance.

`score.score.compare` is the door: runs in, `score.result.CompareResult` out.
"""
