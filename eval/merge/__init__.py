"""Merge: the findings of several runs over the same images as one run.

`run.merge` is the door: runs in, a run folder and `result.MergeResult` out.
"""
